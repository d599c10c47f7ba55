//! The user's own standing answers: `--policy FILE`. A small TOML file of rules; the first that fits
//! a request answers it, and that is said. A request that no rule fits is asked as ever.
//!
//! ```toml
//! [[rule]]
//! agent = "backup-*"
//! action = "Copy *"
//! answer = "accept"
//! risk_level = "medium"
//! ```
//!
//! A rule accepts up to a risk and a reversibility: low and reversible unless it says more. What
//! cannot be undone and is of high risk is never accepted by a rule (T21): a file that says so is
//! refused. Text with hidden characters, or with letters that only look like others, is accepted by no
//! rule.

use std::path::Path;

use aaep_policy::Glob;
use aaep_subscriber::words::look_alikes;
use aaep_subscriber::{Asks, Request};
use aaep_types::{Reversibility, RiskLevel, deception};
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
    accept: bool,
    /// The most that it accepts.
    risk: RiskLevel,
    reversibility: Reversibility,
}

/// Rules, in their order.
#[derive(Debug)]
pub(crate) struct Standing {
    rules: Vec<Rule>,
}

impl Standing {
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
        let fits = |rule: &&Rule| {
            rule.agent.as_ref().is_none_or(|pattern| pattern.matches(&agent))
                && rule.action.as_ref().is_none_or(|pattern| pattern.matches(&begins))
        };
        let rule = self.rules.iter().find(fits)?;
        let clear = [action, consequence].iter().all(|text| deception::first(text).is_none())
            && look_alikes(&[action, consequence]).is_empty()
            && action.chars().count() <= ACTION_CHARACTERS;
        let grave = *risk == RiskLevel::High && *reversibility == Reversibility::Irreversible;
        let mild = *risk <= rule.risk && *reversibility <= rule.reversibility && !grave;
        // No later rule is tried: it may be milder than this one was meant to be.
        (!rule.accept || mild && clear).then_some((rule.line, rule.accept))
    }
}

fn rule(
    written: Written,
    line: usize,
    line_of: &impl Fn(usize) -> usize,
) -> Result<Rule, (usize, String)> {
    let Written { agent, action, answer, risk_level, reversibility } = written;
    let accept = answer == Verdict::Accept;
    if agent.is_none() && action.is_none() {
        return Err((line, "The rule fits everything. Name an `agent` or an `action`.".into()));
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
    Ok(Rule { line, agent, action, accept, risk, reversibility: undone })
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

    fn asked(action: &str, risk: RiskLevel, undone: Reversibility) -> Request {
        with(consent(1, action), |asks| {
            if let Asks::Consent { risk: of, reversibility, .. } = asks {
                (*of, *reversibility) = (risk, undone);
            }
        })
    }

    // covers: T21
    #[test]
    fn the_first_rule_that_fits_answers_up_to_its_risk() {
        use Reversibility::{Irreversible, Reversible, ReversibleWithEffort};
        use RiskLevel::{High, Low, Medium};
        let rules = Standing::parse(RULES).unwrap();
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
        let (line, what) = Standing::parse(&grave).unwrap_err();
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
            let (found, what) = Standing::parse(text).unwrap_err();
            assert_eq!(found, line, "{text}: {what}");
            assert!(what.contains(says) && !what.contains('\n'), "{text}: {what}");
        }
    }
}
