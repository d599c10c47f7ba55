//! How fast the listener listens, and which progress they have heard (§5.3.1.10–11).

use aaep_types::{Level, SessionId};
use std::time::Duration;

use crate::prepared::{Prepared, Role};
use crate::time::Mono;

/// Scalar values that make a word: five letters and a space.
const WORD_SCALARS: u64 = 6;
/// How far ahead of the listener text may be sent.
pub const PACE_LEAD: Duration = Duration::from_secs(2);
/// How long text waits for the listener at most.
pub const PACE_HOLD: Duration = Duration::from_secs(10);
/// Under a low cognitive load, by how much progress has to grow to be told at once (T10).
pub const PROGRESS_STEP_PERCENT: f64 = 5.0;
/// Of how many sessions the progress is remembered.
const MAX_SHOWN: usize = 256;

/// When the listener will have heard all text that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    words_per_minute: Option<u16>,
    heard_at: Mono,
}

impl Pace {
    pub fn new(words_per_minute: Option<u16>) -> Self {
        Self { words_per_minute, heard_at: Mono::START }
    }

    pub fn sent(&mut self, scalars: u64, now: Mono) {
        if let Some(pace) = self.words_per_minute {
            let micros = scalars.saturating_mul(60_000_000) / WORD_SCALARS / u64::from(pace.max(1));
            self.heard_at = self.heard_at.max(now).after(Duration::from_micros(micros));
        }
    }

    /// When text may go that has been held since then: when the listener is nearly done with what
    /// came before, and in any case after a while.
    pub fn allowed_at(&self, since: Mono) -> Mono {
        // enforces: H10
        match self.words_per_minute {
            Some(_) => self.heard_at.before(PACE_LEAD).min(since.after(PACE_HOLD)),
            None => Mono::START,
        }
    }

    pub fn allows(&self, since: Mono, now: Mono) -> bool {
        self.allowed_at(since) <= now
    }
}

/// Which progress was told last, for each session.
#[derive(Debug, Default)]
pub(crate) struct Shown(Vec<(SessionId, f64)>);

impl Shown {
    /// Whether this is worth telling at once: the first, the last, or a step on from what was told.
    pub fn is_step(&self, session: SessionId, percent: Option<f64>) -> bool {
        let Some(percent) = percent else { return false };
        let told = self.0.iter().find(|(of, _)| *of == session);
        told.is_none_or(|(_, told)| percent - told >= PROGRESS_STEP_PERCENT || percent >= 100.0)
    }

    pub fn note(&mut self, event: &Prepared, load: Level) {
        let Role::Progress { percent: Some(percent) } = event.role() else { return };
        if load != Level::Low {
            return;
        }
        self.forget(event.session_id());
        if self.0.len() >= MAX_SHOWN {
            self.0.remove(0);
        }
        self.0.push((event.session_id(), *percent));
    }

    pub fn forget(&mut self, session: SessionId) {
        self.0.retain(|(of, _)| *of != session);
    }
}
