//! How streamed text is held and let go.

use aaep_types::{CoalesceBoundary, SessionId};
use std::sync::Arc;

use super::{PATIENCE, Push, Shaper};
use crate::prepared::{Part, Prepared};
use crate::queue::Item;
use crate::text::{MAX_CHUNK_SCALARS, OpenText, Span};
use crate::time::Mono;

impl Shaper {
    pub(super) fn admit_text(&mut self, event: &Arc<Prepared>, part: &Part, now: Mono) {
        // enforces: H7
        let session = event.session_id();
        let index = self.texts.iter().position(|text| text.holds(event, part));
        if index.is_none() && self.cut == CoalesceBoundary::None {
            return self.enqueue(session, Item::Text(Span::whole(event, part)), now, now);
        }
        let mut spans = Vec::new();
        let index = index.unwrap_or_else(|| {
            self.texts.push(OpenText::new(event, part, now));
            self.texts.len() - 1
        });
        let Some(text) = self.texts.get_mut(index) else { return };
        if !text.continues(part) {
            text.release_all(&mut spans);
            *text = OpenText::new(event, part, now);
        }
        text.push(event, now);
        if part.complete || self.cut == CoalesceBoundary::None {
            text.release_all(&mut spans);
            self.texts.swap_remove(index);
        } else if text.is_ripe(self.cut) && self.pace.allows(text.since, now) {
            text.release_ripe(self.cut, &mut spans);
            text.since = now;
        }
        self.enqueue_spans(session, spans, now);
    }

    fn enqueue_spans(&mut self, session: SessionId, spans: Vec<Span>, now: Mono) {
        for span in spans {
            self.pace.sent(span.scalars(), now);
            self.enqueue(session, Item::Text(span), now, now);
        }
    }

    /// Moves a session's held text to the queue. Text that is only wanted complete lets other
    /// events pass, unless it is so long that it will take several chunks anyway; having been
    /// passed it stays until a newer part can name it, or the session ends.
    pub(super) fn push_out(&mut self, session: SessionId, push: Push, now: Mono) {
        let mut spans = Vec::new();
        let only_complete = self.cut == CoalesceBoundary::Completion;
        for text in self.texts.iter_mut().filter(|text| text.session == session) {
            match push {
                Push::Passing if only_complete && text.scalars() <= MAX_CHUNK_SCALARS / 2 => {
                    text.let_pass();
                }
                Push::Passing | Push::Flush if text.is_overtaken() => {}
                _ => text.release_all(&mut spans),
            }
        }
        self.texts.retain(|text| !text.is_empty());
        self.enqueue_spans(session, spans, now);
    }

    /// Releases text whose boundary, pace or patience has come.
    pub(super) fn ripen(&mut self, now: Mono) {
        let cut = self.cut;
        for index in 0..self.texts.len() {
            // What is left after a cut may have been held long enough, too.
            while self.ripe_at(&self.texts[index]).is_some_and(|at| at <= now) {
                let (text, mut spans) = (&mut self.texts[index], Vec::new());
                if text.is_ripe(cut) {
                    text.release_ripe(cut, &mut spans);
                } else {
                    text.release_all(&mut spans);
                }
                text.since = now;
                let session = text.session;
                self.enqueue_spans(session, spans, now);
            }
        }
    }

    /// When held text may go though nothing follows.
    pub(super) fn ripe_at(&self, text: &OpenText) -> Option<Mono> {
        let paced = self.pace.allowed_at(text.since);
        if text.is_ripe(self.cut) {
            return Some(paced);
        }
        text.seems_finished(self.cut).then(|| text.latest.after(PATIENCE).max(paced))
    }
}
