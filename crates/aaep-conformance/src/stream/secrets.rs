//! Secrets in what people hear or read (§4.3.1, §10.2.2 T5).

use aaep_types::secret::{self, Kind, SecretMatch, Watch};
use aaep_types::{LenientEvent, rule};

use super::Weight;
use super::report::{Report, word};
use super::said;

/// Texts of one event that are reported; more of them have the same cause.
const MAX_TOLD: usize = 8;

// enforces: S9
/// Looks through every text of an event. Streamed output is followed apart, by [`Output`].
pub(super) fn judge(heard: &LenientEvent<'_>, report: &mut Report<'_>) {
    let mut told = 0;
    said::texts(heard, |name, text| {
        let found = secret::find(text);
        if told < MAX_TOLD && !found.is_empty() {
            told += 1;
            tell(&format!("`{}`", word(name)), &found, report);
        }
    });
}

/// The text of one output: a secret may lie across many chunks.
#[derive(Debug, Default)]
pub(super) struct Output(Watch);

impl Output {
    pub(super) fn piece(&mut self, text: &str, complete: bool, report: &mut Report<'_>) {
        let mut found = self.0.next(text);
        if complete {
            found.extend(self.0.end());
        }
        if !found.is_empty() {
            tell("the output", &found, report);
        }
    }
}

/// What is there is said, and never repeated.
fn tell(place: &str, found: &[SecretMatch], report: &mut Report<'_>) {
    let certain = found.iter().any(|found| found.certain);
    let mut kinds: Vec<Kind> = found.iter().map(|found| found.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let names: Vec<String> = kinds.iter().map(|kind| format!("a {kind}")).collect();
    // A form that is unmistakable breaks the rule; a guess may be wrong.
    let weight = if certain { Weight::Error } else { Weight::Warning };
    let text = format!(
        "There is what looks like {} in {place}. Others hear and keep these words; leave it out.",
        names.join(" and ")
    );
    report.add(weight, rule::T14, text);
}
