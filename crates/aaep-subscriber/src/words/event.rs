//! Events in words: the twelve of the protocol, and whatever else comes.

use aaep_types::json::{Members, Raw};
use aaep_types::{
    CancelledBy, ErrorCategory, EventKind, LenientEvent, Level, Limits, TargetKind, ToolStatus,
    Verbosity,
};
use std::borrow::Cow;

use super::Argument;
use super::speech::Speech;
use super::speech::{MAX_NAME, cut};

/// An event's texts, in the listener's language where there are variants.
struct Texts<'h, 'a> {
    heard: &'h LenientEvent<'a>,
    language: &'static str,
}

impl<'a> Texts<'_, 'a> {
    /// A text that is there and says something. Its language does not matter (L11); where it has a
    /// variant in ours, that is taken (§11.5.1).
    fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        // enforces: E26, L11
        let variant = self.heard.text(&format!("{name}_{}", self.language));
        let spoken = |text: &Cow<'_, str>| !text.trim().is_empty();
        variant.filter(spoken).or_else(|| self.heard.text(name)).filter(spoken)
    }

    /// A name that is there, not longer than anybody can bear.
    fn name(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| cut(&text, MAX_NAME).0.to_owned())
    }

    /// The summary that fits the verbosity best.
    fn summary(&self, speech: &Speech<'_>) -> Option<Cow<'a, str>> {
        let order = match (speech.is_terse(), speech.manner.verbosity) {
            (true, _) => ["summary_terse", "summary_normal", "summary_detailed"],
            (_, Verbosity::Detailed) if speech.is_detailed() => {
                ["summary_detailed", "summary_normal", "summary_terse"]
            }
            _ => ["summary_normal", "summary_terse", "summary_detailed"],
        };
        order.iter().find_map(|name| self.text(name))
    }
}

impl Speech<'_> {
    pub(super) fn event(&mut self, json: &str, critical: bool) {
        // The receiver has bounded it (E21); what came this far is not lost to its size.
        let limits = Limits { max_bytes: usize::MAX, ..Limits::default() };
        let Ok(heard) = LenientEvent::parse_with(json.as_bytes(), &limits) else {
            self.say(if critical { "important.unreadable" } else { "unreadable" }, &[]);
            return;
        };
        let texts = Texts { heard: &heard, language: self.words.language() };
        match heard.kind() {
            Some(EventKind::SessionStarted) => {
                // enforces: T30
                let summary = texts.summary(self);
                self.lead(critical);
                self.about("started", "summary", summary.as_deref(), "started.bare");
            }
            Some(EventKind::SessionCompleted) => self.completed(&texts),
            Some(EventKind::SessionErrored) => self.errored(&texts),
            Some(EventKind::SessionCancelled) => self.cancelled(&texts),
            Some(EventKind::StateChanged) => self.state(&texts, critical),
            Some(EventKind::ProgressUpdated) => self.progress(&texts, critical),
            Some(EventKind::ToolInvoked) => self.invoked(&texts, critical),
            Some(EventKind::ToolCompleted) => self.tool_completed(&texts, critical),
            Some(EventKind::OutputStreaming) => {
                let chunk = heard.text("chunk").unwrap_or_default();
                self.text(&chunk, false);
            }
            Some(EventKind::AwaitingConfirmation) => self.unanswerable_consent(&heard),
            Some(EventKind::AwaitingClarification) => self.unanswerable_question(&heard),
            Some(EventKind::HandoffRequested) => self.handoff(&texts),
            None => self.unknown(&texts, critical),
        }
        // enforces: T28
        if critical && self.is_silent() {
            self.without_text(heard.type_name(), "important.bare");
        }
    }

    /// What may not wait says so, where its kind does not.
    fn lead(&mut self, critical: bool) {
        if critical {
            self.say("important.lead", &[]);
        }
    }

    /// A text of the agent's, however long.
    fn quoted(&mut self, text: Option<&str>) {
        if let Some(text) = text {
            self.bounded(text, |speech, text| speech.quote(text));
        }
    }

    fn completed(&mut self, texts: &Texts<'_, '_>) {
        // enforces: T30, T36
        self.say("completed", &[]);
        self.quoted(texts.summary(self).as_deref());
        if self.is_detailed() {
            self.new_line();
            self.quoted(texts.text("output_summary").as_deref());
            if let Some(ms) = texts.heard.number("duration_ms").filter(|ms| *ms >= 1000) {
                let time = self.words.duration(ms / 1000);
                self.say("completed.took", &[("time", Argument::Phrase(&time))]);
            }
        }
    }

    fn errored(&mut self, texts: &Texts<'_, '_>) {
        // enforces: T5, T30
        let summary = texts.summary(self);
        self.about("errored", "summary", summary.as_deref(), "errored.bare");
        let category = texts.text("error_category");
        match category.and_then(|word| ErrorCategory::parse(&word).ok()) {
            _ if self.is_terse() => {}
            Some(ErrorCategory::Transient) => self.say("errored.transient", &[]),
            Some(ErrorCategory::Permanent) => self.say("errored.permanent", &[]),
            Some(ErrorCategory::RequiresUser) => self.say("errored.requires_user", &[]),
            Some(ErrorCategory::Unknown) | None => {}
        }
        self.new_line();
        self.about("errored.hint", "hint", texts.text("remediation_hint").as_deref(), "");
        if self.is_detailed() {
            self.new_line();
            self.about("errored.code", "code", texts.name("error_code").as_deref(), "");
        }
    }

    fn cancelled(&mut self, texts: &Texts<'_, '_>) {
        // enforces: T30, V2
        let by = texts.text("cancelled_by").and_then(|word| CancelledBy::parse(&word).ok());
        let key = match by {
            Some(CancelledBy::User) => "cancelled.user",
            Some(CancelledBy::Producer) => "cancelled.producer",
            Some(CancelledBy::Timeout) => "cancelled.timeout",
            Some(CancelledBy::System) => "cancelled.system",
            None => "cancelled",
        };
        self.say(key, &[]);
        self.quoted(texts.summary(self).as_deref());
        if !self.is_terse() {
            self.new_line();
            let result = texts.text("partial_result");
            self.about("cancelled.partial", "result", result.as_deref(), "");
        }
    }

    fn state(&mut self, texts: &Texts<'_, '_>, critical: bool) {
        self.lead(critical);
        let summary = texts.summary(self);
        // In detail, and where there is nothing else, the state itself is said.
        if summary.is_none() || self.is_detailed() {
            self.state_itself(texts.name("to_state").as_deref());
        }
        self.quoted(summary.as_deref());
    }

    fn state_itself(&mut self, state: Option<&str>) {
        // enforces: T8, V2
        match state {
            Some("idle") => self.say("state.idle", &[]),
            Some("thinking") => self.say("state.thinking", &[]),
            Some("calling_tool") => self.say("state.calling_tool", &[]),
            Some("writing_output") => self.say("state.writing_output", &[]),
            Some("awaiting_input") => self.say("state.awaiting_input", &[]),
            Some("deciding") => self.say("state.deciding", &[]),
            Some("handing_off") => self.say("state.handing_off", &[]),
            Some(other) => self.say("state.other", &[("state", Argument::Theirs(other))]),
            None => self.say("state.none", &[]),
        }
    }

    fn progress(&mut self, texts: &Texts<'_, '_>, critical: bool) {
        self.lead(critical);
        let progress = texts.heard.object("progress");
        let number = |name| progress.as_ref().and_then(|members| whole(members, name));
        let description = progress.as_ref().and_then(|members| members.text("description"));
        let description = description.filter(|text| !text.trim().is_empty());
        let (percent, step, total) = (number("percent"), number("step"), number("total_steps"));
        let told = percent.is_some() || step.is_some();
        let text = texts.summary(self).or(description);
        let quotes = !told || !self.is_terse();
        // What the agent says with the same numbers is not said twice.
        let theirs = text.as_deref().filter(|_| quotes).unwrap_or_default();
        let percent_again = percent.is_some_and(|percent| says_percent(theirs, percent));
        let steps = [step, total].into_iter().flatten();
        let steps_again = step.is_some() && says_numbers(theirs, steps);
        if let Some(count) = percent.filter(|_| !percent_again) {
            self.say("progress.percent", &[("count", Argument::Count(count))]);
        }
        match (step, total) {
            // One number is enough, unless more is wanted.
            _ if percent.is_some() && !self.is_detailed() => {}
            _ if steps_again => {}
            (Some(step), Some(total)) => self.say(
                "progress.step_of",
                &[("step", Argument::Count(step)), ("total", Argument::Count(total))],
            ),
            (Some(step), None) => self.say("progress.step", &[("step", Argument::Count(step))]),
            (None, _) => {}
        }
        if quotes {
            self.quoted(text.as_deref());
        }
        if !told && text.is_none() {
            self.say("progress.bare", &[]);
        }
        if let Some(ms) = texts.heard.number("eta_ms").filter(|ms| *ms >= 1000)
            && self.is_detailed()
        {
            let time = self.words.duration(ms / 1000);
            self.say("progress.left", &[("time", Argument::Phrase(&time))]);
        }
    }

    fn invoked(&mut self, texts: &Texts<'_, '_>, critical: bool) {
        // enforces: T30
        self.lead(critical);
        let name = texts.name("tool");
        let unnamed = self.words.phrase("tool.unnamed", &[]);
        let tool = name.as_deref().map_or(Argument::Phrase(&unnamed), Argument::Theirs);
        match texts.summary(self) {
            Some(text) if self.is_detailed() => self.bounded(&text, |speech, text| {
                let both = [("tool", tool), ("summary", Argument::Theirs(text))];
                speech.say("tool.invoked", &both);
            }),
            Some(text) => self.quoted(Some(&text)),
            None => self.say("tool.invoked.bare", &[("tool", tool)]),
        }
        if texts.heard.flag("irreversible") == Some(true) {
            self.say("undo.irreversible", &[]);
        }
        if self.is_detailed() {
            self.new_line();
            let arguments = texts.text("args_summary");
            self.about("tool.arguments", "arguments", arguments.as_deref(), "");
        }
    }

    fn tool_completed(&mut self, texts: &Texts<'_, '_>, critical: bool) {
        // enforces: V2
        self.lead(critical);
        let name = texts.name("tool");
        let unnamed = self.words.phrase("tool.unnamed", &[]);
        let tool = ("tool", name.as_deref().map_or(Argument::Phrase(&unnamed), Argument::Theirs));
        let summary = texts.summary(self);
        let status = texts.name("status");
        match status.as_deref().map(ToolStatus::parse) {
            Some(Ok(ToolStatus::Success)) | None => match &summary {
                Some(text) => return self.quoted(Some(text)),
                None => return self.say("tool.completed", &[tool]),
            },
            Some(Ok(ToolStatus::Error)) => self.say("tool.error", &[tool]),
            Some(Ok(ToolStatus::Timeout)) => self.say("tool.timeout", &[tool]),
            Some(Err(_)) => {
                let status = status.as_deref().unwrap_or_default();
                self.say("tool.ended", &[tool, ("status", Argument::Theirs(status))]);
            }
        }
        self.quoted(summary.or_else(|| texts.text("error_message")).as_deref());
    }

    fn handoff(&mut self, texts: &Texts<'_, '_>) {
        // enforces: V2
        let kind = texts.text("target_kind").and_then(|word| TargetKind::parse(&word).ok());
        let key = match kind {
            Some(TargetKind::Human) => "handoff.human",
            Some(TargetKind::SpecialistAgent) => "handoff.specialist_agent",
            Some(TargetKind::EscalationQueue) => "handoff.escalation_queue",
            None => "handoff.other",
        };
        let reason = texts.text("reason").or_else(|| texts.summary(self));
        self.about(key, "reason", reason.as_deref(), "handoff.bare");
        let soon = texts.text("urgency_for_handoff").and_then(|word| Level::parse(&word).ok());
        if soon == Some(Level::High) {
            self.say("handoff.high", &[]);
        }
    }

    /// An event of a type that we do not know: its summary is enough, and what may not wait is
    /// said even without one.
    fn unknown(&mut self, texts: &Texts<'_, '_>, critical: bool) {
        // enforces: E6, T28, V2
        let key = if critical { "important" } else { "notice" };
        match texts.summary(self) {
            Some(text) => self.about(key, "summary", Some(&text), ""),
            None if self.is_detailed() && !critical => {
                self.without_text(texts.heard.type_name(), "notice.bare");
            }
            None => {}
        }
    }

    fn without_text(&mut self, type_name: &str, key: &str) {
        let (name, _) = cut(type_name, MAX_NAME);
        self.say(key, &[("type", Argument::Theirs(name))]);
    }
}

/// The numbers in a text, each with what follows it.
fn numbers(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(|sign: char| sign.is_ascii_digit())?;
        let run = &rest[start..];
        let end = run.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(run.len());
        let (number, after) = run.split_at(end);
        rest = after;
        Some((number, after))
    })
}

/// Whether a text has all of these numbers, in this order.
fn says_numbers(text: &str, wanted: impl Iterator<Item = u64>) -> bool {
    let mut said = numbers(text).map(|(number, _)| number.parse::<u64>().ok());
    let mut wanted = wanted;
    wanted.all(|wanted| said.any(|number| number == Some(wanted)))
}

/// Whether a text says that it is so many percent.
fn says_percent(text: &str, percent: u64) -> bool {
    numbers(text).any(|(number, after)| {
        let after = after.trim_start();
        number.parse() == Ok(percent)
            && (after.starts_with(['%', '٪']) || after.starts_with("percent"))
    })
}

/// A member that is a number of 0 or more, fractions cut off.
fn whole(members: &Members<'_>, name: &str) -> Option<u64> {
    match members.find(name)? {
        Raw::Number(text) => {
            let value = text.parse::<f64>().ok()?;
            (0.0..=aaep_types::MAX_SAFE as f64).contains(&value).then_some(value as u64)
        }
        _ => None,
    }
}
