//! How far a long job is, and handing over to somebody else.

use std::sync::atomic::Ordering;

use aaep_types::{EventKind, Level, TargetKind};
use serde::Serialize;

use crate::body::Body;
use crate::error::Error;
use crate::session::Session;
use crate::words::Words;

/// How many points a percentage has to move before it is said again (T10).
const STEP: u64 = 5;

/// How far a long job is: at least one of percent, step and description.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is said before the session says it"]
pub struct Progress {
    percent: Option<u8>,
    step: Option<(u32, Option<u32>)>,
    description: Option<String>,
    words: Option<Words>,
    eta_seconds: Option<u32>,
}

impl Progress {
    /// So much of a hundred is done.
    pub fn percent(percent: u8) -> Self {
        Self { percent: Some(percent.min(100)), ..Self::default() }
    }

    /// This step, of so many.
    pub fn step(step: u32, total: u32) -> Self {
        Self { step: Some((step, Some(total))), ..Self::default() }
    }

    /// In words.
    pub fn described(description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..Self::default() }
    }

    /// And what is being done.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// And how long it may still take.
    pub fn eta_seconds(mut self, seconds: u32) -> Self {
        self.eta_seconds = Some(seconds);
        self
    }

    /// What is announced, where it should be something else.
    pub fn words(mut self, words: impl Into<Words>) -> Self {
        self.words = Some(words.into());
        self
    }

    fn default_words(&self, english: bool) -> Words {
        let far = match (self.percent, self.step) {
            (Some(percent), _) => format!("{percent} percent done."),
            (None, Some((step, Some(total)))) => format!("Step {step} of {total}."),
            (None, Some((step, None))) => format!("Step {step}."),
            (None, None) => String::new(),
        };
        match &self.description {
            // Figures are in the event besides; our words and the author's are not mixed.
            Some(description) if !english => description.as_str().into(),
            Some(description) => format!("{far} {description}").trim().into(),
            None => Words::ours(far),
        }
    }
}

impl Session {
    // enforces: T9, T10
    /// Says how far a long job is. A percentage that moved by less than five points, and nothing
    /// else, is not worth hearing and is left out.
    pub async fn progress(&self, progress: Progress) -> Result<(), Error> {
        if let Some(percent) = progress.percent.map(u64::from) {
            let last = self.line.percent.load(Ordering::Relaxed);
            let alone = progress.step.is_none() && progress.description.is_none();
            let small = last > 0 && percent.abs_diff(last - 1) < STEP && percent < 100;
            if small && alone {
                return Ok(());
            }
            self.line.percent.store(percent + 1, Ordering::Relaxed);
        }
        let english = self.line.english.load(Ordering::Relaxed);
        let words = progress.words.clone().unwrap_or_else(|| progress.default_words(english));
        let mut far = Body::new();
        if let Some(percent) = progress.percent {
            far = far.number("percent", percent.into());
        }
        if let Some((step, total)) = progress.step {
            far = far.number("step", step.into());
            far = total.into_iter().fold(far, |far, total| far.number("total_steps", total.into()));
        }
        far = far.human_if("description", progress.description.as_deref());
        let mut body = Body::new().json("progress", &far.finish()).words(&words);
        if let Some(seconds) = progress.eta_seconds {
            body = body.number("eta_ms", u64::from(seconds) * 1000);
        }
        self.line.emit(body.event(EventKind::ProgressUpdated)).await
    }

    // enforces: T23, T32
    /// Hands over to somebody else, and says why.
    pub async fn hand_off(&self, handoff: Handoff) -> Result<(), Error> {
        let mut body = Body::new()
            .human("reason", &handoff.reason)
            .text("target_kind", handoff.target.as_str())
            .human("summary_normal", &handoff.reason);
        if let Some(uri) = &handoff.uri {
            body = body.text("target_uri", uri);
        }
        if let Some(level) = handoff.level {
            body = body.text("urgency_for_handoff", level.as_str());
        }
        if let Some(context) = handoff.context {
            let context = context.map_err(|why| {
                let text = format!("The context of a handoff is a JSON object: {why}.");
                Error::misuse(aaep_types::rule::T23, text)
            })?;
            body = body.json("packaged_context", &context);
        }
        self.line.emit(body.event(EventKind::HandoffRequested)).await
    }
}

/// Somebody else is to take over.
#[derive(Clone, Debug)]
#[must_use = "nothing is said before the session hands over"]
pub struct Handoff {
    reason: String,
    target: TargetKind,
    uri: Option<String>,
    level: Option<Level>,
    context: Option<Result<String, String>>,
}

impl Handoff {
    /// Who is wanted, and why.
    pub fn to(target: TargetKind, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), target, uri: None, level: None, context: None }
    }

    /// Where they are reached.
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// How soon.
    pub fn urgency(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    /// What they need to know; an object. It is not announced, but anyone who may hear the session can
    /// read it: no secrets.
    pub fn context(mut self, context: &(impl Serialize + ?Sized)) -> Self {
        self.context = Some(serde_json::to_string(context).map_err(|error| error.to_string()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_words_of_its_own() {
        assert_eq!(Progress::percent(200).default_words(true).normal, "100 percent done.");
        let step = Progress::step(2, 5).description("Copying.");
        assert_eq!(step.default_words(true).normal, "Step 2 of 5. Copying.");
        assert_eq!(step.default_words(false), Words::new("Copying."));
        assert_eq!(Progress::percent(7).default_words(false).language.as_deref(), Some("en"));
        assert_eq!(Progress::described("Copying.").default_words(true).normal, "Copying.");
    }
}
