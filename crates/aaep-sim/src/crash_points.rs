//! Every crash point of a reference scenario: before each output, with every fate of the writes
//! that were not synced, and with a second crash during the recovery.

use aaep_engine::Rules;
use aaep_types::{EventKind, Presence};

use crate::Violation;
use crate::cast::{ANN_LAPTOP, ANN_PHONE, BANK, Cast, LISTENERS, QUESTIONS, TOOL};
use crate::disk::Fate;
use crate::oracle::{Reply, ReplyKind};
use crate::power::{Decide, Script};
use crate::random::Random;
use crate::world::World;

/// What happens to what was written and not synced.
const FATES: [(&str, Option<Decide>); 9] = [
    ("killed, everything kept", None),
    ("everything kept", Some(|_, _| Fate::Kept)),
    ("everything lost", Some(|_, _| Fate::Lost)),
    ("torn after a byte", Some(|_, _| Fate::Torn(1))),
    ("torn in the middle", Some(|_, length| Fate::Torn(length / 2))),
    ("torn before the last byte", Some(|_, length| Fate::Torn(length - 1))),
    ("reordered: the first lost", Some(|at, _| if at == 0 { Fate::Lost } else { Fate::Kept })),
    (
        "reordered: the first torn",
        Some(|at, n| if at == 0 { Fate::Torn(n / 2) } else { Fate::Kept }),
    ),
    ("a bit turned over", Some(|_, length| Fate::Flipped(length * 4))),
];

/// One way to crash.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Before this output, counted from 0.
    pub output: usize,
    /// What became of the writes.
    pub fate: &'static str,
    /// Before this output of the recovery the machine crashes again.
    pub again: Option<usize>,
    /// Syncs come only now and then.
    pub slow_disk: bool,
    /// The clock can be trusted after the restart.
    pub trusted: bool,
}

/// What became of all of them.
#[derive(Clone, Debug, Default)]
pub struct CrashPointReport {
    /// How many there are.
    pub points: u64,
    /// Those that broke something.
    pub violations: Vec<(Point, Violation)>,
}

/// Crashes at every point.
pub fn run_all<R: Rules>() -> CrashPointReport {
    let cast = Cast::new();
    let mut found = CrashPointReport::default();
    for slow_disk in [false, true] {
        let outputs = play::<R>(&cast, slow_disk, None).0;
        for output in 0..=outputs {
            for (fate, act) in FATES {
                for again in [None, Some(0), Some(1), Some(2)] {
                    for trusted in [true, false] {
                        let point = Point { output, fate, again, slow_disk, trusted };
                        let script = Script { fate: act, trusted, again };
                        let violation = play::<R>(&cast, slow_disk, Some((output, script))).1;
                        found.points += 1;
                        found.violations.extend(violation.map(|violation| (point, violation)));
                    }
                }
            }
        }
    }
    found
}

type Act<'c, R> = fn(&mut World<'c, R>);

impl<'c, R: Rules> World<'c, R> {
    /// A morning at the bank: a yes, a no, silence, an answer, an old yes once more, the end.
    const MORNING: [Act<'c, R>; 15] = [
        |world| world.open(BANK),
        |world| world.ask_first(0),
        |world| world.say(0, ReplyKind::Accept, ANN_PHONE),
        |world| world.invoke_first(0),
        |world| world.ask_first(2),
        |world| world.ask_first(4),
        |world| world.complete_first(),
        |world| world.ask_first(6),
        |world| world.say(1, ReplyKind::Reject, ANN_LAPTOP),
        |world| world.say(3, ReplyKind::Answer, ANN_PHONE),
        |world| world.pass(31_000),
        |world| world.invoke_first(2),
        |world| world.say(0, ReplyKind::Accept, ANN_PHONE),
        |world| world.invoke_first(0),
        |world| world.end_first(),
    ];

    fn ask_first(&mut self, question: usize) {
        if !self.errands.is_empty() {
            self.ask(0, &QUESTIONS[question]);
        }
    }

    /// The agent runs what it asked for in this place, if it may.
    fn invoke_first(&mut self, place: usize) {
        let asked = self.errands.first().and_then(|errand| errand.asked.get(place));
        if let Some(&(request, question)) = asked {
            self.invoke(0, BANK, request, Some(question.arguments));
        }
    }

    fn complete_first(&mut self) {
        let call = self.errands.first_mut().and_then(|errand| errand.running.pop());
        if let Some(call) = call {
            let payload = format!(
                r#"{{"tool":"{TOOL}","tool_call_id":"{call}","status":"success","summary_normal":"Sent."}}"#
            );
            self.emit(0, EventKind::ToolCompleted, &payload, false);
        }
    }

    fn end_first(&mut self) {
        if !self.errands.is_empty() {
            let payload = r#"{"summary_normal":"Done."}"#;
            self.emit(0, EventKind::SessionCompleted, payload, true);
        }
    }

    /// A person answers the prompt in this place.
    fn say(&mut self, place: usize, said: ReplyKind, peer: usize) {
        let Some(prompt) = self.prompts.get(place).copied() else { return };
        let subscription = self.id_or_any(peer);
        let stamp = self.clocks.now().wall;
        self.send(Reply {
            peer,
            subscription,
            token: prompt.token,
            said,
            stamp,
            shown: Presence::Pin,
            own_tree: false,
        });
    }
}

/// Plays the scenario, with a crash if there is one; says how many outputs there were.
fn play<R: Rules>(
    cast: &Cast,
    slow_disk: bool,
    crash: Option<(usize, Script)>,
) -> (usize, Option<Violation>) {
    let mut world = World::<R>::new(cast, Random::new(1), false, false);
    world.slow_disk = slow_disk;
    world.crash_in = crash.map(|(output, _)| output);
    world.script = crash.map(|(_, script)| script);
    for (index, act) in World::<R>::MORNING.iter().enumerate() {
        while world.hub.is_none() && world.oracle.violation.is_none() {
            world.restart();
        }
        for listener in 0..LISTENERS.len() {
            world.join_if_away(listener);
        }
        act(&mut world);
        if !slow_disk || index % 3 == 2 {
            world.settle();
        }
    }
    world.rest();
    (world.outputs, world.oracle.violation)
}
