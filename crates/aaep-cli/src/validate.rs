//! `aaep validate`: judges single messages.

use std::io::{self, Write};

use aaep_types::{Limits, Severity};

use crate::arguments::ValidateOptions;
use crate::exit::{Exit, say};
use crate::input::Source;
use crate::judge::{Complaint, Judge, around, type_of};
use crate::lines::{Plain, count, json_members, json_string};
use crate::reader::{Reader, Text};

/// How many messages there were, and of which kind.
#[derive(Debug, Default)]
struct Tally {
    messages: u64,
    invalid: u64,
    with_warnings: u64,
}

/// One message, and where it stands.
struct Judged<'a> {
    source: &'a Source,
    line: u64,
    index: u64,
    text: Text<'a>,
    complaints: &'a [Complaint],
}

pub(crate) fn run(options: &ValidateOptions, out: &mut impl Write) -> io::Result<Exit> {
    let mut tally = Tally::default();
    let mut exit = Exit::Good;
    for source in Source::list(&options.files) {
        exit = exit.max(one(&source, options, &mut tally, out)?);
    }
    if tally.invalid > 0 {
        exit = exit.max(Exit::Wrong);
    }
    if !options.json && !options.quiet && tally.messages > 0 {
        let Tally { messages, invalid, with_warnings } = tally;
        let (messages, valid) = (count(messages, "message"), messages - invalid);
        writeln!(
            out,
            "{messages}: {valid} valid, {invalid} invalid, {with_warnings} with warnings"
        )?;
    }
    Ok(exit)
}

/// Judges what one file holds. That it could not be read, or holds nothing, does not end the rest.
fn one(
    source: &Source,
    options: &ValidateOptions,
    tally: &mut Tally,
    out: &mut impl Write,
) -> io::Result<Exit> {
    let input = match source.open() {
        Ok(input) => input,
        Err(why) => return unable(&why, out),
    };
    let max_bytes = options.max_bytes;
    let judge = if options.schema {
        Judge::Schemas
    } else {
        Judge::Rules(Limits { max_bytes, ..Limits::default() })
    };
    let mut reader = Reader::new(input, max_bytes);
    for index in 0.. {
        let mut verdict = None;
        let is_whole = |line: &[u8]| {
            let found = judge.judge(line);
            let is_sound = found.is_sound;
            verdict = is_sound.then_some(found);
            is_sound
        };
        let value = match reader.next(is_whole) {
            Ok(Some(value)) => value,
            Ok(None) if index == 0 => {
                return unable(
                    &format!(
                        "there is nothing to check in {source}. Name a file that holds messages."
                    ),
                    out,
                );
            }
            Ok(None) => break,
            Err(error) => return unable(&source.explain(&error), out),
        };
        let mut complaints = around(value.stray, value.text, max_bytes);
        if let Text::Message(bytes) = value.text {
            complaints.extend(verdict.unwrap_or_else(|| judge.judge(bytes)).complaints);
        }
        let (line, text, complaints) = (value.line, value.text, complaints.as_slice());
        tally.add(complaints);
        let judged = Judged { source, line, index, text, complaints };
        if options.json {
            judged.print_json(out)?;
        } else if !options.quiet {
            judged.print(out)?;
        }
        if reader.is_drained() {
            // Nothing is held back while we wait for more.
            out.flush()?;
        }
    }
    Ok(Exit::Good)
}

/// Says why; what was found before stays in front of it.
pub(crate) fn unable(why: &str, out: &mut impl Write) -> io::Result<Exit> {
    out.flush()?;
    say(why);
    Ok(Exit::Unable)
}

impl Tally {
    fn add(&mut self, complaints: &[Complaint]) {
        let any = |severity| complaints.iter().any(|complaint| complaint.severity == severity);
        self.messages += 1;
        self.invalid += u64::from(any(Severity::Error));
        self.with_warnings += u64::from(any(Severity::Warning));
    }
}

impl Judged<'_> {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        for complaint in self.complaints {
            let Complaint { severity, pointer, rule, section, text } = complaint;
            let severity = if *severity == Severity::Error { "error" } else { "warning" };
            let pointer = if pointer.is_empty() { "message" } else { pointer };
            let mark = if complaint.is_of_schema() { "" } else { "§" };
            writeln!(
                out,
                "{}:{}: {severity} at {}: {} ({rule}, {mark}{section})",
                self.source,
                self.line,
                Plain(pointer),
                Plain(text)
            )?;
        }
        Ok(())
    }

    fn print_json(&self, out: &mut impl Write) -> io::Result<()> {
        let type_name = match self.text {
            Text::Message(bytes) => type_of(bytes),
            Text::TooLarge | Text::Nothing => None,
        };
        let valid = self.complaints.iter().all(|complaint| complaint.severity != Severity::Error);
        out.write_all(b"{\"file\":")?;
        json_string(out, Some(&self.source.name()))?;
        write!(out, ",\"line\":{},\"index\":{},\"type\":", self.line, self.index)?;
        json_string(out, type_name.as_deref())?;
        write!(out, ",\"valid\":{valid}")?;
        for (name, severity) in [("errors", Severity::Error), ("warnings", Severity::Warning)] {
            write!(out, ",\"{name}\":[")?;
            let list = self.complaints.iter().filter(|complaint| complaint.severity == severity);
            for (number, complaint) in list.enumerate() {
                let Complaint { pointer, rule, section, text, .. } = complaint;
                out.write_all(if number > 0 { b",{" } else { b"{" })?;
                let members = [
                    ("pointer", pointer.as_str()),
                    ("rule", rule),
                    ("section", section),
                    ("text", text),
                ];
                json_members(out, &members.map(|(name, value)| (name, Some(value))))?;
                out.write_all(b"}")?;
            }
            out.write_all(b"]")?;
        }
        out.write_all(b"}\n")
    }
}
