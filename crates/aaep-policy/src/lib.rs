//! Which tools of an agent are risky, what to ask before they run, and in which words.
//!
//! The author of an agent should not have to remember to ask. A policy is a file, one for all
//! agents and bridges of a person, that says of every tool what happens before it runs:
//!
//! ```
//! use aaep_policy::{Policy, Verdict};
//!
//! let policy = Policy::parse(r#"
//!     [[rule]]
//!     tool = "bank.transfer"
//!     where = { amount = { at_most = 20 }, currency = "EUR" }
//!     risk_level = "medium"
//!     reversibility = "irreversible"
//!     action = "Transfer {amount} euros to {recipient}"
//!     consequence = "The money leaves your account at once."
//!
//!     [[rule]]
//!     tool = ["files.read", "files.list*"]
//!     risk_level = "low"
//!     reversibility = "reversible"
//!     verdict = "silent"
//! "#).unwrap();
//!
//! let ruling = policy.decide("bank.transfer", r#"{"amount":"12.50","currency":"EUR","recipient":"bob"}"#);
//! assert_eq!(ruling.verdict, Verdict::Ask);
//! assert_eq!(ruling.action, r#"Transfer 12.50 euros to "bob""#);
//!
//! // What no rule covers counts as high risk and irreversible.
//! let ruling = policy.decide("bank.transfer", r#"{"amount":"12,50","currency":"EUR"}"#);
//! assert_eq!((ruling.rule.as_ref(), ruling.verdict), (None, Verdict::Ask));
//! assert_eq!(ruling.explain()[1], "Rule 1, in line 2, cannot be judged: the argument `amount` is no number.");
//! ```
//!
//! # What it holds
//!
//! * The first rule that matches counts. What no rule covers is asked, as high risk and irreversible.
//! * What a rule does not say counts as the worst: a rule without `risk_level` is of high risk.
//! * A rule that would let something irreversible or of high risk run in silence, or on silence, is
//!   no rule: the file is refused, with the line.
//! * A condition that cannot be judged (a number that is none, a path with `..` in it, arguments
//!   with a name that stands twice) covers nothing, and no later rule is tried: the call is asked.
//! * Whatever an argument says, it cannot be taken for our own words, and secrets are left out.
//!
//! # What is deliberately absent
//!
//! * **Files, clocks, networks.** Parsing takes text; where it comes from is the caller's affair.
//! * **Allowing once or always.** A policy says what is asked, not what was answered.
//! * **Patterns for commands of a shell.** `git status*` also fits `git status; rm -r .`: a pattern
//!   cannot judge a language. Leave such tools to the question.
//! * **Other languages.** Your templates may be in any, which `language` names; sentences of this
//!   crate are English, and are left out around templates in another language.

mod arguments;
mod condition;
mod decimal;
mod glob;
mod problem;
mod read;
mod rule;
mod ruling;
mod show;
mod template;
mod words;

use aaep_types::{Presence, RiskLevel};
use arguments::Arguments;
use condition::Truth;
use rule::Rule;

pub use glob::Glob;
pub use problem::{MAX_PROBLEMS, Problem};
pub use rule::Verdict;
pub use ruling::{Matched, Ruling};

/// The largest policy file, in bytes.
pub const MAX_FILE_BYTES: usize = 256 * 1024;
/// Rules in one policy.
pub const MAX_RULES: usize = 1000;
/// Patterns of tools in one rule.
pub const MAX_PATTERNS: usize = 32;
/// The longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 256;
/// Arguments with conditions in one rule.
pub const MAX_CONDITIONS: usize = 16;
/// Values in one `one_of`.
pub const MAX_LISTED: usize = 64;
/// The longest text in a policy, in bytes.
pub const MAX_VALUE_BYTES: usize = 4096;
/// The longest name of a tool that rules are tried on, in bytes.
pub const MAX_TOOL_BYTES: usize = 512;
/// The largest arguments that are read, in bytes.
pub const MAX_ARGUMENT_BYTES: usize = 1 << 20;

/// Rules, in their order. Without any, everything is asked.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    /// The language of its templates, where that is not English.
    language: Option<String>,
    presence: PresenceByRisk,
}

/// The presence that a yes requires, where no rule says it; `None` is not said.
#[derive(Clone, Copy, Debug, Default)]
struct PresenceByRisk {
    low: Option<Presence>,
    medium: Option<Presence>,
    high: Option<Presence>,
}

impl PresenceByRisk {
    fn set(&mut self, risk: RiskLevel, presence: Option<Presence>) {
        match risk {
            RiskLevel::Low => self.low = presence,
            RiskLevel::Medium => self.medium = presence,
            RiskLevel::High => self.high = presence,
        }
    }
}

impl Policy {
    /// Reads a policy file, which is TOML. What is wrong with it is told in full, in the order of
    /// the file; a policy that exists holds no rule that it may not.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        read::read(text)
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    // enforces: I34
    /// The presence that a yes to something of this risk requires, where no rule says it;
    /// `None` if the policy leaves it to the hub.
    pub fn presence_for(&self, risk: RiskLevel) -> Option<Presence> {
        match risk {
            RiskLevel::Low => self.presence.low,
            RiskLevel::Medium => self.presence.medium,
            RiskLevel::High => self.presence.high,
        }
    }

    /// Whether anything in it requires this much presence for a yes.
    pub fn asks_for(&self, presence: Presence) -> bool {
        let by_risk = [self.presence.low, self.presence.medium, self.presence.high];
        let by_rule = self.rules.iter().map(|rule| rule.presence);
        by_risk.into_iter().chain(by_rule).any(|asked| asked == Some(presence))
    }

    // enforces: T27, I9
    /// What happens before this tool runs with these arguments, a JSON text; an empty one means
    /// that there are none.
    pub fn decide(&self, tool: &str, arguments: &str) -> Ruling {
        let arguments = match Arguments::read(arguments) {
            Ok(arguments) => arguments,
            Err(why) => {
                let reason = format!("Nobody can say what the arguments mean: {why}.");
                let unclear = self.rules.iter().any(|rule| rule.pattern_for(tool).is_some());
                return Ruling::uncovered(tool, None, vec![reason]).and_unclear(unclear);
            }
        };
        self.first_match(tool, &arguments, |rule| judge(rule, &arguments))
    }

    // enforces: T27
    /// The same for unknown arguments: a rule with conditions cannot be judged
    /// then, so what it may be meant for is asked.
    pub fn decide_unseen(&self, tool: &str) -> Ruling {
        self.first_match(tool, &Arguments::None, |rule| match rule.conditions.is_empty() {
            true => Truth::Holds,
            false => Truth::Unclear("it has conditions, and nobody said the arguments".into()),
        })
    }

    fn first_match(
        &self,
        tool: &str,
        arguments: &Arguments<'_>,
        judge: impl Fn(&Rule) -> Truth,
    ) -> Ruling {
        if tool.len() > MAX_TOOL_BYTES {
            let reason = format!("The name of the tool is longer than {MAX_TOOL_BYTES} bytes.");
            return Ruling::uncovered(tool, Some(arguments), vec![reason]);
        }
        let mut reasons = Vec::new();
        for (number, rule) in (1..).zip(&self.rules) {
            let Some(pattern) = rule.pattern_for(tool) else { continue };
            let place = format!("Rule {number}, in line {},", rule.line);
            match judge(rule) {
                Truth::Holds => {
                    let pattern = pattern.as_str();
                    let ruling = Ruling::covered((number, rule), pattern, tool, arguments, reasons);
                    return match &self.language {
                        Some(language) if ruling.has_template => {
                            ruling.in_their_language(rule, language, arguments)
                        }
                        _ => ruling,
                    };
                }
                Truth::Fails(why) => reasons.push(format!("{place} does not count: {why}.")),
                // A later rule may be milder than this one was meant to be.
                Truth::Unclear(why) => {
                    reasons.push(format!("{place} cannot be judged: {why}."));
                    return Ruling::uncovered(tool, Some(arguments), reasons).and_unclear(true);
                }
            }
        }
        Ruling::uncovered(tool, Some(arguments), reasons)
    }
}

/// All conditions together: one that fails settles it.
fn judge(rule: &Rule, arguments: &Arguments<'_>) -> Truth {
    let mut all = Truth::Holds;
    for condition in &rule.conditions {
        match condition.judge(arguments) {
            Truth::Holds => {}
            Truth::Fails(why) => return Truth::Fails(why),
            unclear => all = unclear,
        }
    }
    all
}

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
