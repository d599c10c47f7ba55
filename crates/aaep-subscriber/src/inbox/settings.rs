//! What a listener wants, and how it is written into a handshake (§5.3).

use aaep_types::json::Writer;
use aaep_types::resume::{self, LeftOff};
use aaep_types::{
    AAEP_VERSION, CoalesceBoundary, KNOWN_EXTENSIONS, Level, SubscriptionId, Verbosity,
};

/// Where the agent's text is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextBy {
    /// After each sentence.
    #[default]
    Sentence,
    /// After each paragraph.
    Paragraph,
    /// When all of it is there.
    End,
}

/// What a listener wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The program's name for programs.
    pub subscriber_id: String,
    /// Its name for people.
    pub subscriber_name: String,
    /// Its version.
    pub subscriber_version: String,
    /// Language tags, the dearest first. What is no tag is left out.
    pub languages: Vec<String>,
    /// How much is to be said.
    pub verbosity: Verbosity,
    /// How much the listener can take in. With `Low`, producers leave things out.
    pub load: Level,
    /// Words a minute that are comfortable, from 50 to 1000.
    pub pace_wpm: Option<u16>,
    /// Events a second that producers may send, critical ones aside; no limit when absent.
    pub rate: Option<u32>,
    /// Patterns of event types that are wanted.
    pub include: Vec<String>,
    /// Patterns of those that are not.
    pub exclude: Vec<String>,
    /// Whether the user answers from here.
    pub replies: bool,
    /// Where producers may cut streamed text. With `None`, the default, they send it as it comes and
    /// it is collected here; only then does a hole in the numbers mean loss (D15).
    pub boundaries: Vec<CoalesceBoundary>,
    /// Where text is told.
    pub text: TextBy,
    /// How many times as long the user needs to answer (D32), at most 1000.
    pub time_factor: u32,
    /// Who answers, if that is to be said in replies.
    pub decided_by: Option<String>,
    /// Whether only producers with a signed manifest are wanted (H11).
    pub signed_only: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            subscriber_id: "aaep-subscriber".into(),
            subscriber_name: String::new(),
            subscriber_version: env!("CARGO_PKG_VERSION").into(),
            languages: vec!["en".into()],
            verbosity: Verbosity::Normal,
            load: Level::Medium,
            pace_wpm: None,
            rate: None,
            include: vec!["*".into()],
            exclude: Vec::new(),
            replies: true,
            boundaries: vec![CoalesceBoundary::None],
            text: TextBy::Sentence,
            time_factor: 1,
            decided_by: None,
            signed_only: false,
        }
    }
}

/// The most languages and patterns that are asked for.
const MAX_LIST: usize = 32;
/// The longest pattern.
const MAX_PATTERN: usize = 256;

impl Settings {
    // enforces: H24, C28
    /// `subscription.request`, without these extensions, from where we left off.
    pub(super) fn request(&self, without: &[&str], left_off: Option<LeftOff>) -> String {
        let mut out = Writer::new();
        out.open('{');
        member(&mut out, "type", "subscription.request");
        member(&mut out, "aaep_version", AAEP_VERSION);
        let id = cut(&self.subscriber_id, 256);
        member(&mut out, "subscriber_id", if id.is_empty() { "aaep-subscriber" } else { id });
        if !self.subscriber_name.is_empty() {
            member(&mut out, "subscriber_name", cut(&self.subscriber_name, 256));
        }
        if !self.subscriber_version.is_empty() {
            member(&mut out, "subscriber_version", cut(&self.subscriber_version, 64));
        }
        out.name("capabilities");
        self.capabilities(&mut out, without, (None, left_off));
        out.close('}');
        out.finish()
    }

    /// `subscription.renegotiate` to these settings. `had_rate`: there was a limit, which has to be
    /// lifted; what is not named stays as it was (§5.7).
    pub(super) fn renegotiate(
        &self,
        subscription: SubscriptionId,
        without: &[&str],
        had_rate: bool,
    ) -> String {
        let mut out = Writer::new();
        out.open('{');
        member(&mut out, "type", "subscription.renegotiate");
        member(&mut out, "subscription_id", subscription.as_str());
        out.name("capabilities");
        self.capabilities(&mut out, without, (Some(had_rate), None));
        out.close('}');
        out.finish()
    }

    fn capabilities(
        &self,
        out: &mut Writer,
        without: &[&str],
        (again, left_off): (Option<bool>, Option<LeftOff>),
    ) {
        out.open('{');
        if let Some(rate) = self.rate.or((again == Some(true)).then_some(100_000)) {
            number(out, "max_events_per_second", u64::from(rate.clamp(1, 100_000)));
        }
        member(out, "preferred_verbosity", self.verbosity.as_str());
        let languages = self.languages.iter().map(String::as_str);
        let tags = languages.filter(|tag| aaep_types::LanguageTag::parse(*tag).is_ok());
        list(out, "languages", tags);
        if self.signed_only {
            out.name("accept_signed_manifests_only");
            out.display(true);
            out.comma();
        }
        for name in ["supports_confirmation_reply", "supports_clarification_reply"] {
            out.name(name);
            out.display(self.replies);
            out.comma();
        }
        list(out, "coalesce_boundaries", self.boundaries.iter().map(|boundary| boundary.as_str()));
        self.filters(out);
        out.json(r#""supported_conformance_levels":[1,2,3],"#);
        let ours = KNOWN_EXTENSIONS.iter().filter(|known| !without.contains(&known.prefix));
        list(out, "supported_extensions", ours.map(|known| known.uri));
        member(out, "cognitive_load", self.load.as_str());
        if let Some(pace) = self.pace_wpm {
            number(out, "pace_wpm", u64::from(pace.clamp(50, 1000)));
        }
        if (self.time_factor > 1 || again.is_some()) && !without.contains(&"timing") {
            let factor = self.time_factor.clamp(1, 1000);
            out.json(&format!(r#""timing":{{"factor":{factor}}},"#));
        }
        if let Some(left_off) = left_off.filter(|_| !without.contains(&resume::PREFIX)) {
            out.name(resume::PREFIX);
            out.open('{');
            member(out, "last_event_id", left_off.last_event.as_str());
            if let Some(id) = left_off.subscription {
                member(out, "subscription_id", id.as_str());
            }
            out.close('}');
            out.comma();
        }
        out.close('}');
    }

    fn filters(&self, out: &mut Writer) {
        let sound = |pattern: &&String| !pattern.is_empty() && pattern.len() <= MAX_PATTERN;
        out.name("event_filters");
        out.open('{');
        list(out, "include", self.include.iter().filter(sound).map(String::as_str));
        list(out, "exclude", self.exclude.iter().filter(sound).map(String::as_str));
        out.close('}');
        out.comma();
    }
}

pub(super) fn member(out: &mut Writer, name: &str, value: &str) {
    out.name(name);
    out.string(value);
    out.comma();
}

fn number(out: &mut Writer, name: &str, value: u64) {
    out.name(name);
    out.display(value);
    out.comma();
}

/// A list without repetitions; nothing at all if it would be empty.
fn list<'t>(out: &mut Writer, name: &str, items: impl Iterator<Item = &'t str>) {
    let mut seen: Vec<&str> = Vec::new();
    for item in items {
        if !seen.iter().any(|other| other.eq_ignore_ascii_case(item)) && seen.len() < MAX_LIST {
            seen.push(item);
        }
    }
    if seen.is_empty() {
        return;
    }
    out.name(name);
    out.open('[');
    for item in seen {
        out.string(item);
        out.comma();
    }
    out.close(']');
    out.comma();
}

pub(super) use aaep_types::cut;

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_types::Message;

    // covers: H24, C28
    #[test]
    fn a_request_says_everything_that_a_listener_can_do_and_wants() {
        let settings = Settings {
            subscriber_name: "é".repeat(300),
            languages: vec!["ar".into(), "no tag".into(), "AR".into(), "zh".into()],
            rate: Some(5),
            pace_wpm: Some(3),
            exclude: vec!["aaep:agent.progress.updated".into(), String::new()],
            time_factor: 3,
            ..Settings::default()
        };
        let text = settings.request(&[], None);
        let Ok(Message::Request(request)) = Message::parse(text.as_bytes()) else {
            panic!("{text}\n{:?}", aaep_types::validate(text.as_bytes()))
        };
        let wants = &request.capabilities;
        assert_eq!(wants.rate(), Some(5));
        assert!(wants.replies_to_confirmations() && wants.replies_to_clarifications());
        assert_eq!(wants.languages().len(), 2);
        assert_eq!(wants.levels(), [1, 2, 3]);
        assert_eq!(wants.included(), ["*"]);
        assert_eq!(wants.supported_extensions.as_deref().unwrap().len(), 7);
        assert!(text.contains(r#""timing":{"factor":3}"#) && text.contains(r#""pace_wpm":50"#));
    }

    // covers: H24
    #[test]
    fn a_renegotiation_names_also_what_has_its_default_again() {
        let text =
            Settings::default().renegotiate(SubscriptionId::from_bits(1), &["control"], true);
        let Ok(Message::Renegotiate(wanted)) = Message::parse(text.as_bytes()) else {
            panic!("{text}")
        };
        assert_eq!(wanted.capabilities.rate(), Some(100_000));
        assert!(!text.contains("control"));
    }

    #[test]
    fn nothing_that_a_user_sets_makes_a_request_that_is_none() {
        let empty = Settings {
            subscriber_id: String::new(),
            languages: Vec::new(),
            include: vec!["x".repeat(999)],
            boundaries: Vec::new(),
            replies: false,
            ..Settings::default()
        };
        let text = empty.request(&["outcome", "timing", "control"], None);
        assert!(matches!(Message::parse(text.as_bytes()), Ok(Message::Request(_))), "{text}");
    }
}
