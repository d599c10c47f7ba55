//! What is looked up again in JSON of ours: events and answers that were valid when they were
//! written. Each is one look at one member; callers that need more read the whole with
//! [`Event::parse`](crate::Event::parse).

use crate::action::PREFIX;
use crate::event::Event;
use crate::id::EventId;
use crate::json::{Members, Raw, Writer, elements};
use crate::vocabulary::RiskLevel;

/// How deep what we write may nest.
const DEPTH: usize = 64;

fn members(json: &str) -> Option<Members<'_>> {
    Members::whole(json, DEPTH).ok().flatten()
}

fn text(json: &str, name: &str) -> Option<String> {
    members(json)?.text(name).map(|text| text.into_owned())
}

fn object<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    match members(json)?.find(name)? {
        Raw::Object(object) => Some(object),
        _ => None,
    }
}

/// The action that a confirmation is about.
pub fn action(event: &str) -> Option<String> {
    text(event, "action")
}

/// The question of a clarification.
pub fn question(event: &str) -> Option<String> {
    text(event, "question")
}

/// The normal summary of a payload.
pub fn summary_normal(payload: &str) -> Option<String> {
    text(payload, "summary_normal")
}

/// The account of the action that an event asks about, as JSON.
pub fn account(event: &str) -> Option<&str> {
    object(object(event, "extensions")?, PREFIX)
}

/// The digest that an account tells.
pub fn digest_of_account(account: &str) -> Option<String> {
    text(account, "digest")
}

/// What a confirmation says of its call, which is said again when the call is announced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedCall<'a> {
    /// The risk that it states.
    pub risk: Option<RiskLevel>,
    /// The arguments that its account tells, a line for each value.
    pub arguments: Option<String>,
    /// Its localization hints, as a JSON object.
    pub localization: Option<&'a str>,
}

/// All of that at one reading of the event.
pub fn asked_call(event: &str) -> AskedCall<'_> {
    let members = members(event).unwrap_or_default();
    let object = |name: &str| match members.find(name) {
        Some(Raw::Object(object)) => Some(object),
        _ => None,
    };
    let account = object("extensions").and_then(|extensions| self::object(extensions, PREFIX));
    AskedCall {
        risk: members.text("risk_level").and_then(|risk| RiskLevel::parse(&risk).ok()),
        arguments: account.and_then(|account| text(account, "arguments")),
        localization: object("localization_hints"),
    }
}

/// The event that asked, by the outcome extension of the one that says what became of it.
pub fn resolved_event(event: &Event<'_>) -> Option<EventId> {
    event.extensions().get("outcome").and_then(asked_by)
}

fn asked_by(outcome: &str) -> Option<EventId> {
    EventId::parse(&text(outcome, "request_event_id")?).ok()
}

/// Who decided a request, by the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The event that asked.
    pub asked_by: EventId,
    /// The principal that answered, and in front of it what the reply says of itself.
    pub by: String,
}

/// Who decided, by a line of an exported audit. `None` if it is about something else.
pub fn decided(line: &str) -> Option<Decided> {
    let members = members(line)?;
    let principal = members.text("decided_by").filter(|by| !by.is_empty())?;
    let own_words = match members.find("reply") {
        Some(Raw::Object(reply)) => text(reply, "decided_by"),
        _ => None,
    };
    let Some(Raw::Array(announced)) = members.find("announced") else { return None };
    let asked_by = elements(announced).into_iter().find_map(|event| match event {
        Raw::Object(event) => asked_by(object(object(event, "extensions")?, "outcome")?),
        _ => None,
    })?;
    let by = match own_words {
        Some(words) => format!("{words} ({principal})"),
        None => principal.into_owned(),
    };
    Some(Decided { asked_by, by })
}

/// The factor of the timing capability (D32): how many times as long a subscriber needs.
pub fn timing_factor(timing: &str) -> u64 {
    let factor = || match members(timing)?.find("factor")? {
        Raw::Number(factor) => factor.parse().ok(),
        _ => None,
    };
    factor().unwrap_or(1).clamp(1, 1000)
}

/// The type of an event.
pub fn type_name(event: &Members<'_>) -> Option<String> {
    event.text("type").map(|name| name.into_owned())
}

/// The language that an event says it has.
pub fn primary_language(event: &Members<'_>) -> Option<String> {
    match event.find("localization_hints")? {
        Raw::Object(hints) => text(hints, "primary_language"),
        _ => None,
    }
}

/// An event whose `@context` comes first (E20).
pub fn context_first(event: &str, usual: &str) -> String {
    let members = members(event).unwrap_or_default();
    let mut out = Writer::with_capacity(event.len());
    out.open('{');
    out.name("@context");
    match members.find("@context") {
        Some(context) => out.raw(context),
        None => out.string(usual),
    }
    for member in members.iter().filter(|member| member.name != "@context") {
        out.comma();
        out.name(&member.name);
        out.raw(member.value);
    }
    out.close('}');
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_audit_says_who_decided_and_what_was_asked() {
        let line = |more: &str| {
            format!(
                r#"{{"kind":"resolved",{more}"announced":[{{"type":"x"}},{{"extensions":{{"outcome":{{"request_event_id":"evt_1"}}}}}}]}}"#
            )
        };
        let by = |more: &str| decided(&line(more)).map(|decided| decided.by);
        assert_eq!(by(r#""decided_by":"ann-laptop","#).as_deref(), Some("ann-laptop"));
        let says = r#""decided_by":"ann-laptop","reply":{"decided_by":"Ann"},"#;
        assert_eq!(by(says).as_deref(), Some("Ann (ann-laptop)"));
        assert_eq!(decided(&line(says)).unwrap().asked_by.as_str(), "evt_1");
        assert_eq!(by(r#""decided_by":"","#), None, "nobody did");
        for other in ["", "[]", r#"{"decided_by":"a"}"#, r#"{"decided_by":"a","announced":[1]}"#] {
            assert_eq!(decided(other), None, "{other}");
        }
    }

    #[test]
    fn each_look_finds_its_member_and_nothing_in_what_is_none() {
        let event = r#"{"action":"Pay.","risk_level":"low","summary_normal":"S",
            "extensions":{"action":{"digest":"ab","arguments":"to: Ann"}}}"#;
        assert_eq!(action(event).as_deref(), Some("Pay."));
        assert_eq!(question(r#"{"question":"Who?"}"#).as_deref(), Some("Who?"));
        assert_eq!(summary_normal(event).as_deref(), Some("S"));
        assert_eq!(digest_of_account(account(event).unwrap()).as_deref(), Some("ab"));
        let hinted = r#"{"localization_hints":{"primary_language":"yo"}}"#;
        assert_eq!(primary_language(&members(hinted).unwrap()).as_deref(), Some("yo"));
        assert_eq!(primary_language(&members("{}").unwrap()), None);
        let asked = asked_call(event);
        assert_eq!(
            (asked.risk, asked.arguments.as_deref()),
            (Some(RiskLevel::Low), Some("to: Ann"))
        );
        let hints = asked_call(hinted).localization;
        assert_eq!(hints, Some(r#"{"primary_language":"yo"}"#));
        assert_eq!(asked_call("no json"), AskedCall::default());
        let id = EventId::from_bits(7);
        assert_eq!(asked_by(&format!(r#"{{"request_event_id":"{id}"}}"#)), Some(id));
        assert_eq!((timing_factor(r#"{"factor":3}"#), timing_factor("{}")), (3, 1));
        assert_eq!(timing_factor(r#"{"factor":99999}"#), 1000);
        assert_eq!(action("no json"), None);
        assert_eq!(account(r#"{"extensions":[]}"#), None);
        assert_eq!(context_first(r#"{"a":1,"@context":"x"}"#, "u"), r#"{"@context":"x","a":1}"#);
    }
}
