//! Whatever comes in, in whatever order: nothing panics, nothing critical is lost or told twice.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use std::collections::BTreeSet;
use std::time::Duration;

use aaep_subscriber::Notification;
use aaep_subscriber::inbox::{Answer, Bounds, Connection, Inbox, InboxInput, Settings, TextBy};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Event { kind: usize, session: u8, number: u64, id: u16, critical: bool, text: String },
    Bytes(Vec<u8>),
    Accepted(u8),
    Rejected,
    Attached,
    Bare,
    Lost,
    Forgotten,
    Date(i64),
    Passes(u32),
    Hears(u8),
    Sends(bool, bool),
    Answers(u8, u8),
    MoreTime(u8),
    Stops(u8),
    Renegotiates(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..14_usize, 0..4_u8, any_number(), 0..400_u16, any::<bool>(), ".{0,12}").prop_map(
            |(kind, session, number, id, critical, text)| Step::Event {
                kind, session, number, id, critical, text
            }
        ),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Step::Bytes),
        1 => any::<u8>().prop_map(Step::Accepted),
        1 => Just(Step::Rejected),
        1 => Just(Step::Attached),
        1 => Just(Step::Bare),
        1 => Just(Step::Lost),
        1 => Just(Step::Forgotten),
        1 => any::<i64>().prop_map(Step::Date),
        2 => (0..100_000_u32).prop_map(Step::Passes),
        2 => any::<u8>().prop_map(Step::Hears),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(sent, perhaps)| Step::Sends(sent, perhaps)),
        2 => (0..30_u8, 0..8_u8).prop_map(|(number, answer)| Step::Answers(number, answer)),
        1 => (0..30_u8).prop_map(Step::MoreTime),
        1 => (0..4_u8).prop_map(Step::Stops),
        1 => any::<u8>().prop_map(Step::Renegotiates),
    ]
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![0..30_u64, any::<u64>(), Just(u64::MAX), Just(1 << 53)]
}

/// Small enough that every bound is met.
fn small() -> Bounds {
    Bounds {
        event_ids: 4000,
        sessions: 2,
        open_requests: 5,
        settled_requests: 4000,
        waiting: 6,
        merge_from: 2,
        events_per_second: 5,
        burst: 5,
        outputs: 2,
        output_bytes: 20,
        text_bytes: 40,
        reorder_events: 3,
        silent_agents: 2,
        sends: 4,
        notes: 3,
        ..Bounds::default()
    }
}

const KINDS: [&str; 14] = [
    "session.started",
    "session.completed",
    "session.errored",
    "session.cancelled",
    "state.changed",
    "progress.updated",
    "tool.invoked",
    "tool.completed",
    "output.streaming",
    "awaiting.confirmation",
    "awaiting.clarification",
    "handoff.requested",
    "never.heard.of",
    "state.changed",
];

struct World {
    inbox: Inbox,
    hub: Connection,
    now: u64,
    /// Ids of critical events, sent and told.
    critical: BTreeSet<String>,
    told: BTreeSet<String>,
}

impl World {
    fn comes(&mut self, bytes: &[u8]) {
        self.inbox.handle(InboxInput::Message { connection: self.hub, bytes }, self.now);
    }

    fn hears(&mut self, most: usize) {
        for _ in 0..most {
            let Some(notification) = self.inbox.poll_notification(self.now) else { return };
            self.note(&notification);
        }
    }

    fn note(&mut self, notification: &Notification) {
        let id = match notification {
            Notification::Event { json, critical: true, .. } => {
                let heard = aaep_types::LenientEvent::parse(json.as_bytes()).unwrap();
                format!("{} {}", heard.session_id(), heard.event_id())
            }
            Notification::Asked(request) => format!("{} {}", request.session_id, request.event_id),
            // Over before it was heard: that is told instead.
            Notification::Settled { request, announced: false, .. } => {
                format!("{} {}", request.session_id, request.event_id)
            }
            _ => return,
        };
        self.told.insert(id);
    }

    fn event(&mut self, step: &Step) {
        let Step::Event { kind, session, number, id, critical, text } = step else { return };
        let name = KINDS[*kind];
        let text = serde_json::to_string(text).unwrap();
        let urgency = if *critical { "critical" } else { "normal" };
        // Text that is critical is told as text, a state that resolves a request as what became of
        // it; and an id means the same event.
        let id = format!("evt_{kind}x{critical}x{id}");
        let always = ["session.errored", "handoff.requested"].contains(&name)
            || name.starts_with("awaiting");
        if (*critical || always) && !["output.streaming", "state.changed"].contains(&name) {
            self.critical.insert(format!("sess_{session} {id}"));
        }
        let event = format!(
            r#"{{"type":"aaep:agent.{name}","event_id":"{id}","session_id":"sess_{session}","sequence_number":{number},"urgency":"{urgency}","timestamp":"2026-05-24T14:22:11.342Z","summary_normal":{text},"chunk":{text},"position":{number},"complete":{critical},"from_state":"awaiting_input","to_state":{text},"reply_token":"rpl_{session}{}","action":{text},"question":{text},"timeout_seconds":{number},"extensions":{{"outcome":{{"request_event_id":"evt_9xtruex{number}","outcome":"accepted"}},"timing":{{"supersedes":"evt_9xtruex{number}"}}}}}}"#,
            id.replace("evt_", ""),
        );
        self.comes(event.as_bytes());
    }

    fn does(&mut self, step: &Step) {
        let (hub, now) = (self.hub, self.now);
        match step {
            Step::Event { .. } => self.event(step),
            Step::Bytes(bytes) => self.comes(bytes),
            Step::Accepted(id) => {
                let everything = r#""event_filters":{"include":["*"]},"coalesce_boundaries":["none"],"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_extensions":["urn:aaep-rs:outcome:v1","urn:aaep-rs:timing:v1","urn:aaep-rs:control:v1"]"#;
                let honored = if id % 2 == 0 { everything } else { "" };
                self.comes(format!(r#"{{"type":"subscription.accepted","subscription_id":"sub_{}","honored_capabilities":{{{honored}}}}}"#, id % 4).as_bytes());
            }
            Step::Rejected => self.comes(br#"{"type":"subscription.rejected","reason_code":"capabilities_incompatible","reason_message":"timing"}"#),
            Step::Attached => self.inbox.handle(InboxInput::Attached { connection: hub }, now),
            Step::Bare => self.inbox.handle(InboxInput::AttachedBare { connection: hub }, now),
            Step::Lost => self.inbox.handle(InboxInput::Lost { connection: hub, why: "x" }, now),
            Step::Forgotten => self.inbox.handle(InboxInput::Forgotten { connection: hub }, now),
            Step::Date(unix_ms) => {
                self.inbox.handle(InboxInput::ServerTime { connection: hub, unix_ms: *unix_ms }, now);
            }
            Step::Passes(ms) => {
                self.now += u64::from(*ms);
                self.inbox.handle(InboxInput::Time, self.now);
            }
            Step::Hears(most) => self.hears(usize::from(*most)),
            Step::Sends(sent, perhaps) => {
                while let Some(send) = self.inbox.poll_send() {
                    assert!(aaep_types::is_valid(send.json.as_bytes()), "{}", send.json);
                    let ticket = send.ticket;
                    let input = if *sent { InboxInput::Sent(ticket) } else { InboxInput::NotSent { ticket, perhaps: *perhaps } };
                    self.inbox.handle(input, now);
                }
            }
            Step::Answers(number, answer) => {
                let answer = match answer {
                    0 => Answer::Accept,
                    1 => Answer::Reject,
                    2 => Answer::Text("x".into()),
                    3 => Answer::YesNo(true),
                    4 => Answer::Number(f64::INFINITY),
                    5 => Answer::Number(-0.5),
                    6 => Answer::Choice("a".into()),
                    _ => Answer::Text(String::new()),
                };
                let _ = self.inbox.answer(u32::from(*number).into(), answer, now);
            }
            Step::MoreTime(number) => drop(self.inbox.more_time(u32::from(*number).into(), Duration::ZERO, now)),
            Step::Stops(session) => drop(self.inbox.stop(&format!("sess_{session}"), now)),
            Step::Renegotiates(how) => {
                let text = [TextBy::Sentence, TextBy::Paragraph, TextBy::End][usize::from(how % 3)];
                let settings = Settings { text, replies: how % 2 == 0, ..Settings::default() };
                let _ = self.inbox.renegotiate(settings, now);
            }
        }
    }
}

proptest! {
    // covers: H23, S3, T28, V2, S10
    #[test]
    fn nothing_that_comes_breaks_it_and_nothing_critical_is_lost(
        steps in proptest::collection::vec(step(), 0..200)
    ) {
        let bounds = small();
        let mut inbox = Inbox::new(Settings::default(), bounds, 0);
        let hub = inbox.add("hub", 0);
        let (critical, told) = (BTreeSet::new(), BTreeSet::new());
        let mut world = World { inbox, hub, now: 0, critical, told };
        for step in &steps {
            world.does(step);
            prop_assert!(world.inbox.open_requests().len() <= bounds.open_requests);
            prop_assert!(world.inbox.doing().len() <= bounds.sessions);
            let deadline = world.inbox.next_deadline(world.now);
            prop_assert!(deadline.is_none_or(|at| at > world.now));
        }
        // What is critical waits for no clock.
        world.hears(usize::MAX);
        let lost: Vec<_> = world.critical.difference(&world.told).collect();
        prop_assert!(lost.is_empty(), "{:?}", lost);
        // And everything else comes to an end.
        for _ in 0..100 {
            world.does(&Step::Passes(99_999));
            world.hears(usize::MAX);
        }
        prop_assert!(world.inbox.poll_notification(world.now).is_none());
    }
}
