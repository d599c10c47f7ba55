//! `aaep validate`: judges single messages.

mod blocks;
mod print;

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::AddAssign;

use aaep_types::{Limits, Severity};

use crate::arguments::ValidateOptions;
use crate::exit::{Exit, say};
use crate::input::Source;
use crate::judge::{Complaint, Judge, around};
use crate::lines::count;
use crate::reader::{Reader, Text};
use blocks::{Judging, Rest};
use print::{Judged, Manner, Printer};

/// How many messages there were, and of which kind.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    messages: u64,
    invalid: u64,
    with_warnings: u64,
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
    let max_bytes = options.max_bytes;
    let judge = if options.schema {
        Judge::Schemas
    } else {
        Judge::Rules(Limits { max_bytes, ..Limits::default() })
    };
    let manner = match (options.json, options.quiet) {
        (true, _) => Manner::Json,
        (_, true) => Manner::Nothing,
        _ => Manner::Lines,
    };
    let printer = Printer::new(source, manner)?;
    let judging = Judging { judge, printer: &printer, max_bytes };
    let Some(mut file) = regular_file(source) else {
        // What comes through a pipe is told as it comes.
        return match source.open() {
            Ok(input) => read(Reader::new(input, max_bytes), 0, source, judging, tally, out),
            Err(why) => unable(&why, out),
        };
    };
    let before = tally.messages;
    match blocks::judge(&mut file, judging, tally, out)? {
        Ok(None) if tally.messages > before => Ok(Exit::Good),
        Ok(None) => read(Reader::new(io::empty(), max_bytes), 0, source, judging, tally, out),
        Ok(Some(Rest { bytes, line, index })) => {
            let input = io::Cursor::new(bytes).chain(file);
            let reader = match index {
                0 => Reader::new(input, max_bytes),
                _ => Reader::among_values(input, max_bytes, line),
            };
            read(reader, index, source, judging, tally, out)
        }
        Err(error) => unable(&source.explain(&error), out),
    }
}

/// The source, if it is a file that can be read as far ahead as one likes.
fn regular_file(source: &Source) -> Option<File> {
    let Source::File(path) = source else { return None };
    File::open(path).ok().filter(|file| file.metadata().is_ok_and(|it| it.is_file()))
}

/// Judges what a reader finds, one after the other; `first` messages came before.
fn read(
    mut reader: Reader<impl Read>,
    first: u64,
    source: &Source,
    judging: Judging<'_>,
    tally: &mut Tally,
    out: &mut impl Write,
) -> io::Result<Exit> {
    let Judging { judge, printer, max_bytes } = judging;
    let mut printed = Vec::new();
    for index in first.. {
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
                let text = "Name a file that holds messages.";
                return unable(&format!("there is nothing to check in {source}. {text}"), out);
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
        printer.print(&Judged { line, index, text, complaints }, &mut printed)?;
        out.write_all(&printed)?;
        printed.clear();
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

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.invalid += other.invalid;
        self.with_warnings += other.with_warnings;
    }
}
