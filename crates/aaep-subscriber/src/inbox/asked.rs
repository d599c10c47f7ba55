//! Reads a request out of an event, however odd it is (§4.4, E26, V2).

use aaep_types::json::{Members, Raw, elements};
use aaep_types::{
    DescribedBy, EventKind, LenientEvent, ReplyToken, ResponseKind, Reversibility, RiskLevel,
};

use crate::request::{Account, Asks, Choice};

/// How deep an object inside an event may nest; reading it found no more.
const DEPTH: usize = 64;

/// The most choices that a request has (T22).
const MAX_CHOICES: usize = 32;

/// What an event asks, and what a reply to it needs.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) token: ReplyToken,
    pub(super) asks: Asks,
    pub(super) account: Option<Account>,
    pub(super) agent_says: Option<String>,
    pub(super) timeout_seconds: u64,
    /// Whether yes and no may be sent.
    pub(super) allows: (bool, bool),
    /// The event in whose place this one asks, with more time (D32).
    pub(super) supersedes: Option<String>,
}

/// `None` if the event asks nothing, or nothing that could be answered.
pub(super) fn read(heard: &LenientEvent<'_>, usual_timeout: u64) -> Option<Asked> {
    let asks = match heard.kind()? {
        EventKind::AwaitingConfirmation => consent(heard),
        EventKind::AwaitingClarification => answer(heard),
        _ => return None,
    };
    let seconds = heard.number("timeout_seconds").unwrap_or(usual_timeout);
    Some(Asked {
        token: heard.reply_token()?,
        asks,
        account: account(heard),
        agent_says: heard
            .object("extra_context")
            .and_then(|context| context.text("agent_says").map(|text| text.into_owned()))
            .filter(|text| !text.trim().is_empty()),
        timeout_seconds: seconds.clamp(1, 86_400),
        allows: allows(heard),
        supersedes: extension(heard, "timing")
            .and_then(|timing| timing.text("supersedes").map(|text| text.into_owned())),
    })
}

/// What became of a request, by our extension (D30): its event, and the word.
pub(super) fn outcome(heard: &LenientEvent<'_>) -> Option<(String, String)> {
    let outcome = extension(heard, "outcome")?;
    let word = outcome.text("outcome")?;
    // D42: nobody took it back; a device whose clock is wrong said no.
    let reason = outcome.text("reason").filter(|_| word == "cancelled");
    let word = reason.filter(|reason| reason == "wrong_clock").unwrap_or(word).into_owned();
    Some((outcome.text("request_event_id")?.into_owned(), word))
}

// enforces: I31
/// What the hub itself says would run.
fn account(heard: &LenientEvent<'_>) -> Option<Account> {
    let account = extension(heard, aaep_types::action::PREFIX)?;
    let text = |name: &str| account.text(name).unwrap_or_default().into_owned();
    let flag = |name: &str| account.find(name) == Some(Raw::Bool(true));
    let tool = Some(text("tool")).filter(|tool| !tool.trim().is_empty())?;
    Some(Account {
        tool,
        arguments: text("arguments"),
        digest: text("digest"),
        // What is not said counts as the worst.
        described_by: DescribedBy::parse(&text("described_by")).unwrap_or(DescribedBy::Agent),
        shortened: flag("shortened"),
        redacted: flag("redacted"),
    })
}

fn extension<'a>(heard: &LenientEvent<'a>, prefix: &str) -> Option<Members<'a>> {
    match heard.object("extensions")?.find(prefix)? {
        Raw::Object(text) => Members::whole(text, DEPTH).ok().flatten(),
        _ => None,
    }
}

/// Something that people can read in place of what is missing.
fn first_of(heard: &LenientEvent<'_>, names: &[&str]) -> String {
    let mut texts = names.iter().filter_map(|name| heard.text(name));
    texts.find(|text| !text.is_empty()).unwrap_or_default().into_owned()
}

// enforces: S10, D10
fn consent(heard: &LenientEvent<'_>) -> Asks {
    let risk = heard.text("risk_level").and_then(|risk| RiskLevel::parse(&risk).ok());
    let said = heard.text("reversibility").and_then(|said| Reversibility::parse(&said).ok());
    let reversibility = match (heard.flag("irreversible"), said) {
        // Whichever says that it cannot be taken back is believed.
        (Some(true), _) | (None, None) => Reversibility::Irreversible,
        (_, Some(said)) => said,
        (Some(false), None) => Reversibility::Reversible,
    };
    Asks::Consent {
        action: first_of(heard, &["action", "summary_normal", "summary_detailed", "summary_terse"]),
        consequence: first_of(heard, &["consequence"]),
        risk: risk.unwrap_or(RiskLevel::High),
        reversibility,
        silence_accepts: heard.text("default_decision").as_deref() == Some("accept"),
    }
}

fn answer(heard: &LenientEvent<'_>) -> Asks {
    let context = heard.text("context").filter(|context| !context.is_empty());
    Asks::Answer {
        question: first_of(heard, &["question", "summary_normal", "summary_detailed"]),
        context: context.map(|context| context.into_owned()),
        kinds: kinds(heard),
        choices: choices(heard),
        default: heard.text("default_response").map(|text| text.into_owned()),
    }
}

/// D18: free text when nothing is said; V2: kinds that we do not know are left out.
fn kinds(heard: &LenientEvent<'_>) -> Vec<ResponseKind> {
    let mut kinds = Vec::new();
    if let Some(Raw::Array(list)) = heard.member("accepted_response_kinds") {
        for element in elements(list) {
            let Raw::String(word) = element else { continue };
            let kind = ResponseKind::parse(&word.decode()).ok();
            kinds.extend(kind.filter(|kind| !kinds.contains(kind)));
        }
    }
    if kinds.is_empty() {
        kinds.push(ResponseKind::Freetext);
    }
    kinds
}

fn choices(heard: &LenientEvent<'_>) -> Vec<Choice> {
    let Some(Raw::Array(list)) = heard.member("choices") else { return Vec::new() };
    let read = |element| {
        let Raw::Object(text) = element else { return None };
        let members = Members::whole(text, DEPTH).ok().flatten()?;
        let value = members.text("value").filter(|value| !value.is_empty())?.into_owned();
        let label = members.text("label").filter(|label| !label.is_empty());
        Some(Choice { label: label.map_or_else(|| value.clone(), |label| label.into()), value })
    };
    elements(list).into_iter().filter_map(read).take(MAX_CHOICES).collect()
}

/// D7: what may be sent; both when nothing is said.
fn allows(heard: &LenientEvent<'_>) -> (bool, bool) {
    let Some(Raw::Array(list)) = heard.member("allowed_replies") else { return (true, true) };
    let has = |word: &str| {
        let mut all = elements(list).into_iter();
        all.any(|element| matches!(element, Raw::String(text) if text.decode() == word))
    };
    (has("accept"), has("reject"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(type_name: &str, rest: &str) -> Option<Asked> {
        let text = format!(
            r#"{{"type":"aaep:agent.awaiting.{type_name}","event_id":"evt_1","session_id":"sess_1","reply_token":"rpl_1"{rest}}}"#
        );
        read(&LenientEvent::parse(text.as_bytes()).unwrap(), 300)
    }

    // covers: E26, S10
    #[test]
    fn what_is_not_said_counts_as_the_worst() {
        let bare = asked("confirmation", r#","summary_normal":"Delete all""#).unwrap();
        let Asks::Consent { action, risk, reversibility, silence_accepts, .. } = bare.asks else {
            panic!()
        };
        assert_eq!(action, "Delete all");
        assert_eq!((risk, reversibility), (RiskLevel::High, Reversibility::Irreversible));
        assert!(!silence_accepts);
        assert_eq!((bare.timeout_seconds, bare.allows), (300, (true, true)));
    }

    // covers: S10
    #[test]
    fn either_field_makes_an_action_irreversible() {
        let of = |rest| match asked("confirmation", rest).unwrap().asks {
            Asks::Consent { reversibility, .. } => reversibility,
            Asks::Answer { .. } => panic!(),
        };
        let both = r#","irreversible":true,"reversibility":"reversible""#;
        assert_eq!(of(both), Reversibility::Irreversible);
        assert_eq!(of(r#","irreversible":false"#), Reversibility::Reversible);
        assert_eq!(
            of(r#","irreversible":false,"reversibility":"irreversible""#),
            Reversibility::Irreversible
        );
        let effort = r#","reversibility":"reversible_with_effort""#;
        assert_eq!(of(effort), Reversibility::ReversibleWithEffort);
        assert_eq!(of(r#","reversibility":"who knows""#), Reversibility::Irreversible);
    }

    // covers: I31
    #[test]
    fn the_hubs_account_is_read_and_what_it_does_not_say_counts_as_the_worst() {
        let of = |account: &str| {
            let rest = format!(r#","extensions":{{"action":{account}}}"#);
            asked("confirmation", &rest).unwrap().account
        };
        let whole = of(
            r#"{"tool":"transfer","arguments":"euros: 9001","digest":"d","described_by":"policy","shortened":true,"new":1}"#,
        );
        let whole = whole.unwrap();
        assert_eq!(
            (&*whole.tool, &*whole.arguments, &*whole.digest),
            ("transfer", "euros: 9001", "d")
        );
        assert_eq!(whole.described_by, DescribedBy::Policy);
        assert!(whole.shortened && !whole.redacted);
        let odd = of(r#"{"tool":"transfer","described_by":"me","redacted":"yes"}"#).unwrap();
        assert_eq!((odd.described_by, odd.redacted), (DescribedBy::Agent, false));
        assert_eq!(of(r#"{"tool":7}"#), None);
        assert_eq!(of("[]"), None);
        let says = r#","extra_context":{"agent_says":"Lunch."}"#;
        assert_eq!(asked("confirmation", says).unwrap().agent_says.as_deref(), Some("Lunch."));
    }

    // covers: V2, E26
    #[test]
    fn unknown_kinds_and_odd_choices_break_nothing() {
        let odd = r#","accepted_response_kinds":["mind_reading",7,"numeric","numeric"],"choices":[1,{"value":""},{"value":"a"},{"value":"b","label":"B"}],"timeout_seconds":99999999"#;
        let odd = asked("clarification", odd).unwrap();
        assert_eq!(odd.timeout_seconds, 86_400);
        let Asks::Answer { question, kinds, choices, .. } = odd.asks else { panic!() };
        assert_eq!((question.as_str(), kinds), ("", vec![ResponseKind::Numeric]));
        let labels: Vec<_> = choices.iter().map(|choice| choice.label.as_str()).collect();
        assert_eq!(labels, ["a", "B"]);
        let bare = asked("clarification", "").unwrap();
        assert!(
            matches!(bare.asks, Asks::Answer { kinds, .. } if kinds == [ResponseKind::Freetext])
        );
    }
}
