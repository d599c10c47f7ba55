//! Scenarios in virtual time: what comes in, and what is told and sent.

use std::time::Duration;

use super::*;
use crate::notification::Silence;
use crate::request::{Asks, RequestOutcome};
use aaep_types::Message;

mod flood;
mod handshake;
mod order;
mod requests;

/// 2026-05-24T14:00:00Z.
const START: i64 = 1_779_631_200_000;

pub(super) struct World {
    inbox: Inbox,
    hub: Connection,
    now: u64,
    event: u32,
}

/// What a hub grants that grants everything.
const EVERYTHING: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,
    "event_filters":{"include":["*"]},"coalesce_boundaries":["none"],"supported_extensions":
    ["urn:aaep-rs:outcome:v1","urn:aaep-rs:timing:v1","urn:aaep-rs:control:v1"]}"#;

/// The same without our extensions.
const PLAIN: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true}"#;

impl World {
    fn new() -> Self {
        Self::with(EVERYTHING, Bounds::default())
    }

    fn with(honored: &str, bounds: Bounds) -> Self {
        let mut inbox = Inbox::new(Settings::default(), bounds, START);
        let hub = inbox.add("hub", 0);
        let mut world = Self { inbox, hub, now: 0, event: 0 };
        world.begins(honored, "sub_1");
        // A client that is connected now has seen the present state.
        world.passes(10_000);
        world.hears();
        world
    }

    /// A new subscription.
    fn begins(&mut self, honored: &str, id: &str) {
        self.inbox.begin(self.hub, self.now);
        self.accepts(honored, id);
        self.inbox.handle(InboxInput::Attached { connection: self.hub }, self.now);
    }

    fn accepts(&mut self, honored: &str, id: &str) {
        let text = format!(
            r#"{{"type":"subscription.accepted","subscription_id":"{id}","aaep_version":"1.0.0","producer":{{"agent_id":"hub"}},"honored_capabilities":{honored}}}"#
        );
        self.comes(&text);
    }

    fn comes(&mut self, text: &str) {
        self.inbox
            .handle(InboxInput::Message { connection: self.hub, bytes: text.as_bytes() }, self.now);
    }

    fn lost(&mut self) {
        self.inbox.handle(InboxInput::Lost { connection: self.hub, why: "gone" }, self.now);
    }

    fn passes(&mut self, ms: u64) {
        self.now += ms;
        self.inbox.handle(InboxInput::Time, self.now);
    }

    /// An event of session 1 with this number, and what it is called.
    fn event(&mut self, type_name: &str, number: u64, rest: &str) -> String {
        self.event_of(1, type_name, number, rest)
    }

    fn event_of(&mut self, session: u32, type_name: &str, number: u64, rest: &str) -> String {
        self.event += 1;
        let id = format!("evt_{}", self.event);
        let text = event(&id, session, type_name, number, self.unix(), rest);
        self.comes(&text);
        id
    }

    fn unix(&self) -> i64 {
        START + i64::try_from(self.now).unwrap()
    }

    fn asks(&mut self, number: u64) -> String {
        let token = format!("rpl_{}", self.event + 1);
        self.event("awaiting.confirmation", number, &confirmation(&token))
    }

    fn resolves(&mut self, number: u64, request: &str, word: &str) {
        let rest = format!(
            r#","from_state":"awaiting_input","to_state":"thinking","extensions":{{"outcome":{{"request_event_id":"{request}","outcome":"{word}"}}}}"#
        );
        self.event("state.changed", number, &rest);
    }

    /// Everything that is told now.
    fn hears(&mut self) -> Vec<Notification> {
        let now = self.now;
        std::iter::from_fn(|| self.inbox.poll_notification(now)).collect()
    }

    /// The same in a few words.
    fn told(&mut self) -> Vec<String> {
        self.hears().iter().map(short).collect()
    }

    fn sends(&mut self) -> Vec<Outgoing> {
        std::iter::from_fn(|| self.inbox.poll_send()).collect()
    }

    fn rules(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| self.inbox.poll_log()).map(|note| note.rule).collect()
    }
}

fn event(id: &str, session: u32, type_name: &str, number: u64, unix: i64, rest: &str) -> String {
    let stamp = Timestamp::from_millis(unix).unwrap();
    format!(
        r#"{{"@context":["https://aaep-protocol.org/context/v1","urn:aaep-rs:outcome:v1","urn:aaep-rs:timing:v1"],"type":"aaep:agent.{type_name}","event_id":"{id}","session_id":"sess_{session}","sequence_number":{number},"timestamp":"{stamp}","producer":{{"agent_id":"tidy","agent_name":"Tidy"}},"localization_hints":{{"primary_language":"en"}}{rest}}}"#
    )
}

fn confirmation(token: &str) -> String {
    format!(
        r#","urgency":"critical","action":"Delete","consequence":"Gone","reply_token":"{token}","timeout_seconds":60,"default_decision":"reject","irreversible":true,"risk_level":"high""#
    )
}

fn state(from: &str, to: &str) -> String {
    format!(r#","from_state":"{from}","to_state":"{to}","summary_normal":"Now {to}.""#)
}

fn short(notification: &Notification) -> String {
    match notification {
        Notification::Event { json, critical, .. } => {
            let heard = aaep_types::LenientEvent::parse(json.as_bytes()).unwrap();
            let mark = if *critical { "!" } else { "" };
            let name = heard.type_name().trim_start_matches("aaep:agent.").to_owned();
            format!("{mark}{name}")
        }
        Notification::Asked(request) => format!("asked {}", request.number),
        Notification::Settled { request, outcome, announced } => {
            let unheard = if *announced { "" } else { " unheard" };
            format!("settled {} {outcome:?}{unheard}", request.number)
        }
        Notification::Text { text, ends, after_gap, .. } => {
            let marks = [("…", *after_gap), (".", *ends)];
            let marks: String = marks.iter().filter(|mark| mark.1).map(|mark| mark.0).collect();
            format!("text {text:?}{marks}")
        }
        Notification::Silence { why, count, .. } => format!("silence {why:?} {count}"),
        Notification::Connected { again, may_reply, .. } => {
            format!("connected {again} {may_reply}")
        }
        Notification::Over { session_id, .. } => format!("over {session_id}"),
        Notification::Lost { .. } => "lost".into(),
        Notification::Presence { state, .. } => format!("presence {state}"),
    }
}
