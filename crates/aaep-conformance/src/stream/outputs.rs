//! Streamed text: nothing missing, nothing twice, one end (§4.3.3, §4.5.4).

use std::collections::BTreeMap;

use aaep_types::rule;

use super::Weight;
use super::memory::Digest;
use super::report::Report;
use super::said::Piece;
use super::secrets;

/// Outputs of one session that are followed; later ones are not judged.
pub const MAX_OUTPUTS: usize = 256;

#[derive(Debug)]
struct Output {
    line: u64,
    /// Where the latest chunk began, and where the next one should.
    at: u64,
    next: Option<u64>,
    done: bool,
    secrets: secrets::Output,
}

/// The outputs of one session.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    known: BTreeMap<Digest, Output>,
    full: bool,
}

impl Outputs {
    /// A chunk came; true if a bound of ours was reached just now. `gap` is the weight of text that
    /// is missing.
    pub(super) fn piece(
        &mut self,
        piece: &Piece<'_>,
        gap: Weight,
        report: &mut Report<'_>,
    ) -> bool {
        if !self.known.contains_key(&piece.output) && self.known.len() >= MAX_OUTPUTS {
            return self.refuse(report);
        }
        let secrets = secrets::Output::default();
        let fresh = Output { line: report.line, at: 0, next: Some(0), done: false, secrets };
        let output = self.known.entry(piece.output).or_insert(fresh);
        if output.done {
            report.error(
                rule::T18,
                "This chunk comes after its output was completed. \
                 `complete: true` stands on the last chunk and on no other.",
            );
            return false;
        }
        output.done = piece.complete;
        output.secrets.piece(&piece.text, piece.complete, report);
        let Some(position) = piece.position else {
            output.next = None;
            return false;
        };
        output.judge(piece, position, gap, report);
        output.advance(piece, position);
        false
    }

    fn refuse(&mut self, report: &mut Report<'_>) -> bool {
        let newly = !self.full;
        self.full = true;
        if newly {
            report.bound(format!(
                "This session has more than {MAX_OUTPUTS} outputs. Further ones are not judged."
            ));
        }
        newly
    }

    /// The session ends: whatever is open should have been completed.
    pub(super) fn end(&self, weight: Weight, report: &mut Report<'_>) {
        for output in self.known.values().filter(|output| !output.done) {
            report.add(
                weight,
                rule::T18,
                format!(
                    "The session ended, but the output begun on line {} was never completed. \
                     Its last chunk says `complete: true`.",
                    output.line
                ),
            );
        }
    }

    #[cfg(test)]
    pub(super) fn is_bounded(&self) -> bool {
        self.known.len() <= MAX_OUTPUTS
    }
}

impl Output {
    fn judge(&self, piece: &Piece<'_>, position: u64, gap: Weight, report: &mut Report<'_>) {
        let Some(next) = self.next else { return };
        // enforces: D20
        let closes_empty = piece.complete && piece.length == Some(0);
        if position > next {
            report.add(
                gap,
                rule::T17,
                format!(
                    "This chunk begins at {position}, but the text so far ends at {next}. Positions \
                     count the characters (Unicode scalar values) before them, and none is left out."
                ),
            );
        } else if position < self.at {
            report.error(
                rule::T18,
                format!(
                    "This chunk begins at {position}, before the last one, which began at {}. \
                     Positions never go back.",
                    self.at
                ),
            );
        } else if position < next && !closes_empty {
            report.error(
                rule::T17,
                format!(
                    "This chunk begins at {position}, but the text so far ends at {next}. \
                     Chunks do not overlap; positions count characters (Unicode scalar values)."
                ),
            );
        }
    }

    fn advance(&mut self, piece: &Piece<'_>, position: u64) {
        self.at = position;
        self.next = piece.length.and_then(|length| position.checked_add(length));
    }
}
