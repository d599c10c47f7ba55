//! The policy in force: no agent asks for less than it says, or runs what must be asked about.
//!
//! Rules are the user's. So are words where a template of the policy describes the action: those are
//! asked, and the agent's own become context. Elsewhere the words are the agent's, and what it does
//! not say itself is filled in.

use aaep_engine::{Blame, Refusal};
use aaep_policy::{Policy, Ruling, Verdict};
use aaep_types::json::{Members, Raw, Writer};
use aaep_types::{Decision, DescribedBy, Reversibility, RiskLevel, cut, rule};

/// The members of a request that weigh: they are never weaker than the policy says.
const WEIGHED: [&str; 5] =
    ["risk_level", "irreversible", "reversibility", "default_decision", "timeout_seconds"];

/// Members in which an agent describes what it is about to do.
const DESCRIPTION: [&str; 5] =
    ["action", "consequence", "summary_normal", "summary_detailed", "summary_terse"];

/// The longest account of the agent's own words where the policy's stand in their place, in
/// characters.
const MAX_AGENT_SAYS: usize = 1000;

/// Whose words the question's are.
pub(super) fn described_by(ruling: &Ruling) -> DescribedBy {
    if ruling.has_template { DescribedBy::Policy } else { DescribedBy::Agent }
}

/// Whose words a question is asked in.
#[derive(Clone, Copy)]
struct Wording {
    /// The policy's, all of them: the agent's own become context.
    policys: bool,
    /// The policy speaks another language than the question would be labelled with.
    foreign: bool,
}

impl Wording {
    // enforces: L13, D39
    /// A template describes the action. Or the agent does not, and what would be filled in has another
    /// language: a question has one.
    fn of(ruling: &Ruling, said: &Members<'_>, session_language: &str) -> Self {
        let own = match said.find(LOCALIZATION) {
            Some(Raw::Object(hints)) => {
                let hints = Members::whole(hints, 8).ok().flatten().unwrap_or_default();
                hints.text("primary_language").map(|tag| tag.into_owned())
            }
            _ => None,
        };
        let language = own.unwrap_or_else(|| session_language.to_owned());
        let first = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
        let foreign = first(&language) != first(&ruling.language);
        let described = ["action", "consequence"].iter().all(|name| said.find(name).is_some());
        Self { policys: ruling.has_template || foreign && !described, foreign }
    }
}

// enforces: T27, C15, I9, I31
/// What is left of a request for consent once the policy has looked at it. What nobody can read is
/// left as it is: the engine refuses it, and says why.
pub(super) fn strengthen(ruling: &Ruling, said: &Members<'_>, session_language: &str) -> String {
    let Wording { policys, foreign } = Wording::of(ruling, said, session_language);
    let agent_says = policys.then(|| agent_says(ruling, said)).flatten();
    let mut out = Writer::new();
    out.open('{');
    for member in said.iter() {
        let weighed = WEIGHED.contains(&&*member.name) && is_known(&member.name, member.value);
        let replaced = policys && describes(&member.name, member.value);
        let context = agent_says.is_some() && is_context(&member.name, member.value);
        let labelled = policys && foreign && member.name == LOCALIZATION;
        if !weighed && !replaced && !context && !labelled {
            out.name(&member.name);
            out.raw(member.value);
            out.comma();
        }
    }
    let weighed = Weighed::of(ruling, said);
    for (name, value) in weighed.members() {
        if said.find(name).is_none_or(|value| is_known(name, value)) {
            out.name(name);
            out.json(&value);
            out.comma();
        }
    }
    if policys && foreign {
        out.name(LOCALIZATION);
        out.open('{');
        out.name("primary_language");
        out.string(&ruling.language);
        out.close('}');
        out.comma();
    }
    for (name, words) in words_of(ruling) {
        let ours = |value| policys && describes(name, value);
        // What an agent leaves out of a whole description is not said in another language.
        if (policys || !foreign) && said.find(name).is_none_or(ours) {
            out.name(name);
            out.string(words);
            out.comma();
        }
    }
    if let Some(text) = agent_says {
        out.name(CONTEXT);
        out.json(&with_agent_says(said, &text));
        out.comma();
    }
    out.close('}');
    out.finish()
}

/// How much can go wrong, and whether it cannot be undone; what nobody says counts as the worst (D10).
pub(super) fn gravity(said: &Members<'_>) -> (RiskLevel, bool) {
    let risk = said.text("risk_level").and_then(|word| RiskLevel::parse(&word).ok());
    let told = said.text("reversibility").and_then(|word| Reversibility::parse(&word).ok());
    let never = match said.find("irreversible") {
        Some(Raw::Bool(never)) => Some(never),
        _ => None,
    };
    let irreversible = matches!(
        (never, told),
        (Some(true), _) | (None, None) | (_, Some(Reversibility::Irreversible))
    );
    (risk.unwrap_or(RiskLevel::High), irreversible)
}

/// What an agent adds to a question, and where its own words stand in it when the policy's are in
/// their place.
const CONTEXT: &str = "extra_context";
const AGENT_SAYS: &str = "agent_says";

/// Where a question says which language it has.
const LOCALIZATION: &str = "localization_hints";

fn is_context(name: &str, value: Raw<'_>) -> bool {
    name == CONTEXT && matches!(value, Raw::Object(_))
}

/// Whether a member describes the action, in whatever language (§11.5.1).
fn describes(name: &str, value: Raw<'_>) -> bool {
    let variant = |of: &&str| name.strip_prefix(of).is_some_and(|rest| rest.starts_with('_'));
    let text = matches!(value, Raw::String(_));
    text && (DESCRIPTION.contains(&name) || DESCRIPTION.iter().any(variant))
}

/// The agent's own words, if they are others than the policy's.
fn agent_says(ruling: &Ruling, said: &Members<'_>) -> Option<String> {
    let known: Vec<&str> = words_of(ruling).into_iter().map(|(_, words)| words).collect();
    let mut all: Vec<String> = Vec::new();
    for name in DESCRIPTION {
        let Some(text) = said.text(name) else { continue };
        let text = text.trim();
        if !text.is_empty() && !known.contains(&text) && !all.iter().any(|other| other == text) {
            all.push(text.to_owned());
        }
    }
    let text = all.join(" ");
    // enforces: L6
    match cut(&text, MAX_AGENT_SAYS) {
        "" => None,
        all if all.len() == text.len() => Some(text),
        beginning => Some(format!("{beginning}…")),
    }
}

/// The agent's context, with its words.
fn with_agent_says(said: &Members<'_>, text: &str) -> String {
    let mut out = Writer::new();
    out.open('{');
    out.name(AGENT_SAYS);
    out.string(text);
    out.comma();
    if let Some(Raw::Object(context)) = said.find(CONTEXT) {
        let members = Members::whole(context, 64).ok().flatten().unwrap_or_default();
        for member in members.iter().filter(|member| member.name != AGENT_SAYS) {
            out.name(&member.name);
            out.raw(member.value);
            out.comma();
        }
    }
    out.close('}');
    out.finish()
}

/// The worse of what the agent and the policy say.
struct Weighed {
    risk: RiskLevel,
    reversibility: Reversibility,
    default: Decision,
    seconds: u64,
}

impl Weighed {
    fn of(ruling: &Ruling, said: &Members<'_>) -> Self {
        let word = |name: &str| said.text(name);
        let risk = word("risk_level").and_then(|word| RiskLevel::parse(&word).ok());
        let told = word("reversibility").and_then(|word| Reversibility::parse(&word).ok());
        let never = said.find("irreversible") == Some(Raw::Bool(true));
        let default = word("default_decision").and_then(|word| Decision::parse(&word).ok());
        let seconds = match said.find("timeout_seconds") {
            Some(Raw::Number(number)) => number.parse().unwrap_or_default(),
            _ => 0,
        };
        let worst = never.then_some(Reversibility::Irreversible).max(told);
        let (risk, reversibility) =
            (risk.unwrap_or(RiskLevel::Low), worst.unwrap_or(Reversibility::Reversible));
        let accepts = ruling.default == Decision::Accept && default == Some(Decision::Accept);
        Self {
            risk: risk.max(ruling.risk),
            reversibility: reversibility.max(ruling.reversibility),
            default: if accepts { Decision::Accept } else { Decision::Reject },
            // People get the longer of both times.
            seconds: ruling.timeout.get().max(seconds),
        }
    }

    fn members(&self) -> [(&'static str, String); 5] {
        let quoted = |word: &str| format!("\"{word}\"");
        let irreversible = self.reversibility == Reversibility::Irreversible;
        [
            ("risk_level", quoted(self.risk.as_str())),
            ("irreversible", irreversible.to_string()),
            ("reversibility", quoted(self.reversibility.as_str())),
            ("default_decision", quoted(self.default.as_str())),
            ("timeout_seconds", self.seconds.to_string()),
        ]
    }
}

/// Whether a member that weighs says something that can be weighed.
fn is_known(name: &str, value: Raw<'_>) -> bool {
    let word = |known: &dyn Fn(&str) -> bool| match value {
        Raw::String(text) => known(&text.decode()),
        _ => false,
    };
    match name {
        "risk_level" => word(&|text| RiskLevel::parse(text).is_ok()),
        "reversibility" => word(&|text| Reversibility::parse(text).is_ok()),
        "default_decision" => word(&|text| Decision::parse(text).is_ok()),
        "irreversible" => matches!(value, Raw::Bool(_)),
        _ => matches!(value, Raw::Number(number) if number.parse::<u64>().is_ok()),
    }
}

/// The policy's words.
fn words_of(ruling: &Ruling) -> [(&'static str, &str); 5] {
    [
        ("action", &ruling.action),
        ("consequence", &ruling.consequence),
        ("summary_normal", ruling.normal()),
        ("summary_detailed", ruling.detailed()),
        ("summary_terse", &ruling.summary),
    ]
}

// enforces: T12, T27
/// Whether a tool may be announced as running without a question. `arguments` are what the agent
/// says that they are.
pub(super) fn permit(
    policy: &Policy,
    tool: &str,
    arguments: Option<&str>,
) -> Result<Ruling, Refusal> {
    let ruling = match arguments {
        Some(arguments) => policy.decide(tool, arguments),
        None => policy.decide_unseen(tool),
    };
    if ruling.verdict != Verdict::Ask {
        return Ok(ruling);
    }
    let mut text = String::from(
        "The policy wants the user to be asked before this tool runs: ask through a request, and invoke that.",
    );
    for line in ruling.why() {
        text.push(' ');
        text.push_str(&line);
    }
    Err(Refusal { blame: Blame::OutOfOrder, rule: rule::T27, text })
}

/// An announcement with at least the policy's risk.
pub(super) fn announce(ruling: &Ruling, said: &Members<'_>) -> String {
    let told = said.text("risk_level").and_then(|word| RiskLevel::parse(&word).ok());
    let raised = told.unwrap_or(RiskLevel::Low).max(ruling.risk);
    let kept = said.find("risk_level").filter(|value| !is_known("risk_level", *value));
    let mut out = Writer::new();
    out.open('{');
    for member in said.iter() {
        if member.name != "risk_level" {
            out.name(&member.name);
            out.raw(member.value);
            out.comma();
        }
    }
    out.name("risk_level");
    match kept {
        Some(value) => out.raw(value),
        None => out.string(raised.as_str()),
    }
    out.close('}');
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [[rule]]
        tool = "notes.add"
        risk_level = "medium"
        reversibility = "reversible"
        default_decision = "accept"
        timeout_seconds = 30
        action = "Add {text}"
        consequence = "It is in your notes."
    "#;

    fn strengthened(tool: &str, said: &str) -> serde_json::Value {
        let ruling = Policy::parse(POLICY).unwrap().decide(tool, r#"{"text":"milk"}"#);
        let members = Members::whole(said, 8).unwrap().unwrap();
        serde_json::from_str(&strengthen(&ruling, &members, "en-GB")).unwrap()
    }

    // covers: L13, D39
    #[test]
    fn a_question_has_one_language_and_says_which() {
        let french = |tool: &str, policy: &str, said: &str| -> serde_json::Value {
            let ruling = Policy::parse(policy).unwrap().decide(tool, r#"{"text":"milk"}"#);
            let members = Members::whole(said, 8).unwrap().unwrap();
            serde_json::from_str(&strengthen(&ruling, &members, "fr-CA")).unwrap()
        };
        let language = |asked: &serde_json::Value| {
            asked["localization_hints"]["primary_language"].as_str().map(str::to_owned)
        };
        let half = r#"{"action":"Ajouter du lait","localization_hints":{"text_direction":"ltr"}}"#;
        let whole = r#"{"action":"Ajouter du lait","consequence":"C’est noté."}"#;
        // An English template, or English sentences in place of what was left out.
        for (tool, said) in [("notes.add", half), ("notes.add", whole), ("other", half)] {
            let asked = french(tool, POLICY, said);
            assert_eq!(language(&asked).as_deref(), Some("en"), "{asked}");
            assert_ne!(asked["action"], "Ajouter du lait");
            let says = asked["extra_context"]["agent_says"].as_str().unwrap();
            assert!(says.starts_with("Ajouter du lait"), "{asked}");
        }
        // The agent says everything itself, in the session's language.
        let asked = french("other", POLICY, whole);
        assert_eq!((language(&asked), &asked["action"]), (None, &"Ajouter du lait".into()));
        assert_eq!((asked.get("summary_normal"), asked.get("extra_context")), (None, None));
        // A policy in the session's language needs no label.
        let policy = POLICY
            .replace("Add {text}", "Ajouter {text}")
            .replace("It is in your notes.", "C’est dans vos notes.");
        let asked = french("notes.add", &format!("language = \"fr\"\n{policy}"), "{}");
        assert_eq!(language(&asked), None);
        assert_eq!(asked["summary_normal"], "Ajouter \"milk\".");
        assert_eq!(asked["summary_terse"], "Ajouter \"milk\"");
        assert_eq!(asked["summary_detailed"], "Ajouter \"milk\". C’est dans vos notes.");
    }

    // covers: T27, C15, I9
    #[test]
    fn a_request_is_never_weaker_than_the_policy_says() {
        let mild = r#"{"risk_level":"low","irreversible":false,
            "reversibility":"reversible","default_decision":"accept","timeout_seconds":1}"#;
        let worst = strengthened("other", mild);
        assert_eq!(worst["risk_level"], "high");
        assert_eq!(worst["irreversible"], true);
        assert_eq!(worst["reversibility"], "irreversible");
        assert_eq!(worst["default_decision"], "reject");
        assert_eq!(worst["timeout_seconds"], 300);
        let covered = strengthened("notes.add", mild);
        assert_eq!(covered["risk_level"], "medium");
        assert_eq!(
            (&covered["irreversible"], &covered["timeout_seconds"]),
            (&false.into(), &30.into())
        );
        assert_eq!(covered["default_decision"], "accept");
    }

    // covers: T27, I31
    #[test]
    fn what_an_agent_says_in_earnest_stays_and_what_it_leaves_out_is_filled_in() {
        let grave = strengthened(
            "notes.add",
            r#"{"risk_level":"high","irreversible":true,"default_decision":"reject","timeout_seconds":900}"#,
        );
        assert_eq!(grave["risk_level"], "high");
        assert_eq!(grave["reversibility"], "irreversible");
        assert_eq!(
            (&grave["default_decision"], &grave["timeout_seconds"]),
            (&"reject".into(), &900.into())
        );
        let bare = strengthened("notes.add", "{}");
        assert_eq!(bare["action"], "Add \"milk\"");
        assert_eq!(bare["consequence"], "It is in your notes.");
        assert_eq!(bare["default_decision"], "reject", "silence is no yes unless both say so");
        assert_eq!(bare.get("extra_context"), None);
        let uncovered = strengthened("other", r#"{"action":"Mine."}"#);
        assert_eq!(uncovered["action"], "Mine.", "no template describes it");
    }

    // covers: I31
    #[test]
    fn where_a_template_describes_the_action_the_agents_words_are_context() {
        let asked = strengthened(
            "notes.add",
            r#"{"action":"Do nothing.","consequence":"Nothing.","summary_normal":"Do nothing.",
                "action_yo":"Kò sí.","summary_terse_de_CH":"Nichts","allowed_replies":["accept","reject"],
                "extra_context":{"agent_says":"I am the policy.","trip":7}}"#,
        );
        assert_eq!(asked["action"], "Add \"milk\"");
        assert_eq!(asked["consequence"], "It is in your notes.");
        assert_eq!(asked["summary_normal"], "Add \"milk\". This can be undone.");
        assert_eq!(asked["summary_terse"], "Run notes.add");
        let context = serde_json::json!({ "agent_says": "Do nothing. Nothing.", "trip": 7 });
        assert_eq!(asked["extra_context"], context);
        assert!(asked["allowed_replies"].is_array());
        for name in ["action_yo", "summary_terse_de_CH"] {
            assert_eq!(asked.get(name), None, "{name} would be heard in another language");
        }
        let long = format!(r#"{{"action":"{}"}}"#, "ä".repeat(5000));
        let says = strengthened("notes.add", &long)["extra_context"]["agent_says"].clone();
        assert_eq!(says.as_str().unwrap().chars().count(), MAX_AGENT_SAYS + 1);
        let odd = strengthened("notes.add", r#"{"action":7}"#);
        assert_eq!(odd["action"], 7, "the engine refuses it, and says why");
    }

    #[test]
    fn what_nobody_can_weigh_is_left_for_the_engine_to_refuse() {
        let odd = strengthened(
            "notes.add",
            r#"{"risk_level":"none","irreversible":"no","timeout_seconds":-1}"#,
        );
        assert_eq!((&odd["risk_level"], &odd["irreversible"]), (&"none".into(), &"no".into()));
        assert_eq!(odd["timeout_seconds"], -1);
    }

    // covers: T27, T12
    #[test]
    fn only_what_needs_no_question_may_be_announced_and_never_as_less() {
        let policy = Policy::parse(
            &POLICY
                .replace("default_decision = \"accept\"", "verdict = \"announce\"")
                .replace("timeout_seconds = 30\n", "")
                .replace("consequence = \"It is in your notes.\"\n", ""),
        )
        .unwrap();
        let refused = permit(&policy, "rm", None).unwrap_err();
        assert_eq!((refused.rule.id, refused.blame), ("T27", Blame::OutOfOrder));
        assert!(refused.text.contains("No rule covers this call"), "{}", refused.text);
        let ruling = permit(&policy, "notes.add", Some("{}")).unwrap();
        let said = r#"{"tool":"notes.add","risk_level":"low"}"#;
        let members = Members::whole(said, 8).unwrap().unwrap();
        let raised = announce(&ruling, &members);
        assert_eq!(raised, r#"{"tool":"notes.add","risk_level":"medium"}"#);
    }
}
