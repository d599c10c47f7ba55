//! What a call would do, step by step, and what that means for the person.

use aaep_policy::{Ruling, Verdict};
use aaep_types::{Reversibility, RiskLevel};

/// Steps that are told in one question; the rest is counted.
const TOLD: usize = 4;

/// Characters of something that the agent wrote, within a sentence of ours.
const ROOM: usize = 80;

/// What one step is. The later ones weigh more; from [`Kind::Unclear`] on the person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// Looks at something.
    Reads,
    /// Changes something in the project.
    Changes,
    /// Runs what the project itself says, such as its tests.
    Runs,
    /// A rule of the person's own policy lets it run.
    Permitted,
    /// Nobody can tell what it does.
    Unclear,
    /// Something that no built-in rule knows.
    Unknown,
    /// A rule of the person's own policy wants it asked.
    Ruled,
    /// Changes something outside the project.
    Outside,
    /// Sends something away.
    Network,
    /// Brings in other people's programs.
    Installs,
    /// Stops programs, or acts as somebody else.
    System,
    /// Reaches keys and passwords.
    Credentials,
    /// Reaches what asks the person: `aaep`, or the agent's own settings.
    Guard,
    /// Others see it at once.
    Publishes,
    /// Runs a program that was not looked at.
    Downloads,
    /// Takes something away for good.
    Deletes,
}

impl Kind {
    /// Whether the person is asked first.
    pub fn is_asked(self) -> bool {
        self >= Self::Unclear
    }

    /// Why, in a sentence.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Reads => "It only looks at something.",
            Self::Changes => "It changes something inside the project.",
            Self::Runs => "It runs what the project itself says.",
            Self::Permitted => "A rule of your policy lets it run.",
            Self::Unclear => "Nobody can tell what it would do.",
            Self::Unknown => "No built-in rule knows what this does.",
            Self::Ruled => "A rule of your policy wants it asked.",
            Self::Outside => "It changes something outside the project.",
            Self::Network => "It sends something over the network.",
            Self::Installs => "It brings in programs of others.",
            Self::System => "It stops programs, or acts with other rights.",
            Self::Credentials => "It reaches keys or passwords.",
            Self::Guard => "It reaches what asks you, or the agent's own settings.",
            Self::Publishes => "Others see it at once.",
            Self::Downloads => "It runs a program that nobody has looked at.",
            Self::Deletes => "It takes something away.",
        }
    }

    fn undone(self) -> Reversibility {
        match self {
            Self::Reads => Reversibility::Reversible,
            Self::Changes | Self::Runs | Self::Permitted => Reversibility::ReversibleWithEffort,
            _ => Reversibility::Irreversible,
        }
    }

    fn consequence(self) -> &'static str {
        match self {
            Self::Reads => "It can be undone.",
            Self::Changes | Self::Runs | Self::Permitted => "It can be undone with some effort.",
            Self::Ruled => "Your policy wants you to be asked.",
            Self::Unclear | Self::Unknown => "Nobody knows whether it can be undone.",
            Self::Outside => "It may not be possible to undo it.",
            Self::Network | Self::Publishes => "It cannot be taken back.",
            Self::Installs => "Their programs can run on this machine from then on.",
            Self::System => "It may not be possible to undo it.",
            Self::Credentials => "Whoever reads them can use them.",
            Self::Guard => "You may not be asked any longer.",
            Self::Downloads => "It can do everything that you can do.",
            Self::Deletes => "Cannot be undone.",
        }
    }
}

/// One step: what it is, and in which words it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// What it is.
    pub kind: Kind,
    /// A sentence, such as `Delete 214 files in build.`
    pub text: String,
}

impl Act {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// What a whole call would do: its steps, what matters most first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgment {
    acts: Vec<Act>,
}

impl Judgment {
    /// A call of these steps. One without any does nothing that anybody could name, so it is asked.
    pub fn of(mut acts: Vec<Act>) -> Self {
        if acts.is_empty() {
            acts.push(Act::new(Kind::Unclear, "Do something that nobody can name."));
        }
        acts.sort_by_key(|act| std::cmp::Reverse(act.kind));
        acts.dedup();
        Self { acts }
    }

    /// The same under a policy of the person. A rule can have anything asked; it can let something run
    /// only if no built-in rule knows it: patterns cannot judge commands, and what reaches keys or
    /// what asks the person is always asked.
    pub fn under(mut self, ruling: &Ruling) -> Self {
        if ruling.rule.is_none() && !ruling.unclear {
            return self;
        }
        match ruling.verdict {
            Verdict::Announce | Verdict::Silent if self.kind() == Kind::Unknown => {
                Self::of(vec![Act::new(Kind::Permitted, sentence(ruling))])
            }
            Verdict::Ask => {
                let text = match ruling.has_template {
                    true => sentence(ruling),
                    false => self.action(),
                };
                // What the built-in rules ask about stays in the question.
                self.acts.retain(|act| act.kind.is_asked());
                self.acts.push(Act::new(Kind::Ruled, text));
                Self::of(self.acts)
            }
            _ => self,
        }
    }

    /// The steps, what matters most first.
    pub fn acts(&self) -> &[Act] {
        &self.acts
    }

    /// What weighs most.
    pub fn kind(&self) -> Kind {
        self.acts.first().map_or(Kind::Unclear, |act| act.kind)
    }

    /// Whether the person is asked first.
    pub fn is_asked(&self) -> bool {
        self.kind().is_asked()
    }

    /// What would be done: what matters most first. Where the person is asked, harmless steps are left
    /// out.
    pub fn action(&self) -> String {
        let told: Vec<_> =
            self.acts.iter().filter(|act| act.kind.is_asked() || !self.is_asked()).collect();
        let mut text = String::new();
        for act in told.iter().take(TOLD) {
            if !text.is_empty() {
                text.push_str(" Also: ");
            }
            text.push_str(&act.text);
        }
        match told.len().saturating_sub(TOLD) {
            0 => {}
            1 => text.push_str(" And one more step."),
            more => text.push_str(&format!(" And {more} more steps.")),
        }
        text
    }

    /// What comes of it.
    pub fn consequence(&self) -> &'static str {
        self.kind().consequence()
    }

    /// Whether it can be undone.
    pub fn reversibility(&self) -> Reversibility {
        self.kind().undone()
    }

    /// How much can go wrong.
    pub fn risk(&self) -> RiskLevel {
        match self.kind() {
            Kind::Reads => RiskLevel::Low,
            Kind::Changes | Kind::Runs | Kind::Permitted | Kind::Unknown => RiskLevel::Medium,
            _ => RiskLevel::High,
        }
    }

    /// What would happen and why, one plain sentence after the other.
    pub fn explain(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_asked() {
            lines.push("You are asked first.".to_owned());
            lines.push(format!("The question: {} {}", self.action(), self.consequence()));
        } else {
            lines.push("It runs without a question, and you are told.".to_owned());
            lines.push(format!("What is said: {}", self.action()));
        }
        let mut last = None;
        for act in &self.acts {
            if last != Some(act.kind) && act.kind.is_asked() == self.is_asked() {
                lines.push(format!("Why: {}", act.kind.reason()));
            }
            last = Some(act.kind);
        }
        if self.is_asked() {
            lines.push("Without an answer it is not done.".to_owned());
        }
        lines
    }
}

fn sentence(ruling: &Ruling) -> String {
    match ruling.action.ends_with(['.', '!', '?']) {
        true => ruling.action.clone(),
        false => format!("{}.", ruling.action),
    }
}

/// Something that the agent wrote, fit to stand in a sentence of ours: on one line, bounded, without
/// characters that change how the rest is shown.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars().map(|character| match character {
        '\n' | '\r' | '\t' => ' ',
        other if hides(other) => '\u{fffd}',
        other => other,
    });
    out.extend(characters.by_ref().take(ROOM));
    if characters.next().is_some() {
        out.push('…');
    }
    out.trim().to_owned()
}

/// Characters that are not seen, or that turn the order of what is seen.
fn hides(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_most_is_told_first_and_harmless_steps_are_left_out() {
        let judgment = Judgment::of(vec![
            Act::new(Kind::Reads, "Look at a."),
            Act::new(Kind::Network, "Send b."),
            Act::new(Kind::Deletes, "Delete c."),
        ]);
        assert_eq!(judgment.action(), "Delete c. Also: Send b.");
        assert_eq!(judgment.reversibility(), Reversibility::Irreversible);
        assert!(Judgment::of(Vec::new()).is_asked());
    }

    #[test]
    fn a_policy_makes_anything_stricter_and_only_the_unknown_milder() {
        let file = "[[rule]]\ntool = \"mild\"\nverdict = \"announce\"\nrisk_level = \"low\"\n\
                    reversibility = \"reversible\"\n[[rule]]\ntool = \"strict\"\naction = \"Look at it\"\n";
        let policy = aaep_policy::Policy::parse(file).unwrap();
        let under = |kind, tool| {
            Judgment::of(vec![Act::new(kind, "It.")]).under(&policy.decide(tool, "{}")).kind()
        };
        assert_eq!(under(Kind::Unknown, "mild"), Kind::Permitted);
        for kind in [Kind::Guard, Kind::Deletes, Kind::Outside, Kind::Unclear, Kind::Credentials] {
            assert_eq!(under(kind, "mild"), kind);
            assert!(under(kind, "strict") >= kind);
        }
        assert_eq!(under(Kind::Reads, "strict"), Kind::Ruled);
        assert_eq!(under(Kind::Reads, "other"), Kind::Reads);
    }

    #[test]
    fn what_an_agent_writes_stays_on_its_line() {
        assert_eq!(shown("a\nb\u{202e}c\u{1b}[2J"), "a b\u{fffd}c\u{fffd}[2J");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), ROOM + 1);
    }
}
