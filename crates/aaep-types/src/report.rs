//! Problems, and how they are gathered.
//!
//! The same code reads a message twice at most. The first time nothing is gathered but whether
//! there is any problem at all; only when there is one, it runs again and writes down each. So the
//! two passes cannot disagree, and a valid message costs no explanation.

use std::fmt;

use crate::json::{JsonFault, JsonFaultKind, Raw, pointer_at};
use crate::limits::MAX_PROBLEMS;
use crate::rule::{self, Rule};

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A MUST is broken: the message is invalid.
    Error,
    /// A SHOULD is not followed, or a decision of ours says to warn only.
    Warning,
}

/// One thing that is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether it makes the message invalid.
    pub severity: Severity,
    /// The rule it breaks.
    pub rule: Rule,
    /// Where: a JSON pointer (RFC 6901), empty for the whole message.
    pub pointer: String,
    /// One sentence that says what to change.
    pub text: String,
    stage: u8,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "message" } else { &self.pointer };
        let severity = if self.severity == Severity::Error { "error" } else { "warning" };
        write!(f, "{severity} at {place}: {} ({}, §{})", self.text, self.rule.id, self.rule.section)
    }
}

/// Everything that is wrong with a message that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// At least one of them is an error.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}

/// Whose message is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A foreign message: what the decisions only warn of is let through.
    Wire,
    /// Our own, before it leaves: what the decisions refuse at our source is an error.
    Source,
}

/// Gathers problems while a message is read.
#[derive(Debug)]
pub struct Report {
    reading: Reading,
    explain: bool,
    wants_value: bool,
    errors: bool,
    warnings: bool,
    newer: bool,
    mixed: Vec<String>,
    any_mixed: bool,
    path: Vec<String>,
    problems: Vec<Problem>,
    errors_written: usize,
    warnings_written: usize,
}

impl Report {
    /// The first pass, which only decides.
    pub(crate) fn deciding(reading: Reading) -> Self {
        Self {
            reading,
            explain: false,
            wants_value: false,
            errors: false,
            warnings: false,
            newer: false,
            mixed: Vec::new(),
            any_mixed: false,
            path: Vec::new(),
            problems: Vec::new(),
            errors_written: 0,
            warnings_written: 0,
        }
    }

    /// The first pass, which also makes the value.
    pub(crate) fn parsing(reading: Reading) -> Self {
        Self { wants_value: true, ..Self::deciding(reading) }
    }

    /// The second pass, which writes every problem down.
    pub(crate) fn explaining(reading: Reading) -> Self {
        Self { explain: true, ..Self::deciding(reading) }
    }

    /// Whether the event itself is wanted, or only what is wrong with it.
    pub(crate) fn wants_value(&self) -> bool {
        self.wants_value
    }

    /// Whether the problems are written down.
    pub(crate) fn explains(&self) -> bool {
        self.explain
    }

    /// Whether any MUST was broken.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors
    }

    /// Whether there is anything to say at all.
    pub(crate) fn is_clean(&self) -> bool {
        !self.errors && !self.warnings
    }

    /// What was found, in the order of §3.9.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        // enforces: E23
        self.problems.sort_by_key(|problem| problem.stage);
        self.problems
    }

    /// D21: the message says that it was written for a newer minor version than ours.
    pub(crate) fn set_newer(&mut self, newer: bool) {
        self.newer = newer;
    }

    pub(crate) fn error(&mut self, rule: Rule, text: fmt::Arguments<'_>) {
        self.errors = true;
        self.add(Severity::Error, rule, stage(rule), text);
    }

    pub(crate) fn warning(&mut self, rule: Rule, text: fmt::Arguments<'_>) {
        self.warnings = true;
        self.add(Severity::Warning, rule, stage(rule), text);
    }

    /// A foreign message gets a warning; ours is not sent.
    pub(crate) fn refuse_at_source(&mut self, rule: Rule, text: fmt::Arguments<'_>) {
        match self.reading {
            Reading::Wire => self.warning(rule, text),
            Reading::Source => self.error(rule, text),
        }
    }

    /// A member that we do not know.
    pub(crate) fn unknown(&mut self, name: &str, rule: Rule, text: fmt::Arguments<'_>) {
        // enforces: D21, V2
        let newer = self.newer;
        self.within(name, |report| {
            if newer {
                report.warning(rule::D21, format_args!("This member is not known to version {} of the protocol; it is kept, and ignored.", crate::AAEP_VERSION));
            } else {
                report.error(rule, text);
            }
        });
    }

    /// A name that stands twice in one object: the value is ambiguous.
    pub(crate) fn duplicate(&mut self, name: &str) {
        self.within(name, |report| {
            report.error(rule::E1, format_args!("{}", JsonFaultKind::DuplicateName))
        });
    }

    pub(crate) fn missing(&mut self, name: &str, rule: Rule) {
        // E2: the six members of the envelope are required together; the rest by their own rule.
        let outermost = self.path.is_empty() && is_envelope(rule);
        let (rule, stage) = if outermost { (rule::E2, 1) } else { (rule, stage(rule)) };
        self.errors = true;
        self.within(name, |report| {
            report.add(Severity::Error, rule, stage, format_args!("Add `{name}`; it is required."));
        });
    }

    pub(crate) fn wrong_type(&mut self, rule: Rule, wanted: &str, found: Raw<'_>) {
        let stage = if self.path.len() == 1 && is_envelope(rule) { 2 } else { stage(rule) };
        self.errors = true;
        let found = found.type_name();
        self.add(
            Severity::Error,
            rule,
            stage,
            format_args!("Write {wanted} here; this is {found}."),
        );
    }

    /// A fault of the JSON text itself; `text` is what was scanned.
    pub(crate) fn fault(&mut self, text: &str, fault: &JsonFault) {
        self.errors = true;
        if !self.explain {
            return;
        }
        let rule = match fault.kind {
            JsonFaultKind::UnsafeNumber => rule::E22,
            JsonFaultKind::TooDeep | JsonFaultKind::TooLarge => rule::E21,
            _ => rule::E1,
        };
        let pointer = pointer_at(text, fault.offset);
        let text = format!("{} (byte {})", fault.kind, fault.offset);
        self.write_down(Problem { severity: Severity::Error, rule, pointer, text, stage: 0 });
    }

    /// Runs `read` with the pointer one step further down.
    #[inline]
    pub(crate) fn within<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        if !self.explain {
            return read(self);
        }
        self.path.push(name.to_owned());
        let value = read(self);
        self.path.pop();
        value
    }

    /// The text at hand runs in both directions: see [`Self::check_direction`].
    pub(crate) fn note_mixed_direction(&mut self) {
        self.any_mixed = true;
        if self.explain {
            self.mixed.push(self.pointer());
        }
    }

    /// §11.4.2: text of mixed direction carries bidi formatting characters, or the event says `auto`.
    pub(crate) fn check_direction(&mut self, auto: bool) {
        if auto || !self.any_mixed {
            return;
        }
        self.errors = true;
        for pointer in std::mem::take(&mut self.mixed) {
            self.write_down(Problem {
                severity: Severity::Error,
                rule: rule::L10,
                pointer,
                text: "This text runs in both directions; set `text_direction` to `auto`, or put isolates around the embedded part.".into(),
                stage: stage(rule::L10),
            });
        }
    }

    fn pointer(&self) -> String {
        self.path.iter().map(|name| format!("/{}", crate::json::escape_name(name))).collect()
    }

    fn add(&mut self, severity: Severity, rule: Rule, stage: u8, text: fmt::Arguments<'_>) {
        if self.explain {
            let pointer = self.pointer();
            let text = text.to_string();
            self.write_down(Problem { severity, rule, pointer, text, stage });
        }
    }

    /// Errors and warnings are counted apart: many warnings never hide an error.
    fn write_down(&mut self, problem: Problem) {
        let counted = match problem.severity {
            Severity::Error => &mut self.errors_written,
            Severity::Warning => &mut self.warnings_written,
        };
        if *counted < MAX_PROBLEMS {
            *counted += 1;
            self.problems.push(problem);
        }
    }
}

/// Rules about the six required members of the envelope.
fn is_envelope(rule: Rule) -> bool {
    [rule::E2, rule::E3, rule::E4, rule::E7, rule::E8, rule::E9, rule::E11].contains(&rule)
}

/// §3.9: object, required members, their types, context, type, formats, payload, extensions, limits.
fn stage(rule: Rule) -> u8 {
    match rule {
        rule::E1 => 0,
        rule::E2 => 1,
        rule::E3 => 3,
        rule::E4 | rule::E5 => 4,
        rule::E7 | rule::E8 | rule::E9 => 5,
        rule::E17 | rule::E24 | rule::X1 | rule::X3 => 7,
        rule::E21 | rule::E22 => 8,
        _ => 6,
    }
}
