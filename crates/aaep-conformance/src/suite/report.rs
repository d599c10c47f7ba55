//! What was found, and what may be claimed.

use aaep_types::profile::Profile;

use super::catalog::{self, Check, Force};

/// Which side of the protocol is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What an agent, or a hub, does.
    Producer,
    /// What assistive technology does.
    Subscriber,
}

impl Side {
    /// In small letters, as in a claim.
    pub fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Subscriber => "subscriber",
        }
    }

    /// What is checked of it.
    pub fn catalog(self) -> &'static [Check] {
        match self {
            Self::Producer => catalog::CATALOG,
            Self::Subscriber => catalog::SUBSCRIBER,
        }
    }
}

/// What became of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It got what it needs, and found nothing wrong.
    Passed,
    /// It found these things wrong.
    Failed(Vec<String>),
    /// It did not get what it needs; this is why.
    NotExercised(String),
}

/// A check and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// What was checked.
    pub check: Check,
    /// What became of it.
    pub outcome: CheckOutcome,
}

/// Everything that one run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which side it is about.
    pub side: Side,
    /// The profile that was checked besides, if one was: its name and address.
    pub profile: Option<String>,
    /// The level that the profile needs.
    profile_level: u8,
    /// Whom it is about.
    pub target: String,
    /// The level that was asked for.
    pub level: u8,
    /// When it began, as RFC 3339.
    pub began: String,
    /// How long it took.
    pub seconds: f64,
    /// Why the run ended before its end, if it did.
    pub cut_short: Option<String>,
    /// Each check of the level and of those below it.
    pub results: Vec<CheckResult>,
}

/// Things that one check may say; the rest is counted.
const MAX_FINDINGS: usize = 10;

impl Report {
    pub(super) fn new(side: Side, target: &str, level: u8, began: String) -> Self {
        let wanted = side.catalog().iter().filter(|check| check.level <= level);
        let fresh = |check: &Check| CheckResult {
            check: *check,
            outcome: CheckOutcome::NotExercised("The run did not come to it.".into()),
        };
        let results = wanted.map(fresh).collect();
        Self {
            side,
            profile: None,
            profile_level: 0,
            target: target.into(),
            level,
            began,
            seconds: 0.0,
            cut_short: None,
            results,
        }
    }

    /// The rules of a profile are checked too (§7.10, §9.6).
    // enforces: X6
    pub(super) fn under(&mut self, profile: &Profile) {
        self.profile = Some(format!("{} {} ({})", profile.name, profile.version, profile.uri));
        self.profile_level = profile.level;
        let outcome = CheckOutcome::NotExercised("The run did not come to it.".into());
        self.results.push(CheckResult { check: catalog::PROFILE, outcome });
    }

    /// The check of this name, if the run is about it.
    pub fn check(&self, id: &str) -> Option<&CheckResult> {
        self.results.iter().find(|result| result.check.id == id)
    }

    /// The checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CheckResult> {
        self.results.iter().filter(|result| matches!(result.outcome, CheckOutcome::Failed(_)))
    }

    /// The highest level of which, and below which, every MUST was exercised and passed.
    // enforces: V3
    pub fn granted(&self) -> Option<u8> {
        if self.cut_short.is_some() {
            return None;
        }
        let holds = |level: u8| {
            let mut musts = self
                .results
                .iter()
                .filter(|result| result.check.level == level && result.check.force == Force::Must);
            musts.all(|result| result.outcome == CheckOutcome::Passed)
        };
        (1..=self.level).take_while(|level| holds(*level)).last()
    }

    /// Whether the profile that was asked for holds too; true if none was.
    pub fn keeps_profile(&self) -> bool {
        let kept = self.check(catalog::PROFILE.id);
        kept.is_none_or(|result| {
            result.outcome == CheckOutcome::Passed && self.granted() >= Some(self.profile_level)
        })
    }

    /// The sentence of a conformance claim (§9.8), or why there is none.
    pub fn claim(&self) -> String {
        let (version, suite) = (aaep_types::AAEP_VERSION, env!("CARGO_PKG_VERSION"));
        match self.granted() {
            Some(level) => format!(
                "{} conforms to AAEP {version} as a {} at level {level} ({}), {}, \
                 by the suite aaep-conformance {suite}, in this report of {}.",
                self.target,
                self.side.name(),
                level_name(level),
                match &self.profile {
                    Some(profile) if self.keeps_profile() => format!("with the profile {profile}"),
                    _ => "without a profile".into(),
                },
                self.began
            ),
            None => format!(
                "No claim can be made for {}: not every MUST of level 1 was exercised and passed.",
                self.target
            ),
        }
    }

    /// It got what it needs; unless it failed before, it passed.
    pub(super) fn pass(&mut self, id: &str) {
        self.change(id, |outcome| {
            if matches!(outcome, CheckOutcome::NotExercised(_)) {
                *outcome = CheckOutcome::Passed;
            }
        });
    }

    pub(super) fn fail(&mut self, id: &str, what: impl Into<String>) {
        self.change(id, |outcome| match outcome {
            CheckOutcome::Failed(found) => {
                let what = what.into();
                if found.len() < MAX_FINDINGS && !found.contains(&what) {
                    found.push(what);
                }
            }
            other => *other = CheckOutcome::Failed(vec![what.into()]),
        });
    }

    /// Passed if this holds, failed otherwise.
    pub(super) fn holds(&mut self, id: &str, holds: bool, otherwise: impl Into<String>) {
        if holds { self.pass(id) } else { self.fail(id, otherwise) }
    }

    pub(super) fn skip(&mut self, id: &str, why: impl Into<String>) {
        self.change(id, |outcome| {
            if let CheckOutcome::NotExercised(said) = outcome {
                *said = why.into();
            }
        });
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut CheckOutcome)) {
        let found = self.results.iter_mut().find(|result| result.check.id == id);
        if let Some(result) = found {
            change(&mut result.outcome);
        }
    }
}

/// What a level is called.
pub(super) fn level_name(level: u8) -> &'static str {
    match level {
        1 => "Notification",
        2 => "Interactive",
        _ => "Negotiated",
    }
}
