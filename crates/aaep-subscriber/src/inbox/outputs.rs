//! The agent's text on its way to the user.

use std::sync::Arc;

use aaep_types::{CoalesceBoundary, LenientEvent, Urgency};

use super::backlog::Rank;
use super::settings::TextBy;
use super::text::{Collector, Piece, Sayable};
use super::{Connection, Inbox};
use crate::notification::{Agent, Notification};

impl Inbox {
    /// A piece of the agent's text.
    pub(super) fn output(
        &mut self,
        connection: Connection,
        heard: &LenientEvent<'_>,
        agent: Agent,
        now: u64,
    ) {
        let critical = heard.urgency() == Urgency::Critical;
        let (bounds, by) = (self.bounds, self.settings.text);
        let chunk = heard.text("chunk").unwrap_or_default();
        let hint = heard.text("coalesce_hint");
        let piece = Piece {
            chunk: &chunk,
            position: heard.number("position"),
            complete: heard.flag("complete").unwrap_or(false),
            hint: hint.and_then(|hint| CoalesceBoundary::parse(&hint).ok()),
        };
        // T28: what is critical does not wait for a boundary.
        let (piece, by) = if critical {
            (Piece { hint: Some(CoalesceBoundary::Completion), ..piece }, TextBy::Sentence)
        } else {
            (piece, by)
        };
        let id: Arc<str> = heard.text("output_id").unwrap_or_default().as_ref().into();
        self.make_room(connection, heard.session_id(), &id, &piece, &agent, now);
        let touch = self.last_touch;
        let Some(link) = self.link_mut(connection) else { return };
        let Some(session) = link.sessions.get_mut(heard.session_id()) else { return };
        let session_id = session.doing.session_id.clone();
        let output = session.outputs.entry(id.clone()).or_default();
        let before = output.bytes();
        let mut said = output.add(piece, by, &bounds);
        output.touched = touch;
        link.text_bytes = (link.text_bytes + output.bytes()).saturating_sub(before);
        if link.text_bytes > bounds.text_bytes {
            link.text_bytes -= output.bytes();
            said.extend(output.give_up());
        }
        for said in said {
            self.say(connection, (&agent, &session_id, &id), said, critical, now);
        }
    }

    /// An output that is over may begin anew, and only so many are collected at once.
    fn make_room(
        &mut self,
        connection: Connection,
        session_id: &str,
        output_id: &Arc<str>,
        piece: &Piece<'_>,
        agent: &Agent,
        now: u64,
    ) {
        let most = self.bounds.outputs;
        let Some(link) = self.link_mut(connection) else { return };
        let Some(session) = link.sessions.get_mut(session_id) else { return };
        let begins = piece.position == Some(0) && !piece.chunk.is_empty();
        if begins && session.outputs.get(output_id).is_some_and(Collector::is_done) {
            session.outputs.remove(output_id);
        }
        if session.outputs.len() < most || session.outputs.contains_key(output_id) {
            return;
        }
        let key = |(_, output): &(&Arc<str>, &Collector)| (!output.is_done(), output.touched);
        let Some(id) = session.outputs.iter().min_by_key(key).map(|(id, _)| id.clone()) else {
            return;
        };
        let id_of_session = session.doing.session_id.clone();
        if let Some(mut output) = session.outputs.remove(&id) {
            link.text_bytes = link.text_bytes.saturating_sub(output.bytes());
            if let Some(said) = output.give_up() {
                self.say(connection, (agent, &id_of_session, &id), said, false, now);
            }
        }
    }

    /// What waits for a boundary is said.
    pub(super) fn finish_outputs(&mut self, connection: Connection, session_id: &str, now: u64) {
        let Some(link) = self.link_mut(connection) else { return };
        let Some(session) = link.sessions.get_mut(session_id) else { return };
        let (agent, id) = (session.agent.clone(), session.doing.session_id.clone());
        let outputs = std::mem::take(&mut session.outputs);
        for (output_id, mut output) in outputs {
            let bytes = output.bytes();
            if let Some(link) = self.link_mut(connection) {
                link.text_bytes = link.text_bytes.saturating_sub(bytes);
            }
            if let Some(said) = output.finish() {
                self.say(connection, (&agent, &id, &output_id), said, false, now);
            }
        }
    }

    fn say(
        &mut self,
        connection: Connection,
        (agent, session_id, output_id): (&Agent, &Arc<str>, &Arc<str>),
        said: Sayable,
        critical: bool,
        now: u64,
    ) {
        let notification = Notification::Text {
            agent: agent.clone(),
            session_id: session_id.clone(),
            output_id: output_id.clone(),
            text: said.text,
            ends: said.ends,
            after_gap: said.after_gap,
        };
        if critical {
            self.tell_critical(notification);
        } else {
            self.tell(connection, notification, Rank::Text, now);
        }
    }
}
