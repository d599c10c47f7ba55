//! What is wrong with a policy file.

use std::fmt;

/// How many problems of one file are told.
pub const MAX_PROBLEMS: usize = 100;

/// One thing that is wrong with a policy file: where, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The key it is about, such as `default_decision`; empty where there is none.
    pub key: String,
    /// What is wrong, in a sentence.
    pub what: String,
    /// What to do, in a sentence.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if !self.key.is_empty() {
            write!(f, ", {}", self.key)?;
        }
        write!(f, ": {} {}", self.what, self.remedy)
    }
}

impl std::error::Error for Problem {}

/// Gathers problems and knows where lines begin.
#[derive(Debug)]
pub(crate) struct Problems {
    lines: Vec<usize>,
    found: Vec<Problem>,
}

impl Problems {
    pub(crate) fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { lines, found: Vec::new() }
    }

    /// The line that a byte stands in.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    pub(crate) fn add(
        &mut self,
        offset: usize,
        key: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        if self.found.len() < MAX_PROBLEMS {
            let (line, key) = (self.line(offset), key.to_owned());
            self.found.push(Problem { line, key, what: what.into(), remedy: remedy.into() });
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    /// All of them, in the order of the file.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| problem.line);
        self.found
    }
}
