//! The conversation as a listener hears it. `>` is what is typed; what is in brackets is not said.

use aaep_subscriber::{Happening, Outcome};
use aaep_types::ResponseKind::{Freetext, MultipleChoice, Numeric, YesNo};

use super::stories::{Story, consent, mild, question, reply};
use super::{Answer, By, SecondStep};
use crate::listen::talk::stories::agent;

#[test]
fn look() {
    let mut story = Story::new();
    story.event("session.started", "Tidying the desk.");
    story.asked(consent(1, "Delete old.txt"));
    story.types("y").types("yes").settled(consent(1, "Delete old.txt"), Outcome::Accepted);
    story.event("session.completed", "The desk is tidy.");
    println!("{}", story.heard());
}
