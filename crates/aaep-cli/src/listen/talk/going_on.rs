//! A request that goes on with more time: it keeps the number that the person knows, what they typed
//! stays, and only the new time is said.

use std::sync::Arc;

use aaep_subscriber::words::Argument;
use aaep_subscriber::{Request, RequestHandle, RequestOutcome};
use aaep_voice::utterance::Class;

use super::saying::About;
use super::{Open, Talk, count};

/// How long what continues a superseded request is waited for, in milliseconds.
const FOLLOWS_WITHIN_MS: u64 = 2_000;

/// A request that was superseded, until it is known by what.
#[derive(Debug)]
pub(super) struct Superseded {
    open: Open,
    since: u64,
}

impl Superseded {
    /// Nothing followed it in time.
    pub(super) fn is_late(&self, now: u64) -> bool {
        now >= self.since.saturating_add(FOLLOWS_WITHIN_MS)
    }
}

impl Talk {
    pub(super) fn is_superseded(&mut self, open: Open) {
        // A program is told of both, and what was answered is asked anew.
        if self.settings.for_program || open.sent {
            return self.over(open.request, RequestOutcome::Superseded, true);
        }
        self.superseded.push(Superseded { open, since: self.now });
    }

    // enforces: D32
    /// Whether this is a request that the person knows, with more time. The inbox compared the two:
    /// it asks the same, word for word.
    pub(super) fn goes_on(&mut self, request: &Arc<Request>) -> bool {
        let continues = |old: &Superseded| {
            Some(old.open.request.id) == request.continues.map(RequestHandle::from)
        };
        let Some(at) = self.superseded.iter().position(continues) else {
            // Another question took its place.
            self.give_up_superseded(|old| old.open.request.session_id == request.session_id);
            return false;
        };
        let Superseded { open, .. } = self.superseded.remove(at);
        let number = open.request.number;
        let known = Arc::new(Request { number, ..(**request).clone() });
        self.open.push(Open { request: known.clone(), warned: false, ..open });
        if self.focused().is_none() {
            self.focus = Some(number);
        }
        let left = self.left(&known);
        let arguments = [("number", count(number)), ("time", Argument::Phrase(&left))];
        self.say_about("goes_on", &arguments, &About::request(Class::Outcome, &known));
        true
    }

    /// These are over: nothing that is the same follows.
    pub(super) fn give_up_superseded(&mut self, which: impl Fn(&Superseded) -> bool) {
        let (over, wait) = std::mem::take(&mut self.superseded).into_iter().partition(which);
        self.superseded = wait;
        let over: Vec<Superseded> = over;
        over.into_iter().for_each(|old| self.over(old.open.request, RequestOutcome::Gone, true));
    }
}
