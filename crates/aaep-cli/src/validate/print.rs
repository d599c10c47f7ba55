//! What is said of one message.

use std::io::{self, Write};

use aaep_types::{Severity, captured};

use crate::input::Source;
use crate::judge::{Complaint, plain_type, type_of};
use crate::lines::{Plain, json_members, json_string};
use crate::reader::Text;

/// How messages of one source are spoken of.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    source: &'a Source,
    manner: Manner,
    /// The source's name as a JSON string: the same for every message.
    name: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Lines,
    Json,
    Nothing,
}

/// One message, and where it stands.
pub(super) struct Judged<'a> {
    pub(super) line: u64,
    pub(super) index: u64,
    pub(super) text: Text<'a>,
    pub(super) complaints: &'a [Complaint],
}

impl<'a> Printer<'a> {
    pub(super) fn new(source: &'a Source, manner: Manner) -> io::Result<Self> {
        let mut name = Vec::new();
        json_string(&mut name, Some(&source.name()))?;
        Ok(Self { source, manner, name })
    }

    pub(super) fn print(&self, judged: &Judged<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        match self.manner {
            Manner::Lines => self.lines(judged, out),
            Manner::Json => self.json(judged, out),
            Manner::Nothing => Ok(()),
        }
    }

    fn lines(&self, judged: &Judged<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        for complaint in judged.complaints {
            let Complaint { severity, pointer, rule, section, text } = complaint;
            let severity = if *severity == Severity::Error { "error" } else { "warning" };
            let pointer = if pointer.is_empty() { "message" } else { pointer };
            let mark = if complaint.is_of_schema() { "" } else { "§" };
            writeln!(
                out,
                "{}:{}: {severity} at {}: {} ({rule}, {mark}{section})",
                self.source,
                judged.line,
                Plain(pointer),
                Plain(text)
            )?;
        }
        Ok(())
    }

    fn json(&self, judged: &Judged<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let Judged { line, index, text, complaints } = judged;
        out.extend_from_slice(b"{\"file\":");
        out.extend_from_slice(&self.name);
        write!(out, ",\"line\":{line},\"index\":{index},\"type\":")?;
        let plain = match text {
            Text::Message(bytes) if complaints.is_empty() => plain_type(captured::message(bytes)),
            _ => None,
        };
        if let Some(plain) = plain {
            out.push(b'"');
            out.extend_from_slice(plain);
            out.extend_from_slice(b"\",\"valid\":true,\"errors\":[],\"warnings\":[]}\n");
            return Ok(());
        }
        let type_name = match text {
            Text::Message(bytes) => type_of(captured::message(bytes)),
            Text::TooLarge | Text::Nothing => None,
        };
        let valid = complaints.iter().all(|complaint| complaint.severity != Severity::Error);
        json_string(out, type_name.as_deref())?;
        write!(out, ",\"valid\":{valid}")?;
        for (name, severity) in [("errors", Severity::Error), ("warnings", Severity::Warning)] {
            write!(out, ",\"{name}\":[")?;
            let list = complaints.iter().filter(|complaint| complaint.severity == severity);
            for (number, complaint) in list.enumerate() {
                let Complaint { pointer, rule, section, text, .. } = complaint;
                out.extend_from_slice(if number > 0 { b",{" } else { b"{" });
                let members = [
                    ("pointer", pointer.as_str()),
                    ("rule", rule),
                    ("section", section),
                    ("text", text),
                ];
                json_members(out, &members.map(|(name, value)| (name, Some(value))))?;
                out.push(b'}');
            }
            out.push(b']');
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}
