//! Whatever is asked and typed, in whatever order: nothing is answered by accident.

use std::collections::BTreeMap;

use aaep_subscriber::RequestOutcome;
use aaep_types::ResponseKind::{Freetext, MultipleChoice, Numeric, YesNo};
use proptest::prelude::*;

use crate::listen::talk::stories::{Story, consent, mild, question};

/// What may happen next.
#[derive(Clone, Debug)]
enum Step {
    Grave,
    Mild,
    Question(u8),
    /// The oldest request is settled.
    Settled(u8),
    Typed(&'static str),
    Text,
    Seconds(u64),
}

/// Keys, words and accidents.
const TYPED: &[&str] = &[
    "y",
    "n",
    "yes",
    "no",
    "a",
    "r",
    "l",
    "d",
    "c",
    "w",
    "s",
    "p",
    "t",
    "x",
    "q",
    "?",
    "\t",
    "\n",
    "",
    " ",
    "1",
    "2",
    "9",
    "yes 1",
    "no 2",
    "answer here",
    "next",
    "Lagos",
    "7",
    "ن",
    "\u{1b}",
    "stop",
    "yes please",
    "🙂",
];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Grave),
        2 => Just(Step::Mild),
        2 => (0..4u8).prop_map(Step::Question),
        2 => (0..8u8).prop_map(Step::Settled),
        8 => (0..TYPED.len()).prop_map(|at| Step::Typed(TYPED[at])),
        1 => Just(Step::Text),
        2 => (0..3u64).prop_map(Step::Seconds),
    ]
}

proptest! {
    // covers: T21, S10, C28
    #[test]
    fn nothing_is_answered_that_was_not_announced_or_twice_or_without_its_steps(
        steps in proptest::collection::vec(step(), 1..80),
        lines in any::<bool>(),
    ) {
        let mut story = Story::with(|settings| settings.lines = lines);
        // Number to whether it is grave, and whether it was answered.
        let mut open: BTreeMap<u32, (bool, bool)> = BTreeMap::new();
        let (mut last, mut typed) = (0, Vec::<&str>::new());
        for step in steps {
            match step {
                Step::Grave | Step::Mild | Step::Question(_) => {
                    last += 1;
                    let asked = match step {
                        Step::Grave => consent(last, "Delete"),
                        Step::Mild => mild(last, "Open"),
                        Step::Question(kind) => {
                            let kinds = [[Freetext], [YesNo], [Numeric], [MultipleChoice]];
                            question(last, &kinds[usize::from(kind)], &["Red", "Blue"])
                        }
                        _ => unreachable!(),
                    };
                    open.insert(last, (matches!(step, Step::Grave), false));
                    story.asked(asked);
                    let heard = story.heard();
                    // Once, at once, whatever else goes on.
                    prop_assert_eq!(heard.matches("[bell: blocked]").count(), 1, "{}", heard);
                    let announced = format!("Request {last} waits for you");
                    prop_assert_eq!(heard.matches(&announced).count(), 1, "{}", heard);
                    prop_assert!(!heard.contains("[reply"), "{}", heard);
                }
                Step::Settled(which) => {
                    let number = open.keys().nth(usize::from(which)).copied();
                    if let Some(number) = number {
                        let (grave, _) = open.remove(&number).unwrap_or_default();
                        let was = if grave { consent(number, "Delete") } else { mild(number, "Open") };
                        story.settled(was, RequestOutcome::TimedOut);
                        prop_assert!(!story.heard().contains("[reply"));
                    }
                }
                Step::Typed(text) => {
                    typed.push(text);
                    story.types(text);
                    let heard = story.heard();
                    let replies: Vec<&str> =
                        heard.lines().filter(|line| line.starts_with("[reply ")).collect();
                    prop_assert!(replies.len() <= 1, "{}", heard);
                    for reply in replies {
                        let number = reply[7..].split(':').next().and_then(|n| n.parse().ok());
                        let entry = number.and_then(|number: u32| open.get_mut(&number));
                        let Some((grave, answered)) = entry else {
                            return Err(TestCaseError::fail(format!("{reply} was not asked")));
                        };
                        prop_assert!(!*answered, "{} twice", reply);
                        *answered = true;
                        prop_assert!(!text.trim().is_empty(), "{} under Enter", reply);
                        if *grave && reply.contains("Accept") {
                            prop_assert_eq!(text, "yes");
                            let first = typed.len().checked_sub(2).map(|before| typed[before]);
                            let first = first.unwrap_or_default();
                            prop_assert!(["y", "yes", "yes 1", "ن"].contains(&first), "{}", first);
                        }
                    }
                    if heard.contains("[ends]") {
                        return Ok(());
                    }
                }
                Step::Text => {
                    story.text("A sentence. ", false).heard();
                }
                Step::Seconds(seconds) => {
                    story.after(seconds);
                    prop_assert!(!story.heard().contains("[reply"));
                }
            }
        }
    }
}
