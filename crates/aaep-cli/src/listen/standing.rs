//! The user's own standing answers: `--policy FILE`. A small TOML file of rules; the first that fits
//! a request answers it, and that is said. A request that no rule fits is asked as ever.
//!
//! ```toml
//! [[rule]]
//! agent = "backup-*"
//! tool = "files.copy"
//! answer = "accept"
//! risk_level = "medium"
//! ```
//!
//! `tool` and `arguments` are patterns for the hub's own account of what would run. `action` is one for
//! the words of the question: a rule that accepts by them does so only where the hub's policy chose
//! those words, for an agent can choose any.
//!
//! A rule accepts up to a risk and a reversibility: low and reversible unless it says more. What
//! cannot be undone and is of high risk is never accepted by a rule (T21): a file that says so is
//! refused. Text with hidden characters, or with letters that only look like others, is accepted by no
//! rule.

use std::path::Path;

use aaep_policy::Glob;
use aaep_subscriber::words::look_alikes;
use aaep_subscriber::{Asks, Request};
use aaep_types::{DescribedBy, Reversibility, RiskLevel, deception};
use serde::Deserialize;
use toml::Spanned;

/// The largest file, in bytes.
const FILE_BYTES: u64 = 256 * 1024;

/// Rules in one file.
const RULES: usize = 1000;

/// Characters in a pattern.
const PATTERN_CHARACTERS: usize = 256;

/// The longest action that patterns are tried on, in characters; a longer one is asked.
const ACTION_CHARACTERS: usize = 16_384;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Spanned<Written>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    agent: Option<String>,
    action: Option<String>,
    tool: Option<String>,
    arguments: Option<String>,
    answer: Verdict,
    risk_level: Option<Spanned<String>>,
    reversibility: Option<Spanned<String>>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Accept,
    Reject,
}

/// One rule.
#[derive(Debug)]
struct Rule {
    line: usize,
    agent: Option<Glob>,
    action: Option<Glob>,
    tool: Option<Glob>,
    arguments: Option<Glob>,
    accept: bool,
    /// The most that it accepts.
    risk: RiskLevel,
    reversibility: Reversibility,
}

/// Rules, in their order.
#[derive(Debug)]
pub(crate) struct StandingRules {
    rules: Vec<Rule>,
}

impl StandingRules {
    /// Reads a file, or says what is wrong with it and where.
    pub(crate) fn load(file: &Path) -> Result<Self, String> {
        use std::io::Read;
        let mut text = String::new();
        let opened = std::fs::File::open(file);
        let read = opened.and_then(|file| file.take(FILE_BYTES + 1).read_to_string(&mut text));
        read.map_err(|error| format!("Cannot read the rules in {}: {error}.", file.display()))?;
        Self::parse(&text).map_err(|(line, what)| match line {
            0 => format!("{}: {what}", file.display()),
            line => format!("{}, line {line}: {what}", file.display()),
        })
    }

    // enforces: T21
    pub(super) fn parse(text: &str) -> Result<Self, (usize, String)> {
        if text.len() as u64 > FILE_BYTES {
            return Err((0, format!("There are more than {FILE_BYTES} bytes.")));
        }
        let line = |at: usize| text[..text.floor_char_boundary(at)].matches('\n').count() + 1;
        let file: File = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            (line(at), sentence(error.message()))
        })?;
        if file.rule.len() > RULES {
            return Err((0, format!("There are more than {RULES} rules.")));
        }
        let rules = file.rule.into_iter().map(|written| {
            let at = line(written.span().start);
            rule(written.into_inner(), at, &line)
        });
        rules.collect::<Result<_, _>>().map(|rules| Self { rules })
    }

    // enforces: T21
    /// The line of the rule that answers a request, and whether it says yes.
    pub(crate) fn judge(&self, request: &Request) -> Option<(usize, bool)> {
        let Asks::Consent { action, consequence, risk, reversibility, .. } = &request.asks else {
            return None;
        };
        let beginning = |text: &str| text.chars().take(ACTION_CHARACTERS + 1).collect::<String>();
        let (agent, begins) = (beginning(&request.agent.id), beginning(action));
        let account = request.account.as_ref();
        let tool = account.map(|account| beginning(&account.tool));
        // What was left out may be anything, so no pattern fits it.
        let whole = account.filter(|account| !account.shortened && !account.redacted);
        let arguments = whole.map(|account| beginning(&account.arguments).replace('\n', ", "));
        let fits = |pattern: &Option<Glob>, text: Option<&str>| match (pattern, text) {
            (None, _) => true,
            (Some(pattern), Some(text)) => pattern.matches(text),
            (Some(_), None) => false,
        };
        let fits = |rule: &&Rule| {
            fits(&rule.agent, Some(&agent))
                && fits(&rule.action, Some(&begins))
                && fits(&rule.tool, tool.as_deref())
                && fits(&rule.arguments, arguments.as_deref())
        };
        let rule = self.rules.iter().find(fits)?;
        let clear = [action, consequence].iter().all(|text| deception::first(text).is_none())
            && look_alikes(&[action, consequence]).is_empty()
            && action.chars().count() <= ACTION_CHARACTERS;
        // enforces: I31
        // The agent chose the words, unless the hub's policy did.
        let by_policy = account.is_some_and(|known| known.described_by == DescribedBy::Policy);
        let trusted = rule.action.is_none() || by_policy;
        let grave = *risk == RiskLevel::High && *reversibility == Reversibility::Irreversible;
        let mild = *risk <= rule.risk && *reversibility <= rule.reversibility && !grave;
        // No later rule is tried: it may be milder than this one was meant to be.
        (!rule.accept || mild && clear && trusted).then_some((rule.line, rule.accept))
    }
}

fn rule(
    written: Written,
    line: usize,
    line_of: &impl Fn(usize) -> usize,
) -> Result<Rule, (usize, String)> {
    let Written { agent, action, tool, arguments, answer, risk_level, reversibility } = written;
    let accept = answer == Verdict::Accept;
    if [&agent, &action, &tool, &arguments].into_iter().all(Option::is_none) {
        let what = "The rule fits everything. Name an `agent`, a `tool` or an `action`.";
        return Err((line, what.into()));
    }
    if accept && agent.is_none() {
        let what = "A rule that accepts names its `agent`: any agent can choose its words.";
        return Err((line, what.into()));
    }
    if !accept && (risk_level.is_some() || reversibility.is_some()) {
        let what = "A rule that rejects needs no `risk_level` and no `reversibility`.";
        return Err((line, what.into()));
    }
    let word = |word: Option<Spanned<String>>| {
        word.map(|word| (line_of(word.span().start), word.into_inner()))
    };
    let risk = word(risk_level).map_or(Ok(RiskLevel::Low), |(line, word)| {
        RiskLevel::parse(&word).map_err(|why| (line, format!("`risk_level`: {why}")))
    })?;
    let undone = word(reversibility).map_or(Ok(Reversibility::Reversible), |(line, word)| {
        Reversibility::parse(&word).map_err(|why| (line, format!("`reversibility`: {why}")))
    })?;
    if risk == RiskLevel::High && undone == Reversibility::Irreversible {
        let what = "What cannot be undone and is of high risk is never accepted by a rule. \
                    Lower `risk_level` or `reversibility`.";
        return Err((line, what.into()));
    }
    let (agent, action) = (pattern(agent, line)?, pattern(action, line)?);
    let (tool, arguments) = (pattern(tool, line)?, pattern(arguments, line)?);
    Ok(Rule { line, agent, action, tool, arguments, accept, risk, reversibility: undone })
}

fn pattern(text: Option<String>, line: usize) -> Result<Option<Glob>, (usize, String)> {
    let Some(text) = text else { return Ok(None) };
    if !(1..=PATTERN_CHARACTERS).contains(&text.chars().count()) {
        return Err((line, format!("A pattern has 1 to {PATTERN_CHARACTERS} characters.")));
    }
    Ok(Some(Glob::new(&text)))
}

/// What the parser says, as a sentence on one line.
fn sentence(message: &str) -> String {
    let text = message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}.", crate::lines::Plain(text.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::talk::stories::{consent, with};
    use aaep_subscriber::Account;

    const RULES: &str = r#"
[[rule]]
agent = "tidy"
action = "Delete *"
answer = "reject"

[[rule]]
agent = "tidy"
action = "Book *"
answer = "accept"
risk_level = "medium"
reversibility = "reversible_with_effort"
"#;

    /// A request in words of the hub's policy.
    fn asked(action: &str, risk: RiskLevel, undone: Reversibility) -> Request {
        let mut request = with(consent(1, action), |asks| {
            if let Asks::Consent { risk: of, reversibility, .. } = asks {
                (*of, *reversibility) = (risk, undone);
            }
        });
        request.account = Some(account(DescribedBy::Policy));
        request
    }

    fn account(described_by: DescribedBy) -> Account {
        Account {
            tool: "rooms.book".into(),
            arguments: "room: small\nday: tomorrow".into(),
            digest: "d".into(),
            described_by,
            shortened: false,
            redacted: false,
        }
    }

    // covers: T21, I31
    #[test]
    fn no_rule_accepts_by_words_that_the_agent_chose() {
        let (low, back) = (RiskLevel::Low, Reversibility::Reversible);
        let by_words = StandingRules::parse(RULES).unwrap();
        let by_tool = RULES.replace("action = \"Book *\"", "tool = \"rooms.*\"");
        let by_tool = StandingRules::parse(&by_tool).unwrap();
        let arguments = "tool = \"rooms.book\"\narguments = \"room: small, *\"";
        let by_arguments =
            StandingRules::parse(&RULES.replace("action = \"Book *\"", arguments)).unwrap();
        let mut request = asked("Book a room", low, back);
        for rules in [&by_words, &by_tool, &by_arguments] {
            assert_eq!(rules.judge(&request), Some((7, true)));
        }
        request.account = Some(account(DescribedBy::Agent));
        assert_eq!(by_words.judge(&request), None, "the agent says that it books a room");
        assert_eq!(by_tool.judge(&request), Some((7, true)), "the hub says that it does");
        assert_eq!(by_arguments.judge(&request), Some((7, true)));
        // A no needs no proof.
        request.asks = asked("Delete it", low, back).asks;
        assert_eq!(by_words.judge(&request), Some((2, false)));
        request.asks = asked("Book a room", low, back).asks;
        for change in [
            |account: &mut Account| account.tool = "bank.transfer".into(),
            |account: &mut Account| account.arguments = "room: large".into(),
            |account: &mut Account| account.shortened = true,
            |account: &mut Account| account.redacted = true,
        ] {
            let mut other = request.clone();
            other.account.iter_mut().for_each(change);
            assert_eq!(by_arguments.judge(&other), None, "{:?}", other.account);
        }
        request.account = None;
        for rules in [&by_words, &by_tool, &by_arguments] {
            assert_eq!(rules.judge(&request), None);
        }
    }

    // covers: T21
    #[test]
    fn the_first_rule_that_fits_answers_up_to_its_risk() {
        use Reversibility::{Irreversible, Reversible, ReversibleWithEffort};
        use RiskLevel::{High, Low, Medium};
        let rules = StandingRules::parse(RULES).unwrap();
        for (action, risk, undone, answer) in [
            ("Delete it", High, Irreversible, Some((2, false))),
            ("Book a room", Medium, ReversibleWithEffort, Some((7, true))),
            ("Book a room", Low, Reversible, Some((7, true))),
            ("Book a room", High, Reversible, None),
            ("Book a room", Medium, Irreversible, None),
            ("Book a \u{202e}room", Low, Reversible, None),
            ("Book a r\u{43e}om", Low, Reversible, None),
            ("Send a letter", Low, Reversible, None),
        ] {
            assert_eq!(
                rules.judge(&asked(action, risk, undone)),
                answer,
                "{action} {risk} {undone}"
            );
        }
    }

    // covers: T21
    #[test]
    fn no_rule_accepts_what_cannot_be_undone_and_is_of_high_risk() {
        let grave = RULES
            .replace("\"medium\"", "\"high\"")
            .replace("reversible_with_effort", "irreversible");
        let (line, what) = StandingRules::parse(&grave).unwrap_err();
        assert_eq!(line, 7);
        assert!(what.contains("never accepted by a rule"), "{what}");
    }

    #[test]
    fn a_file_with_a_mistake_is_refused_with_its_line() {
        for (text, line, says) in [
            ("[[rule]]\nagent = \"a\"\nanswer = \"maybe\"\n", 3, "maybe"),
            ("[[rule]]\nagent = \"a\"\nwhen = 1\nanswer = \"reject\"\n", 3, "when"),
            ("\n[[rule]]\nanswer = \"reject\"\n", 2, "fits everything"),
            ("[[rule]]\naction = \"*\"\nanswer = \"accept\"\n", 1, "names its `agent`"),
            ("[[rule]]\nagent = \"\"\nanswer = \"reject\"\n", 1, "1 to 256"),
            (
                "[[rule]]\nagent = \"a\"\nanswer = \"accept\"\nrisk_level = \"lo\"\n",
                4,
                "risk_level",
            ),
            ("[[rule]]\nagent = \"a\"\nanswer = \"reject\"\nrisk_level = \"low\"\n", 1, "needs no"),
            ("rules = 1", 1, "rules"),
            ("[[rule", 1, ""),
        ] {
            let (found, what) = StandingRules::parse(text).unwrap_err();
            assert_eq!(found, line, "{text}: {what}");
            assert!(what.contains(says) && !what.contains('\n'), "{text}: {what}");
        }
    }
}
