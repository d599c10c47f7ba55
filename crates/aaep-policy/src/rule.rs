//! One rule, and what no rule may say.

use std::fmt;

use aaep_types::{Decision, Presence, Reversibility, RiskLevel, TimeoutSeconds};

use crate::condition::Condition;
use crate::glob::Glob;
use crate::problem::Problems;
use crate::template::Template;

/// What happens before a tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The user is asked, and it waits.
    Ask,
    /// It runs, and the user is told.
    Announce,
    /// It runs, and nothing is said.
    Silent,
}

impl Verdict {
    /// Every one of them.
    pub const ALL: [Verdict; 3] = [Verdict::Ask, Verdict::Announce, Verdict::Silent];

    /// The word in a policy file.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Ask => "ask",
            Verdict::Announce => "announce",
            Verdict::Silent => "silent",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A rule that was read and says nothing that it may not.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) line: usize,
    pub(crate) tools: Vec<Glob>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) risk: RiskLevel,
    pub(crate) reversibility: Reversibility,
    pub(crate) verdict: Verdict,
    pub(crate) timeout: TimeoutSeconds,
    pub(crate) default: Decision,
    /// The presence that a yes requires, if the rule says so.
    pub(crate) presence: Option<Presence>,
    pub(crate) action: Option<Template>,
    pub(crate) consequence: Option<Template>,
    pub(crate) summary: Option<Template>,
}

impl Rule {
    /// The pattern that a tool fits.
    pub(crate) fn pattern_for(&self, tool: &str) -> Option<&Glob> {
        self.tools.iter().find(|glob| glob.matches(tool))
    }

    /// Whether whatever fits the other rule fits this one before.
    pub(crate) fn hides(&self, other: &Rule) -> bool {
        self.conditions.is_empty()
            && other.tools.iter().all(|tool| self.tools.iter().any(|wide| wide.covers(tool)))
    }
}

/// How long to wait for an answer (§6.4.2), if the rule does not say: the longer, the more is at
/// stake.
pub(crate) fn usual_timeout(risk: RiskLevel, reversibility: Reversibility) -> TimeoutSeconds {
    // enforces: C17
    let seconds = match (risk, reversibility) {
        (RiskLevel::High, _) => 300,
        (RiskLevel::Low, Reversibility::Reversible) => 90,
        (RiskLevel::Medium | RiskLevel::Low, _) => 180,
    };
    TimeoutSeconds::new(seconds).unwrap_or_else(|_| unreachable!("all of these are in range"))
}

/// What a rule says, and where; `None` is not said.
#[derive(Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: Option<T>,
    pub(crate) at: usize,
}

impl<T: Copy> Located<T> {
    /// What counts.
    pub(crate) fn or(&self, usual: T) -> T {
        self.value.unwrap_or(usual)
    }

    fn is_said(&self) -> bool {
        self.value.is_some()
    }
}

/// The parts of a rule that have to fit together.
#[derive(Debug)]
pub(crate) struct Stance {
    pub(crate) risk: Located<RiskLevel>,
    pub(crate) reversibility: Located<Reversibility>,
    pub(crate) verdict: Located<Verdict>,
    pub(crate) timeout: Located<TimeoutSeconds>,
    pub(crate) default: Located<Decision>,
    pub(crate) presence: Located<Presence>,
}

impl Stance {
    /// What is not said counts as the worst.
    pub(crate) fn risk(&self) -> RiskLevel {
        self.risk.or(RiskLevel::High)
    }

    pub(crate) fn reversibility(&self) -> Reversibility {
        self.reversibility.or(Reversibility::Irreversible)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict.or(Verdict::Ask)
    }

    /// Says what no rule may say. `everything` is a pattern that fits any tool.
    pub(crate) fn check(&self, everything: bool, problems: &mut Problems) {
        match self.verdict() {
            Verdict::Ask => self.check_default(everything, problems),
            quiet => {
                self.check_quiet(quiet, everything, problems);
                self.check_unused(quiet, problems);
            }
        }
    }

    // enforces: T12, T27, T31
    /// What runs without a question.
    fn check_quiet(&self, verdict: Verdict, everything: bool, problems: &mut Problems) {
        let at = self.verdict.at;
        let unsaid = self.unsaid();
        if self.reversibility() == Reversibility::Irreversible {
            let what = format!("`{verdict}` is not for what cannot be undone{unsaid}.");
            problems.add(
                at,
                "verdict",
                what,
                "Write `verdict = \"ask\"`, or say in `reversibility` how it can be undone.",
            );
        } else if verdict == Verdict::Silent && self.reversibility() != Reversibility::Reversible {
            let what = "`silent` is not for what takes effort to undo.";
            problems.add(at, "verdict", what, "Write `announce` or `ask`.");
        }
        if verdict == Verdict::Silent && self.risk() == RiskLevel::High {
            let what = format!("`silent` is not for high risk{unsaid}.");
            problems.add(
                at,
                "verdict",
                what,
                "Write `announce` or `ask`, or a lower `risk_level` if it is lower.",
            );
        }
        if everything {
            let what = format!(
                "A pattern that fits every tool cannot be `{verdict}`: it would cover tools that nobody thought of."
            );
            problems.add(at, "verdict", what, "Name the tools, or write `verdict = \"ask\"`.");
        }
    }

    fn unsaid(&self) -> &'static str {
        match (self.risk.is_said(), self.reversibility.is_said()) {
            (true, true) => "",
            (false, true) => "; without a `risk_level` the risk counts as high",
            (_, false) => "; without a `reversibility` nothing counts as reversible",
        }
    }

    // enforces: C15, D10, D11, I9
    /// When silence may not mean yes.
    fn check_default(&self, everything: bool, problems: &mut Problems) {
        if self.default.or(Decision::Reject) == Decision::Reject {
            return;
        }
        let (at, remedy) =
            (self.default.at, "Write `default_decision = \"reject\"`, or leave it out.");
        let unsaid = self.unsaid();
        if self.reversibility() != Reversibility::Reversible {
            let what = format!(
                "Silence is no consent to what cannot be undone, or only with effort{unsaid}."
            );
            problems.add(at, "default_decision", what, remedy);
        } else if self.risk() == RiskLevel::High {
            let what = format!("Silence is no consent to high risk{unsaid}.");
            problems.add(at, "default_decision", what, remedy);
        } else if self.presence.or(Presence::None) != Presence::None {
            let what = "Nobody is present in silence.";
            problems.add(at, "default_decision", what, remedy);
        } else if everything {
            let what = "Silence is no consent for a pattern that fits every tool.";
            problems.add(at, "default_decision", what, remedy);
        }
    }

    /// What would have no effect was meant otherwise.
    fn check_unused(&self, verdict: Verdict, problems: &mut Problems) {
        let what = format!("It has no effect: with `{verdict}` nobody is asked.");
        let remedy = "Take it out, or write `verdict = \"ask\"`.";
        if self.timeout.is_said() {
            problems.add(self.timeout.at, "timeout_seconds", what.clone(), remedy);
        }
        if self.default.is_said() {
            problems.add(self.default.at, "default_decision", what.clone(), remedy);
        }
        if self.presence.is_said() {
            problems.add(self.presence.at, "presence", what, remedy);
        }
    }
}
