//! The chain of states (§4.2.1).

use std::collections::BTreeSet;

use aaep_types::rule;

use super::Weight;
use super::memory::short;
use super::report::{Report, word};

pub(super) const IDLE: &str = "idle";
pub(super) const CALLING_TOOL: &str = "calling_tool";
pub(super) const WRITING_OUTPUT: &str = "writing_output";
pub(super) const AWAITING_INPUT: &str = "awaiting_input";
pub(super) const HANDING_OFF: &str = "handing_off";

#[derive(Debug, Default)]
enum Now {
    /// No state change yet.
    #[default]
    Fresh,
    Entered(String),
    /// Events are missing: the next state change is taken as it is.
    Unknown,
}

/// Where a session is, and where events since then imply that it may be.
#[derive(Debug, Default)]
pub(super) struct States {
    now: Now,
    /// At most the four states that decision D35 names.
    implied: BTreeSet<&'static str>,
}

impl States {
    /// An event implies a state without saying so (decision D35).
    pub(super) fn imply(&mut self, state: &'static str) {
        // enforces: D35
        self.implied.insert(state);
    }

    /// Something was lost: whatever comes next is believed.
    pub(super) fn forget(&mut self) {
        self.now = Now::Unknown;
    }

    pub(super) fn change(
        &mut self,
        from: Option<&str>,
        to: Option<&str>,
        weight: Weight,
        report: &mut Report<'_>,
    ) {
        if let Some(from) = from {
            self.judge(from, weight, report);
        }
        self.implied.clear();
        self.now = to.map_or(Now::Unknown, |to| Now::Entered(short(to)));
    }

    fn judge(&self, from: &str, weight: Weight, report: &mut Report<'_>) {
        match &self.now {
            Now::Fresh if from != IDLE => report.add(
                weight,
                rule::T7,
                format!(
                    "The first state change of this session leaves `{}`. It has to leave `idle`.",
                    word(from)
                ),
            ),
            Now::Entered(state) if *state != short(from) && !self.implied.contains(from) => {
                report.add(
                    weight,
                    rule::T7,
                    format!(
                        "This state change leaves `{}`, but the session was in `{}`. A change \
                         leaves the state entered before, or one that an event in between implies.",
                        word(from),
                        word(state)
                    ),
                );
            }
            _ => {}
        }
    }
}
