//! Records as JSON Lines, for people and programs that want to look at them elsewhere.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use aaep_engine::{Record, RecordedEvents, RequestId};
use aaep_types::json::{Members, Writer};
use aaep_types::{Presence, Timestamp};

use super::{COLUMNS, StoredRow};
use crate::chain::hex;
use crate::sqlite::{Reader, gone, kind_of};

/// How deep an event may nest to be shown as JSON.
const DEPTH: usize = 64;

/// Which records are exported; nothing set is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Written at this time or later.
    pub since: Option<Timestamp>,
    /// Written before this time.
    pub until: Option<Timestamp>,
    /// Of sessions of this agent.
    pub agent: Option<String>,
    /// Of sessions of this user.
    pub user: Option<String>,
    /// Of one of these kinds; of any, if there is none.
    pub kinds: Vec<String>,
    /// With these numbers: the first and the last of each run, in order; any, if there is none.
    pub runs: Vec<(u64, u64)>,
}

impl Filter {
    fn names(&self, number: u64) -> bool {
        let after = self.runs.partition_point(|run| run.0 <= number);
        after.checked_sub(1).is_some_and(|at| self.runs[at].1 >= number)
    }

    fn admits(&self, kept: &StoredRow, whose: Option<&Whose>) -> bool {
        let micros = |time: &Timestamp| time.as_micros();
        let is = |wanted: &Option<String>, found: Option<&Arc<str>>| {
            wanted.as_deref().is_none_or(|wanted| found.is_some_and(|found| **found == *wanted))
        };
        self.since.as_ref().map(micros).is_none_or(|since| kept.at >= since)
            && self.until.as_ref().map(micros).is_none_or(|until| kept.at < until)
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| **kind == *kept.columns.kind))
            && (self.runs.is_empty() || self.names(kept.number.unsigned_abs()))
            && is(&self.agent, whose.map(|whose| &whose.agent))
            && is(&self.user, whose.map(|whose| &whose.user))
    }
}

/// Whose session it is.
#[derive(Clone)]
pub(super) struct Whose {
    pub(super) session: Arc<str>,
    pub(super) agent: Arc<str>,
    pub(super) user: Arc<str>,
}

/// What records say about those after them.
#[derive(Default)]
struct Context {
    sessions: BTreeMap<Arc<str>, Whose>,
    requests: BTreeMap<RequestId, Arc<str>>,
}

impl Context {
    fn learn(&mut self, record: &Record) {
        match record {
            Record::Opened(opened) => {
                let (session, agent) = (opened.session.clone(), opened.agent.clone());
                let whose = Whose { session: session.clone(), agent, user: opened.user.clone() };
                self.sessions.insert(session, whose);
            }
            Record::Asked(asked) => {
                self.requests.insert(asked.request, asked.session.clone());
            }
            _ => {}
        }
    }

    fn whose(&self, record: &Record) -> Option<&Whose> {
        let session = match record {
            Record::Opened(opened) => &opened.session,
            Record::Asked(asked) => &asked.session,
            Record::Ended { session, .. }
            | Record::Called { session, .. }
            | Record::Completed { session, .. }
            | Record::Owed { session, .. } => session,
            Record::Resolved { request, .. }
            | Record::Invoked { request, .. }
            | Record::Extended { request, .. } => self.requests.get(request)?,
            _ => return None,
        };
        self.sessions.get(session)
    }
}

/// Writes one line for each record that the filter admits; returns how many. It says what the bytes
/// of the records say; whether they are as they were written, [`super::verify`] knows. Of erased
/// records only a line for each run is left, and no filter for a person, an agent or a kind admits it.
pub fn export(reader: &Reader, filter: &Filter, out: &mut impl Write) -> io::Result<u64> {
    each_line(reader, filter, |exported| writeln!(out, "{}", line(exported)))
}

/// What there is to say of one row.
pub(super) struct Exported<'a> {
    pub(super) kept: &'a StoredRow,
    /// `None` for records that were erased.
    pub(super) record: Option<&'a Record>,
    pub(super) whose: Option<&'a Whose>,
    /// Whether the link is made with the journal's key, or is from before there was one.
    pub(super) keyed: bool,
}

/// Hands on every row that the filter admits; returns how many.
pub(super) fn each_line(
    reader: &Reader,
    filter: &Filter,
    mut write: impl FnMut(&Exported<'_>) -> io::Result<()>,
) -> io::Result<u64> {
    let erased = gone::told(&reader.connection).map_err(io::Error::other)?;
    let all = format!("SELECT {COLUMNS} FROM records ORDER BY number");
    let mut statement = reader.connection.prepare(&all).map_err(io::Error::other)?;
    let mut rows = statement.query([]).map_err(io::Error::other)?;
    let (mut known, mut lines) = (Context::default(), 0);
    while let Some(row) = rows.next().map_err(io::Error::other)? {
        let kept = StoredRow::read(row).map_err(io::Error::other)?;
        let keyed = reader.keyed_after().is_some_and(|after| kept.number as u64 > after);
        if &*kept.columns.kind == gone::KIND {
            if filter.admits(&kept, None) {
                write(&Exported { kept: &kept, record: None, whose: None, keyed })?;
                lines += 1;
            }
            continue;
        }
        // It is erased, and waits for its room to be used again.
        if erased.contains(kept.number.unsigned_abs()) {
            continue;
        }
        let record = Record::decode(&kept.bytes).map(|(_, record, _)| record);
        let record = record.map_err(|why| {
            io::Error::other(format!("record {}: {why}; see `aaep audit verify`", kept.number))
        })?;
        known.learn(&record);
        let whose = known.whose(&record);
        if filter.admits(&kept, whose) {
            write(&Exported { kept: &kept, record: Some(&record), whose, keyed })?;
            lines += 1;
        }
    }
    Ok(lines)
}

struct Line(Writer);

impl Line {
    fn json(&mut self, name: &str, json: &str) {
        self.0.name(name);
        self.0.json(json);
        self.0.comma();
    }

    fn text(&mut self, name: &str, text: &str) {
        self.0.name(name);
        self.0.string(text);
        self.0.comma();
    }

    fn time(&mut self, name: &str, micros: i64) {
        match Timestamp::from_millis(micros.div_euclid(1000)) {
            Some(time) => self.text(name, &time.to_string()),
            None => self.json(name, &micros.to_string()),
        }
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.json(name, if value { "true" } else { "false" });
    }

    fn texts(&mut self, name: &str, texts: &[Arc<str>]) {
        self.0.name(name);
        self.0.open('[');
        for text in texts {
            self.0.string(text);
            self.0.comma();
        }
        self.0.close(']');
        self.0.comma();
    }

    /// What was announced.
    fn said(&mut self, said: &RecordedEvents) {
        if said.events.is_empty() {
            return;
        }
        self.0.name("announced");
        self.0.open('[');
        for event in &said.events {
            object(&mut self.0, event);
            self.0.comma();
        }
        self.0.close(']');
        self.0.comma();
    }
}

/// An object as it is, on one line; what is none, as a text.
fn object(out: &mut Writer, json: &str) {
    match Members::whole(json, DEPTH) {
        // Line ends in sound JSON are mere space: inside texts they are escaped.
        Ok(Some(_)) => out.json(&json.replace(['\n', '\r'], " ")),
        _ => out.string(json),
    }
}

fn line(exported: &Exported<'_>) -> String {
    let Exported { kept, record, whose, keyed } = *exported;
    let mut line = Line(Writer::with_capacity(kept.bytes.len() + 256));
    line.0.open('{');
    line.json("number", &kept.number.to_string());
    line.time("at", kept.at);
    line.text("kind", record.map_or("gap", kind_of));
    if let Some(whose) = whose {
        line.text("session", &whose.session);
        line.text("agent", &whose.agent);
        line.text("user", &whose.user);
    }
    match (record, kept.bytes.first_chunk()) {
        (Some(record), _) => details(&mut line, record),
        (None, Some(first)) => line.json("first", &u64::from_le_bytes(*first).to_string()),
        (None, None) => {}
    }
    line.flag("keyed", keyed);
    line.text("hash", &hex(&kept.hash));
    line.0.close('}');
    line.0.finish()
}

fn details(line: &mut Line, record: &Record) {
    match record {
        Record::Opened(opened) => {
            line.0.name("event");
            object(&mut line.0, &opened.event);
            line.0.comma();
        }
        Record::Ended { said, .. } => line.said(said),
        Record::Asked(asked) => {
            line.text("request", &asked.request.to_string());
            line.flag("confirmation", asked.confirmation);
            if asked.confirmation {
                line.text("tool", &asked.tool);
                // These very bytes were handed back, so they stand as a text.
                line.text("arguments", &asked.arguments);
                line.text("digest", &asked.told_digest());
            }
            line.0.name("asks");
            object(&mut line.0, &format!("{{{}}}", asked.event));
            line.0.comma();
            line.time("asked_at", asked.stamp);
            line.json("timeout_seconds", &asked.timeout_seconds.to_string());
            line.flag("default_accept", asked.default_accept);
            line.flag("irreversible", asked.irreversible);
            if asked.needs != Presence::None {
                line.text("needs_presence", asked.needs.as_str());
            }
            line.said(&asked.said);
        }
        Record::Resolved {
            request,
            outcome,
            runs,
            by,
            response,
            reply,
            presence,
            assertion,
            said,
        } => {
            line.text("request", &request.to_string());
            line.text("outcome", outcome.as_str());
            line.flag("runs", *runs);
            line.text("decided_by", by);
            if !response.is_empty() {
                line.text("response", response);
            }
            if *presence != Presence::None {
                line.text("presence", presence.as_str());
            }
            if !assertion.is_empty() {
                line.text("assertion", &hex(assertion));
            }
            if !reply.is_empty() {
                line.0.name("reply");
                object(&mut line.0, reply);
                line.0.comma();
            }
            line.said(said);
        }
        Record::Invoked { request, call, said } => {
            line.text("request", &request.to_string());
            line.text("call", call);
            line.said(said);
        }
        Record::Called { call, tool, said, .. } => {
            line.text("tool", tool);
            line.text("call", call);
            line.said(said);
        }
        Record::Completed { call, known, said, .. } => {
            line.text("call", call);
            line.flag("outcome_known", *known);
            line.said(said);
        }
        Record::Extended { request, timeout_seconds, said, .. } => {
            line.text("request", &request.to_string());
            line.json("timeout_seconds", &timeout_seconds.to_string());
            line.said(said);
        }
        Record::Ignored { by, reason } => {
            line.text("sent_by", by);
            line.json("reason", &reason.to_string());
            line.text("reason_text", reason_text(*reason));
        }
        Record::Expired { request, said } => {
            line.text("request", &request.to_string());
            line.said(said);
        }
        Record::Claimed { agent, user, id } => {
            line.text("agent", agent);
            line.text("user", user);
            line.text("agent_id", id);
        }
        Record::Administered { by, act, what, to } => {
            for (name, text) in [("by", by), ("act", act), ("what", what), ("to", to)] {
                if !text.is_empty() {
                    line.text(name, text);
                }
            }
        }
        Record::Owed { rules, .. } => line.texts("rules", rules),
        Record::Erased { why, note, runs } => {
            line.text("why", why.as_str());
            if !note.is_empty() {
                line.text("note", note);
            }
            let erased: u64 = runs.iter().map(|(first, last)| last - first + 1).sum();
            line.json("erased", &erased.to_string());
        }
        Record::Flooded { by, replies, ignored } => {
            line.text("sent_by", by);
            line.json("replies", &replies.to_string());
            line.json("ignored", &ignored.to_string());
        }
        _ => {}
    }
}

/// Why a reply did not count, for auditors; its sender never learns it (D5).
pub(crate) fn reason_text(reason: u8) -> &'static str {
    match reason {
        1 => "nothing could be kept then; or, in older records, too many",
        2 => "no such subscription",
        3 => "its subscription does not answer",
        4 => "no such token",
        5 => "was decided already",
        6 => "too late",
        7 => "may not answer for this user",
        8 => "of the wrong kind",
        9 => "its time cannot be right",
        10 => "not an answer to this question",
        11 => "less time than there was",
        12 => "from the asking agent's own processes",
        13 => "not present enough",
        _ => "unknown",
    }
}
