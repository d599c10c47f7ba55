//! What a recording tells, session by session. Everything is bounded; what is left out is counted.

use std::collections::BTreeMap;

use aaep_conformance::stream::{Checker, Finding, Options};
use aaep_types::{LenientEvent, Message, captured};

use super::clock::{Clock, Tick};
use super::room::{self, AROUND, Room};
use super::session::{Row, Session, shortened};
use crate::judge::Complaint;

/// Sessions that are told. Of others, messages are only counted.
const SESSIONS: usize = 1000;
/// Rows of all sessions together.
const ROWS: usize = 100_000;
/// Findings and remarks that belong to no session.
const REMARKS: usize = 1000;

/// Everything that is known so far.
pub(super) struct Story {
    checker: Checker,
    clock: Clock,
    pub(super) sessions: Vec<Session>,
    index: BTreeMap<String, usize>,
    /// Which session asked with a token.
    asked: BTreeMap<String, usize>,
    pub(super) messages: u64,
    /// Messages beyond the bounds.
    pub(super) left_out: u64,
    rows: usize,
    room: Room,
    pub(super) remarks: Vec<Remark>,
    pub(super) remarks_left_out: u64,
    pub(super) errors: u64,
    pub(super) warnings: u64,
    pub(super) notes: u64,
}

/// Something that is said beside the events: a finding, a line that is no event.
#[derive(Clone, Debug)]
pub(super) struct Remark {
    pub(super) line: u64,
    pub(super) text: String,
}

/// What one message added, for those who watch.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// Number of its session, and its row.
    pub(super) row: Option<(usize, usize)>,
    pub(super) remarks: Vec<Remark>,
}

impl Story {
    pub(super) fn new() -> Self {
        Self::within(room::BYTES)
    }

    /// One that keeps at most so many bytes of text.
    fn within(bytes: usize) -> Self {
        Self {
            checker: Checker::new(Options::default()),
            clock: Clock::default(),
            sessions: Vec::new(),
            index: BTreeMap::new(),
            asked: BTreeMap::new(),
            messages: 0,
            left_out: 0,
            rows: 0,
            room: Room::of(bytes),
            remarks: Vec::new(),
            remarks_left_out: 0,
            errors: 0,
            warnings: 0,
            notes: 0,
        }
    }

    /// Takes a line of a recording, or a message.
    pub(super) fn take(&mut self, line: u64, bytes: &[u8]) -> Added {
        self.messages += 1;
        let read = captured::read(bytes);
        let message = read.map_or(bytes, |read| read.message.as_bytes());
        let event = LenientEvent::parse(message).ok();
        let tick = match &read {
            Some(read) => self.clock.captured(read),
            None => self.clock.said(event.as_ref().and_then(LenientEvent::timestamp)),
        };
        let mut added = Added::default();
        if let Some(back) = tick.went_back_us {
            let text = format!("The clock went back by {}.", super::clock::lasting(back));
            self.remark(Remark { line, text }, &mut added);
        }
        added.row = match &event {
            Some(event) => self.event(line, tick, event),
            None => self.other(line, tick, message, &mut added),
        };
        let mut found = Vec::new();
        self.checker.message(line, message, &mut found);
        self.findings(found, &mut added);
        added
    }

    /// Something is wrong around a message.
    pub(super) fn complain(&mut self, line: u64, complaint: &Complaint) -> Added {
        let mut added = Added::default();
        self.errors += 1;
        let text =
            format!("error: {} ({}, §{})", complaint.text, complaint.rule, complaint.section);
        self.remark(Remark { line, text }, &mut added);
        added
    }

    /// What is still open at the end.
    pub(super) fn finish(&mut self) -> Added {
        let checker = std::mem::replace(&mut self.checker, Checker::new(Options::default()));
        let (mut found, mut added) = (Vec::new(), Added::default());
        checker.finish(&mut found);
        self.findings(found, &mut added);
        added
    }

    /// Where each request of the recording is, by the event that asked.
    pub(super) fn asked(&self) -> BTreeMap<String, (usize, usize)> {
        let requests = self.sessions.iter().enumerate().flat_map(|(number, session)| {
            session.requests().map(move |(span, event)| (event.to_owned(), (number, span)))
        });
        requests.collect()
    }

    /// The audit says who decided the request at this place.
    pub(super) fn decided(&mut self, (session, span): (usize, usize), by: &str) {
        self.sessions[session].decided(span, by, &mut self.room);
    }

    fn event(&mut self, line: u64, tick: Tick, event: &LenientEvent<'_>) -> Option<(usize, usize)> {
        let number = self.session(event.session_id(), tick.at_us)?;
        if self.rows >= ROWS {
            self.left_out += 1;
            return None;
        }
        let session = &mut self.sessions[number];
        let row = session.event(line, tick.at_us, event, &mut self.room);
        if row.is_some() {
            self.rows += 1;
        }
        if let Some(token) = event.reply_token()
            && self.asked.len() < ROWS
            && self.room.take(AROUND + token.as_str().len())
        {
            self.asked.insert(token.as_str().to_owned(), number);
        }
        row.map(|row| (number, row))
    }

    fn session(&mut self, id: &str, at_us: u64) -> Option<usize> {
        if let Some(number) = self.index.get(id) {
            return Some(*number);
        }
        let shown = shortened(id);
        if self.sessions.len() >= SESSIONS || !self.room.take(AROUND + id.len() + shown.len()) {
            self.left_out += 1;
            return None;
        }
        self.sessions.push(Session::new(shown, at_us));
        self.index.insert(id.to_owned(), self.sessions.len() - 1);
        Some(self.sessions.len() - 1)
    }

    /// A reply belongs to the session that asked; everything else is remarked.
    fn other(
        &mut self,
        line: u64,
        tick: Tick,
        message: &[u8],
        added: &mut Added,
    ) -> Option<(usize, usize)> {
        let text = match Message::parse(message) {
            Ok(Message::ConfirmationReply(reply)) => {
                let said = format!("{:?}", reply.decision).to_lowercase();
                let by = reply.decided_by.as_ref().map(|by| by.as_str().to_owned());
                return self.reply(line, tick, reply.reply_token.as_str(), &said, by, added);
            }
            Ok(Message::ClarificationReply(reply)) => {
                let by = reply.decided_by.as_ref().map(|by| by.as_str().to_owned());
                let token = reply.reply_token.as_str().to_owned();
                return self.reply(line, tick, &token, "an answer", by, added);
            }
            Ok(_) => "A message of a handshake, which belongs to no session.",
            Err(_) => "This is no event; perhaps it was cut short.",
        };
        self.remark(Remark { line, text: text.into() }, added);
        None
    }

    fn reply(
        &mut self,
        line: u64,
        tick: Tick,
        token: &str,
        said: &str,
        by: Option<String>,
        added: &mut Added,
    ) -> Option<(usize, usize)> {
        let Some(number) = self.asked.get(token).copied() else {
            let text = "A reply to a request that is not in the recording.".to_owned();
            self.remark(Remark { line, text }, added);
            return None;
        };
        if self.rows >= ROWS {
            self.left_out += 1;
            return None;
        }
        let session = &mut self.sessions[number];
        let row = session.reply(line, tick.at_us, token, said, by, &mut self.room)?;
        self.rows += 1;
        Some((number, row))
    }

    fn findings(&mut self, found: Vec<Finding>, added: &mut Added) {
        use aaep_conformance::stream::Weight;
        for Finding { weight, line, event_id, session_id, rule, text } in found {
            *match weight {
                Weight::Error => &mut self.errors,
                Weight::Warning => &mut self.warnings,
                Weight::Note => &mut self.notes,
            } += 1;
            let text = shortened(&format!("{weight}: {text} ({}, §{})", rule.id, rule.section));
            let remark = Remark { line, text };
            let session = session_id.and_then(|id| self.index.get(&id).copied());
            let Some(session) = session.map(|number| &mut self.sessions[number]) else {
                self.remark(remark, added);
                continue;
            };
            added.remarks.push(remark.clone());
            let is_there = |row: &&mut Row| row.line == line && event_id.is_some();
            let list = match session.rows.iter_mut().rev().take(64).find(is_there) {
                Some(row) => &mut row.findings,
                None => &mut session.findings,
            };
            if list.len() < REMARKS && self.room.take(AROUND + remark.text.len()) {
                list.push(remark);
            } else {
                self.remarks_left_out += 1;
            }
        }
    }

    fn remark(&mut self, remark: Remark, added: &mut Added) {
        added.remarks.push(remark.clone());
        if self.remarks.len() < REMARKS && self.room.take(AROUND + remark.text.len()) {
            self.remarks.push(remark);
        } else {
            self.remarks_left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(number: usize) -> String {
        format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.output.streaming","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.000Z","producer":{{"agent_id":"tidy"}},"localization_hints":{{"primary_language":"en"}},"output_id":"out_{number}","chunk":"{}","position":0,"complete":true}}"#,
            "x".repeat(1000)
        )
    }

    #[test]
    fn text_beyond_the_bound_is_left_out_and_counted() {
        let mut story = Story::within(20_000);
        for number in 0..50 {
            story.take(number as u64 + 1, piece(number).as_bytes());
        }
        story.finish();
        let session = &story.sessions[0];
        let texts = session.spans.iter().map(|span| span.text.len()).sum::<usize>()
            + session.rows.iter().map(|row| row.text.len()).sum::<usize>();
        assert!((5000..20_000).contains(&texts), "{texts}");
        assert!(session.rows.len() < 50 && session.left_out > 0, "{}", session.rows.len());
        assert_eq!(story.messages, 50, "every message is judged");
    }
}
