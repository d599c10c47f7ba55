//! What subscribers ask for (§5.3.1), and the oracle's own reading of it.

use std::fmt::Write as _;

use aaep_types::EventKind;

use crate::random::Random;

/// Where streamed text may be cut; the first leaves it as it comes, the third is the default.
const CUTS: [&str; 5] = [
    r#"["none"]"#,
    r#"["word"]"#,
    r#"["sentence","completion"]"#,
    r#"["paragraph"]"#,
    r#"["completion"]"#,
];
const DEFAULT_CUT: usize = 2;

type Admits = fn(EventKind) -> bool;

/// Filters, and what they let through. The first is the default.
const FILTERS: [(&str, Admits); 5] = [
    (r#"{"include":["aaep:agent.*"]}"#, |_| true),
    (r#"{"exclude":["aaep:agent.state.changed"]}"#, |kind| kind != EventKind::StateChanged),
    (r#"{"include":["aaep:agent.output.*"]}"#, |kind| kind == EventKind::OutputStreaming),
    (r#"{"exclude":["aaep:agent.output.*","aaep:agent.progress.updated"]}"#, |kind| {
        !matches!(kind, EventKind::OutputStreaming | EventKind::ProgressUpdated)
    }),
    (
        r#"{"include":["aaep:agent.*"],"exclude":["aaep:agent.session.*","aaep:agent.tool.*"]}"#,
        |kind| {
            let tool = matches!(kind, EventKind::ToolInvoked | EventKind::ToolCompleted);
            !tool && kind != EventKind::SessionStarted && !kind.is_terminal()
        },
    ),
];

const RATES: [u32; 4] = [1, 2, 5, 50];
const VERBOSITIES: [&str; 4] = ["", "terse", "normal", "detailed"];
const LANGUAGES: [&str; 3] = ["", r#"["en"]"#, r#"["fr","de-AT"]"#];
const PACES: [u32; 3] = [0, 60, 300];

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) confirms: bool,
    pub(crate) clarifies: bool,
    /// Events a second; 0 for no limit.
    pub(crate) rate: u32,
    cut: usize,
    filter: usize,
    verbosity: usize,
    language: usize,
    pub(crate) low_load: bool,
    pace: usize,
    /// How many times as long its user needs to answer.
    pub(crate) factor: u64,
}

impl Wants {
    /// What holds for those who ask for nothing.
    const NOTHING: Wants = Wants {
        confirms: false,
        clarifies: false,
        rate: 0,
        cut: DEFAULT_CUT,
        filter: 0,
        verbosity: 0,
        language: 0,
        low_load: false,
        pace: 0,
        factor: 1,
    };

    /// Everything as it comes, and the right to answer.
    pub(crate) const PLAIN: Wants =
        Wants { confirms: true, clarifies: true, cut: 0, ..Wants::NOTHING };

    /// Anything; most people can answer.
    pub(crate) fn anything(random: &mut Random) -> Self {
        let one_in = |random: &mut Random, times, of: usize| {
            if random.one_in(times) { random.below(of) } else { 0 }
        };
        Wants {
            confirms: !random.one_in(6),
            clarifies: !random.one_in(6),
            rate: if random.one_in(2) { RATES[random.below(4)] } else { 0 },
            cut: random.below(CUTS.len()),
            filter: one_in(random, 2, FILTERS.len()),
            verbosity: one_in(random, 2, VERBOSITIES.len()),
            language: one_in(random, 2, LANGUAGES.len()),
            low_load: random.one_in(4),
            pace: one_in(random, 3, PACES.len()),
            factor: if random.one_in(6) { 2 } else { 1 },
        }
    }

    /// The same but for one or two things.
    pub(crate) fn changed(mut self, random: &mut Random) -> Self {
        for _ in 0..=random.below(2) {
            match random.below(8) {
                0..3 => self.confirms = !self.confirms,
                3 => self.rate = RATES[random.below(4)],
                4 => self.cut = random.below(CUTS.len()),
                5 => self.filter = random.below(FILTERS.len()),
                6 => self.low_load = !self.low_load,
                _ => self.factor = 3 - self.factor.min(2),
            }
        }
        self
    }

    /// Whether nothing is left out or merged: on such a stream a hole means loss (D15).
    pub(crate) fn is_plain(&self) -> bool {
        self.rate == 0 && self.cut == 0 && self.filter == 0 && !self.low_load
    }

    /// Whether no filter leaves anything out.
    pub(crate) fn hears_all(&self) -> bool {
        self.filter == 0
    }

    /// The same without a filter.
    pub(crate) fn unfiltered(self) -> Self {
        Self { filter: 0, ..self }
    }

    /// The same with a filter that leaves progress out.
    #[cfg(test)]
    pub(crate) fn without_progress(self) -> Self {
        Self { filter: 3, ..self }
    }

    /// Whether something may wait though it could be sent.
    pub(crate) fn may_hold(&self) -> bool {
        self.rate > 0 || self.low_load
    }

    pub(crate) fn admits(&self, kind: Option<EventKind>) -> bool {
        kind.is_some_and(FILTERS[self.filter].1)
    }

    pub(crate) fn hears_text(&self) -> bool {
        self.admits(Some(EventKind::OutputStreaming))
    }

    /// A request for a subscription.
    pub(crate) fn request(&self) -> String {
        let capabilities = self.capabilities(&Wants::NOTHING);
        format!(
            r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"x","capabilities":{capabilities}}}"#
        )
    }

    /// A request for other terms; it names only what changes.
    pub(crate) fn renegotiation(&self, id: &str, before: &Wants) -> String {
        let capabilities = self.capabilities(before);
        format!(
            r#"{{"type":"subscription.renegotiate","subscription_id":"{id}","capabilities":{capabilities}}}"#
        )
    }

    /// What differs from `before`, as JSON.
    fn capabilities(&self, before: &Wants) -> String {
        let mut out = String::from("{");
        let mut name = |differs: bool, name: &str, value: std::fmt::Arguments<'_>| {
            if differs {
                let comma = if out.len() > 1 { "," } else { "" };
                // Writing to a string does not fail.
                let _ = write!(out, r#"{comma}"{name}":{value}"#);
            }
        };
        let (confirms, clarifies) = (self.confirms, self.clarifies);
        name(before.rate != self.rate, "max_events_per_second", format_args!("{}", self.rate));
        let verbosity = VERBOSITIES[self.verbosity];
        let says = before.verbosity != self.verbosity;
        name(says, "preferred_verbosity", format_args!("\"{verbosity}\""));
        let speaks = before.language != self.language;
        name(speaks, "languages", format_args!("{}", LANGUAGES[self.language]));
        let differs = before.confirms != confirms;
        name(differs, "supports_confirmation_reply", format_args!("{confirms}"));
        let differs = before.clarifies != clarifies;
        name(differs, "supports_clarification_reply", format_args!("{clarifies}"));
        name(before.cut != self.cut, "coalesce_boundaries", format_args!("{}", CUTS[self.cut]));
        let differs = before.filter != self.filter;
        name(differs, "event_filters", format_args!("{}", FILTERS[self.filter].0));
        let load = if self.low_load { "low" } else { "medium" };
        name(before.low_load != self.low_load, "cognitive_load", format_args!("\"{load}\""));
        name(before.pace != self.pace, "pace_wpm", format_args!("{}", PACES[self.pace]));
        let differs = before.factor != self.factor;
        // Those who ask for anything at all can read what became of requests.
        let uris = r#"["urn:aaep-rs:outcome:v1","urn:aaep-rs:timing:v1"]"#;
        name(*before == Wants::NOTHING, "supported_extensions", format_args!("{uris}"));
        name(differs, "timing", format_args!(r#"{{"factor":{}}}"#, self.factor));
        out.push('}');
        out
    }
}
