//! What an agent says of an event besides its payload (§3.3, §3.4), within bounds.
//!
//! The hub writes the envelope. Seven of its members an agent may fill: the addresses of its
//! extensions and what they add, how much is said, how urgent it is, the language, a trace, and, in a
//! session of several agents, which of them speaks.

use aaep_types::agent_api::agent_id_of;
use aaep_types::json::{Members, Raw, Writer, elements};
use aaep_types::{CORE_CONTEXT, EventKind, KNOWN_EXTENSIONS, Rule, Urgency, Verbosity, rule};

use crate::refusal::{Blame, Refusal};

/// The members of the envelope that an agent may fill.
const SAYABLE: [&str; 7] = [
    "@context",
    "producer",
    "verbosity",
    "urgency",
    "localization_hints",
    "correlation_id",
    "extensions",
];

/// Addresses of extensions in one event, and bytes of one.
const CONTEXTS: usize = 8;
const CONTEXT_BYTES: usize = 512;

/// Bytes of everything that extensions add to one event.
const EXTENSIONS_BYTES: usize = 16 * 1024;

/// Bytes of a trace.
const CORRELATION_BYTES: usize = 512;

/// The prefixes of ours that agents may use: an agent that redacts a text says so, and
/// an agent that opens a session says who else speaks in it.
const SHARED: [&str; 2] = [aaep_types::redaction::PREFIX, aaep_types::team::PREFIX];

/// What an agent says of one event besides its payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// Addresses of extensions, after the protocol's own.
    pub(crate) contexts: Vec<String>,
    /// The sub-agent that speaks, as a JSON object.
    pub(crate) producer: Option<String>,
    pub(crate) verbosity: Option<Verbosity>,
    pub(crate) urgency: Option<Urgency>,
    /// The members of `localization_hints`, as JSON without braces.
    pub(crate) localization: Option<String>,
    pub(crate) correlation_id: Option<String>,
    /// The members of `extensions`, as JSON without braces.
    pub(crate) extensions: Option<String>,
}

/// Whether an agent may fill this member of the envelope.
pub(crate) fn is_sayable(name: &str) -> bool {
    SAYABLE.contains(&name)
}

fn refused(rule: Rule, text: impl Into<String>) -> Refusal {
    Refusal::new(Blame::Malformed, rule, text)
}

impl Hints {
    // enforces: E3, E12, E13, E16, E17
    /// Takes the hints out of an agent's members: the payload without them, and them, if there are any.
    /// Both are JSON without braces.
    pub(crate) fn split(
        members: String,
        kind: Option<EventKind>,
    ) -> Result<(String, Option<Box<Self>>), Refusal> {
        let object = ["{", &members, "}"].concat();
        let all = Members::whole(&object, 64).ok().flatten().unwrap_or_default();
        if !all.iter().any(|member| is_sayable(&member.name)) {
            return Ok((members, None));
        }
        let mut hints = Self::default();
        let mut out = Writer::with_capacity(members.len());
        for member in all.iter() {
            if !hints.take(&member.name, member.value, kind)? {
                out.name(&member.name);
                out.raw(member.value);
                out.comma();
            }
        }
        let mut payload = out.finish();
        payload.pop();
        Ok((payload, Some(Box::new(hints))))
    }

    /// Whether this was a hint.
    pub(crate) fn take(
        &mut self,
        name: &str,
        value: Raw<'_>,
        kind: Option<EventKind>,
    ) -> Result<bool, Refusal> {
        match name {
            "@context" => self.contexts = contexts(value)?,
            "producer" => {
                let text =
                    "`producer` is an object with the `agent_id` of the sub-agent that speaks.";
                let members = inside(value).ok_or_else(|| refused(rule::E11, text))?;
                self.producer = Some(["{", &members, "}"].concat());
            }
            "verbosity" => {
                let word = text(value).and_then(|word| Verbosity::parse(&word).ok());
                let text = "`verbosity` is terse, normal or detailed.";
                self.verbosity = Some(word.ok_or_else(|| refused(rule::E12, text))?);
            }
            "urgency" => self.urgency = Some(urgency(value, kind)?),
            "localization_hints" => {
                let text =
                    "`localization_hints` is an object, such as {\"primary_language\":\"yo-NG\"}.";
                let Raw::Object(object) = value else { return Err(refused(rule::E14, text)) };
                self.localization = members_inside(object);
            }
            "correlation_id" => {
                let id = text(value).filter(|id| id.len() <= CORRELATION_BYTES);
                let text =
                    format!("`correlation_id` is a text of at most {CORRELATION_BYTES} bytes.");
                self.correlation_id = Some(id.ok_or_else(|| refused(rule::E16, text))?);
            }
            "extensions" => self.extensions = extensions(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The id of the sub-agent that speaks, if one does.
    pub(crate) fn speaker(&self) -> Option<String> {
        self.producer.as_deref().map(|producer| agent_id_of(producer).unwrap_or_default())
    }

    /// The sub-agent that speaks, as a JSON object, if one does.
    pub(crate) fn sub_agent(&self) -> Option<Box<str>> {
        self.producer.as_deref().map(Into::into)
    }

    /// What an event said besides its payload, to say it again.
    pub(crate) fn of_event(event: &str) -> Option<Box<Self>> {
        let all = Members::whole(event, 64).ok().flatten()?;
        let mut hints = Self::default();
        for member in all.iter() {
            match &*member.name {
                // Those of ours are added again where they belong.
                "extensions" => {
                    hints.extensions = inside(member.value).map(|inside| of_agents(&inside));
                }
                "urgency" => {}
                name => {
                    let _ = hints.take(name, member.value, None);
                }
            }
        }
        let ours = |uri: &String| is_ours_alone(prefix_of(uri).unwrap_or_default());
        hints.contexts.retain(|uri| !ours(uri));
        hints.extensions = hints.extensions.filter(|members| !members.is_empty());
        Some(Box::new(hints))
    }
}

/// The prefix that one of our addresses declares.
fn prefix_of(uri: &str) -> Option<&'static str> {
    KNOWN_EXTENSIONS.iter().find(|known| known.uri == uri).map(|known| known.prefix)
}

// enforces: X7, S1
/// Whether only the hub speaks under this prefix: what it says there, people act on.
pub(crate) fn is_ours_alone(prefix: &str) -> bool {
    !SHARED.contains(&prefix) && KNOWN_EXTENSIONS.iter().any(|known| known.prefix == prefix)
}

fn text(value: Raw<'_>) -> Option<String> {
    match value {
        Raw::String(text) => Some(text.decode().into_owned()),
        _ => None,
    }
}

/// The members of an object, as JSON without braces.
fn inside(value: Raw<'_>) -> Option<String> {
    let Raw::Object(object) = value else { return None };
    Some(between_braces(object)?.to_owned())
}

/// The same for an object with any.
pub(crate) fn members_inside(object: &str) -> Option<String> {
    between_braces(object).filter(|members| !members.is_empty()).map(str::to_owned)
}

fn between_braces(object: &str) -> Option<&str> {
    Some(object.trim().strip_prefix('{')?.strip_suffix('}')?.trim())
}

fn contexts(value: Raw<'_>) -> Result<Vec<String>, Refusal> {
    let expected =
        format!("`@context` is an array of addresses that begins with {CORE_CONTEXT:?}.");
    let list = match value {
        Raw::String(text) if text.decode() == CORE_CONTEXT => return Ok(Vec::new()),
        Raw::Array(list) => elements(list),
        _ => return Err(refused(rule::E3, expected)),
    };
    let mut addresses = Vec::new();
    for element in list {
        addresses.push(text(element).ok_or_else(|| refused(rule::E3, expected.clone()))?);
    }
    if addresses.first().is_none_or(|first| first != CORE_CONTEXT) {
        return Err(refused(rule::E3, expected));
    }
    addresses.remove(0);
    if addresses.len() > CONTEXTS || addresses.iter().any(|uri| uri.len() > CONTEXT_BYTES) {
        let text = format!(
            "Name at most {CONTEXTS} extensions in `@context`, each with at most {CONTEXT_BYTES} bytes."
        );
        return Err(refused(rule::E21, text));
    }
    Ok(addresses)
}

// enforces: E13, I20
/// What is critical overtakes everything and is heard at once, whatever a listener asked for. Which
/// events are, the protocol says, and how many of them there may be, the hub: an agent's word alone
/// makes none.
fn urgency(value: Raw<'_>, kind: Option<EventKind>) -> Result<Urgency, Refusal> {
    let word = text(value).and_then(|word| Urgency::parse(&word).ok());
    let known = "`urgency` is background, normal or critical.";
    let urgency = word.ok_or_else(|| refused(rule::E13, known))?;
    let critical = kind.is_some_and(EventKind::is_critical);
    match (critical, urgency == Urgency::Critical) {
        (true, false) => {
            Err(refused(rule::E13, "Events of this type are always critical; leave `urgency` out."))
        }
        (false, true) => Err(refused(
            rule::E13,
            "Only errors, questions and handoffs are critical: say `normal`, or ask or hand over.",
        )),
        _ => Ok(urgency),
    }
}

fn extensions(value: Raw<'_>) -> Result<Option<String>, Refusal> {
    let expected = "`extensions` is an object of objects, one for each prefix.";
    let members = inside(value).ok_or_else(|| refused(rule::E17, expected))?;
    if members.len() > EXTENSIONS_BYTES {
        let text = format!("`extensions` may have at most {EXTENSIONS_BYTES} bytes.");
        return Err(refused(rule::E21, text));
    }
    let object = ["{", &members, "}"].concat();
    let all = Members::whole(&object, 64).ok().flatten().unwrap_or_default();
    if let Some(member) = all.iter().find(|member| is_ours_alone(&member.name)) {
        let text = format!(
            "Leave `extensions.{}` out: only the hub says that. Use a prefix of your own, declared by an address of yours in `@context`.",
            member.name
        );
        return Err(refused(rule::X7, text));
    }
    Ok(Some(members).filter(|members| !members.is_empty()))
}

/// Those members of `extensions` that are not ours alone.
fn of_agents(members: &str) -> String {
    let object = ["{", members, "}"].concat();
    let all = Members::whole(&object, 64).ok().flatten().unwrap_or_default();
    let mut out = Writer::with_capacity(members.len());
    for member in all.iter().filter(|member| !is_ours_alone(&member.name)) {
        out.name(&member.name);
        out.raw(member.value);
        out.comma();
    }
    let mut text = out.finish();
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(members: &str) -> Result<(String, Option<Box<Hints>>), Refusal> {
        Hints::split(members.to_owned(), Some(EventKind::StateChanged))
    }

    // covers: E13, I20
    #[test]
    fn an_agents_word_alone_makes_nothing_critical_and_lowers_nothing_that_is() {
        assert_eq!(split(r#""urgency":"critical""#).unwrap_err().rule, rule::E13);
        assert_eq!(split(r#""urgency":"loud""#).unwrap_err().rule, rule::E13);
        let (payload, hints) = split(r#""to_state":"thinking","urgency":"background""#).unwrap();
        assert_eq!(payload, r#""to_state":"thinking""#);
        assert_eq!(hints.unwrap().urgency, Some(Urgency::Background));
        let asked = Some(EventKind::AwaitingConfirmation);
        assert!(Hints::split(r#""urgency":"normal""#.into(), asked).is_err());
        assert!(Hints::split(r#""urgency":"critical""#.into(), asked).is_ok());
    }

    // covers: X7, S1
    #[test]
    fn only_the_hub_speaks_under_its_own_prefixes() {
        for prefix in ["outcome", "timing", "control", "action"] {
            let refused = split(&format!(r#""extensions":{{"{prefix}":{{}}}}"#)).unwrap_err();
            assert_eq!(refused.rule, rule::X7, "{prefix}");
        }
        assert!(split(r#""extensions":{"medai":{},"redaction":{}}"#).is_ok());
    }

    // covers: E3, E12, E16, E17, E21
    #[test]
    fn hints_have_bounds_and_a_sentence_that_says_them() {
        let long = |bytes: usize| "x".repeat(bytes);
        for bad in [
            r#""@context":"https://example.org/x""#.to_owned(),
            r#""@context":["https://example.org/x"]"#.to_owned(),
            format!(r#""@context":["{CORE_CONTEXT}",7]"#),
            format!(r#""@context":["{CORE_CONTEXT}","urn:{}"]"#, long(600)),
            r#""verbosity":"much""#.to_owned(),
            r#""correlation_id":7"#.to_owned(),
            format!(r#""correlation_id":"{}""#, long(600)),
            r#""localization_hints":"de""#.to_owned(),
            r#""extensions":[]"#.to_owned(),
            format!(r#""extensions":{{"m":{{"x":"{}"}}}}"#, long(20_000)),
        ] {
            let refused = split(&bad).unwrap_err();
            assert_eq!(refused.blame, Blame::Malformed);
            assert!(refused.text.ends_with('.'), "{}", refused.text);
        }
    }

    #[test]
    fn what_an_event_said_is_found_again_but_for_what_the_hub_added() {
        let event = format!(
            r#"{{"@context":["{CORE_CONTEXT}","urn:aaep-rs:timing:v1","https://example.org/m"],
            "type":"x","verbosity":"terse","urgency":"critical","localization_hints":{{"primary_language":"de"}},
            "extensions":{{"timing":{{"supersedes":"evt_1"}},"m":{{"a":1}}}}}}"#
        );
        let hints = Hints::of_event(&event).unwrap();
        assert_eq!(hints.contexts, ["https://example.org/m"]);
        assert_eq!(hints.extensions.as_deref(), Some(r#""m":{"a":1}"#));
        assert_eq!(hints.localization.as_deref(), Some(r#""primary_language":"de""#));
        assert_eq!((hints.urgency, hints.verbosity), (None, Some(Verbosity::Terse)));
    }
}
