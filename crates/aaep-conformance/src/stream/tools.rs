//! Tools: every call comes back once, and before the state says so (§4.3.1, §4.3.2, §4.5.2).

use std::collections::BTreeSet;

use aaep_types::rule;

use super::Weight;
use super::memory::Digest;
use super::report::Report;
use super::states::{AWAITING_INPUT, CALLING_TOOL, HANDING_OFF};

/// Calls of one session that may run at the same time before we stop following further ones.
pub const MAX_OPEN_TOOLS: usize = 256;
/// Call ids of one session that are remembered; later ones are not checked for repetition.
pub const MAX_CALL_IDS: usize = 4096;

#[derive(Debug)]
struct Open {
    tool: Digest,
    call: Option<Digest>,
    line: u64,
    /// The line of the state change that left `calling_tool` while only this call ran.
    left: Option<u64>,
}

/// The calls of one session.
#[derive(Debug, Default)]
pub(super) struct Tools {
    open: Vec<Open>,
    calls: BTreeSet<Digest>,
    /// Whether a call came back since `calling_tool` was entered.
    returned: bool,
    full: bool,
}

impl Tools {
    /// A call is announced; true if a bound of ours was reached just now.
    pub(super) fn invoked(
        &mut self,
        tool: Digest,
        call: Option<Digest>,
        report: &mut Report<'_>,
    ) -> bool {
        if call.is_some_and(|call| self.calls.contains(&call)) {
            report.error(
                rule::T13,
                "This `tool_call_id` was used before in this session. Every call has its own.",
            );
        }
        let crowded = self.open.len() >= MAX_OPEN_TOOLS || self.calls.len() >= MAX_CALL_IDS;
        if let Some(call) = call.filter(|_| self.calls.len() < MAX_CALL_IDS) {
            self.calls.insert(call);
        }
        if self.open.len() < MAX_OPEN_TOOLS {
            self.open.push(Open { tool, call, line: report.line, left: None });
        }
        let newly = crowded && !self.full;
        self.full |= crowded;
        if newly {
            report.bound(format!(
                "This session has more than {MAX_OPEN_TOOLS} open calls or {MAX_CALL_IDS} call \
                 ids. From here on not all of its calls are followed."
            ));
        }
        newly
    }

    /// A call came back.
    pub(super) fn completed(
        &mut self,
        tool: Digest,
        call: Option<Digest>,
        weight: Weight,
        report: &mut Report<'_>,
    ) {
        let Some(at) = self.pair(tool, call, report) else {
            return self.unpaired(call, weight, report);
        };
        let open = self.open.remove(at);
        self.returned = true;
        if open.tool != tool {
            report.error(
                rule::T33,
                format!(
                    "This call was invoked with another `tool` on line {}. Both events name the \
                     same tool.",
                    open.line
                ),
            );
        }
        if let Some(left) = open.left {
            report.add(
                weight,
                rule::T16,
                format!(
                    "The state left `calling_tool` on line {left}, before this call came back. \
                     `tool.completed` comes first, then the state change that reflects it."
                ),
            );
        }
    }

    /// §4.5.2: by `tool_call_id`, else by `tool`, the oldest first.
    fn pair(&self, tool: Digest, call: Option<Digest>, report: &mut Report<'_>) -> Option<usize> {
        let find = |test: &dyn Fn(&Open) -> bool| self.open.iter().position(test);
        if let Some(at) = find(&|open| open.call == call && (call.is_some() || open.tool == tool)) {
            return Some(at);
        }
        // One of the two lacks the id.
        let at = find(&|open| open.tool == tool && (call.is_none() || open.call.is_none()))?;
        if call.is_some_and(|call| self.calls.contains(&call)) {
            return None;
        }
        report.warning(
            rule::T13,
            "Only one of `tool.invoked` and `tool.completed` has a `tool_call_id`. \
             Both carry the same one.",
        );
        Some(at)
    }

    fn unpaired(&mut self, call: Option<Digest>, weight: Weight, report: &mut Report<'_>) {
        if call.is_some_and(|call| self.calls.contains(&call)) {
            report.error(
                rule::T15,
                "This call came back before. Every call is completed exactly once.",
            );
        } else {
            report.add(
                weight,
                rule::T15,
                "This `tool.completed` has no `tool.invoked` before it. A call is announced first.",
            );
        }
    }

    /// T16, read so that other work is never accused: leaving `calling_tool` reflects a call that
    /// has not come back only if it was the only one open, none came back since the state was
    /// entered, the session did not leave to ask or to hand over, and it did not return meanwhile.
    pub(super) fn state(&mut self, from: Option<&str>, to: Option<&str>, line: u64) {
        if to == Some(CALLING_TOOL) {
            self.open.iter_mut().for_each(|open| open.left = None);
            self.returned = false;
        } else if from == Some(CALLING_TOOL) {
            let elsewhere = matches!(to, Some(AWAITING_INPUT | HANDING_OFF) | None);
            if let ([open], false, false) = (&mut self.open[..], self.returned, elsewhere) {
                open.left = Some(line);
            }
            self.returned = false;
        }
    }

    /// The session ends: whatever is open should have been completed, with `timeout` at least.
    pub(super) fn end(&self, weight: Weight, report: &mut Report<'_>) {
        for open in &self.open {
            report.add(
                weight,
                rule::T15,
                format!(
                    "The session ended, but the call invoked on line {} never came back. A call \
                     that does not return is completed with the status `timeout`.",
                    open.line
                ),
            );
        }
    }

    #[cfg(test)]
    pub(super) fn is_bounded(&self) -> bool {
        self.open.len() <= MAX_OPEN_TOOLS && self.calls.len() <= MAX_CALL_IDS
    }
}
