//! `aaep check`: judges whole streams.

use std::io::{self, Write};
use std::path::Path;

use aaep_conformance::stream::{Checker, Finding, Options, Weight};
use aaep_types::Limits;
use aaep_types::profile::Profile;

use crate::arguments::CheckOptions;
use crate::exit::Exit;
use crate::input::Source;
use crate::judge::{Complaint, around};
use crate::lines::{Plain, count, json_members, json_string};
use crate::reader::{Reader, Text};
use crate::validate::unable;

/// What was read and found in all streams together.
#[derive(Debug, Default)]
struct Tally {
    streams: u64,
    messages: u64,
    errors: u64,
    warnings: u64,
    notes: u64,
}

pub(crate) fn run(options: &CheckOptions, out: &mut impl Write) -> io::Result<Exit> {
    let mut tally = Tally::default();
    let mut exit = Exit::Good;
    let profile = match options.profile.as_deref().map(read_profile).transpose() {
        Ok(profile) => profile,
        Err(why) => return unable(&why, out),
    };
    for source in Source::list(&options.files) {
        let profile = profile.clone();
        exit = exit.max(Stream::new(&source, options, profile, &mut tally, out).check()?);
    }
    if tally.errors > 0 {
        exit = exit.max(Exit::Wrong);
    }
    if !options.json && tally.streams > 0 {
        let Tally { streams, messages, errors, warnings, notes } = tally;
        writeln!(
            out,
            "{}, {}: {}, {}, {}",
            count(streams, "stream"),
            count(messages, "message"),
            count(errors, "error"),
            count(warnings, "warning"),
            count(notes, "note")
        )?;
    }
    Ok(exit)
}

/// Reads a profile.
fn read_profile(path: &Path) -> Result<Profile, String> {
    let shown = path.to_string_lossy();
    let bytes = std::fs::read(path)
        .map_err(|error| format!("cannot read {}: {error}. Name a profile.", Plain(&shown)))?;
    Profile::parse(&bytes).map_err(|why| format!("{} is no profile. {why}", Plain(&shown)))
}

/// One file, and where its findings go.
struct Stream<'a, W> {
    source: &'a Source,
    json: bool,
    checker: Checker,
    found: Vec<Finding>,
    tally: &'a mut Tally,
    out: &'a mut W,
}

impl<'a, W: Write> Stream<'a, W> {
    fn new(
        source: &'a Source,
        options: &CheckOptions,
        profile: Option<Profile>,
        tally: &'a mut Tally,
        out: &'a mut W,
    ) -> Self {
        let checker = Checker::new(Options { complete: options.complete, ..Options::default() });
        let checker = match profile {
            Some(profile) => checker.under(profile),
            None => checker,
        };
        Self { source, json: options.json, checker, found: Vec::new(), tally, out }
    }

    fn check(mut self) -> io::Result<Exit> {
        let input = match self.source.open() {
            Ok(input) => input,
            Err(why) => return unable(&why, self.out),
        };
        let mut exit = Exit::Good;
        let mut any = false;
        // The checker reads messages with these limits.
        let max_bytes = Limits::default().max_bytes;
        let mut reader = Reader::new(input, max_bytes);
        loop {
            let value = match reader.next(|_| false) {
                Ok(Some(value)) => value,
                Ok(None) => break,
                Err(error) => {
                    exit = unable(&self.source.explain(&error), self.out)?;
                    break;
                }
            };
            any = true;
            self.tally.messages += 1;
            for complaint in around(value.stray, value.text, max_bytes) {
                self.misplaced(value.line, &complaint)?;
            }
            if let Text::Message(bytes) = value.text {
                let message = aaep_types::captured::message(bytes);
                self.checker.message(value.line, message, &mut self.found);
                self.print_found()?;
            }
            if reader.is_drained() {
                self.out.flush()?;
            }
        }
        if !any && exit == Exit::Good {
            let why = format!(
                "there is nothing to check in {}. Name a file that holds messages.",
                self.source
            );
            return unable(&why, self.out);
        }
        self.finish()?;
        Ok(exit)
    }

    /// What is still open at the end of the stream.
    fn finish(mut self) -> io::Result<()> {
        let checker = std::mem::replace(&mut self.checker, Checker::new(Options::default()));
        checker.finish(&mut self.found);
        self.tally.streams += 1;
        self.print_found()
    }

    fn print_found(&mut self) -> io::Result<()> {
        for finding in std::mem::take(&mut self.found) {
            let Finding { weight, line, event_id, session_id, rule, text } = finding;
            let (event_id, session_id) = (event_id.as_deref(), session_id.as_deref());
            self.print(weight, line, [event_id, session_id], [rule.id, rule.section, &text])?;
        }
        Ok(())
    }

    /// Something in the input that no checker ever sees.
    fn misplaced(&mut self, line: u64, complaint: &Complaint) -> io::Result<()> {
        let Complaint { rule, section, text, .. } = complaint;
        self.print(Weight::Error, line, [None, None], [rule, section, text])
    }

    fn print(
        &mut self,
        weight: Weight,
        line: u64,
        [event_id, session_id]: [Option<&str>; 2],
        [rule, section, text]: [&str; 3],
    ) -> io::Result<()> {
        *match weight {
            Weight::Error => &mut self.tally.errors,
            Weight::Warning => &mut self.tally.warnings,
            Weight::Note => &mut self.tally.notes,
        } += 1;
        if self.json {
            self.out.write_all(b"{\"file\":")?;
            json_string(self.out, Some(&self.source.name()))?;
            write!(self.out, ",\"line\":{line},\"weight\":\"{weight}\",")?;
            let ids = [("event_id", event_id), ("session_id", session_id)];
            json_members(self.out, &ids)?;
            self.out.write_all(b",")?;
            let words = [("rule", rule), ("section", section), ("text", text)];
            json_members(self.out, &words.map(|(name, value)| (name, Some(value))))?;
            return self.out.write_all(b"}\n");
        }
        let place = match (event_id, session_id) {
            (Some(id), _) => format!(" in event {}", Plain(id)),
            (None, Some(id)) => format!(" in session {}", Plain(id)),
            (None, None) => String::new(),
        };
        let text = Plain(text);
        writeln!(self.out, "{}:{line}: {weight}{place}: {text} ({rule}, §{section})", self.source)
    }
}
