//! Events to offer, and a subscription to offer them to.
#![allow(dead_code)] // each test file uses some of it

use aaep_shaping::{
    Boundaries, Delivery, HeldLimits, Mono, Overflow, Prepared, Preparer, Shaper, Terms,
};
use aaep_types::{CoalesceBoundary, Event, Payload};
use std::sync::Arc;

pub fn at(millis: u64) -> Mono {
    Mono::from_micros(millis * 1000)
}

/// An event of session `sess_1` or another, with whatever members its type wants.
pub fn event(session: u32, number: u64, kind: &str, members: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{session}x{number}","session_id":"sess_{session}","sequence_number":{number},"timestamp":"2026-05-24T14:22:11.342Z","producer":{{"agent_id":"tidy"}},{members}}}"#
    )
}

pub const AUTO: &str = r#""localization_hints":{"primary_language":"en","text_direction":"auto"}"#;
pub const EN: &str = r#""localization_hints":{"primary_language":"en"}"#;

pub fn chunk(session: u32, number: u64, text: &str, position: u64, complete: bool) -> String {
    let mut json = String::new();
    aaep_types::json::write_string(&mut json, text);
    let members = format!(r#"{AUTO},"chunk":{json},"position":{position},"complete":{complete}"#);
    event(session, number, "output.streaming", &members)
}

pub fn state(session: u32, number: u64, from: &str, to: &str) -> String {
    let members =
        format!(r#"{EN},"from_state":"{from}","to_state":"{to}","summary_normal":"{to}""#);
    event(session, number, "state.changed", &members)
}

pub fn progress(session: u32, number: u64, percent: u32) -> String {
    let members =
        format!(r#"{EN},"progress":{{"percent":{percent}}},"summary_normal":"{percent}""#);
    event(session, number, "progress.updated", &members)
}

pub fn tool(session: u32, number: u64) -> String {
    let members = format!(r#"{EN},"tool":"search","summary_normal":"Searching.""#);
    event(session, number, "tool.invoked", &members)
}

/// A tool call begins, or ends with this status.
pub fn call_of(session: u32, number: u64, tool: &str, ends: Option<&str>) -> String {
    match ends {
        None => {
            let members = format!(r#"{EN},"tool":"{tool}","summary_normal":"Looking.""#);
            event(session, number, "tool.invoked", &members)
        }
        Some(status) => {
            let members =
                format!(r#"{EN},"tool":"{tool}","status":"{status}","summary_normal":"Seen.""#);
            event(session, number, "tool.completed", &members)
        }
    }
}

pub fn completed(session: u32, number: u64) -> String {
    event(session, number, "session.completed", &format!(r#"{EN},"summary_normal":"Done.""#))
}

pub fn handoff(session: u32, number: u64) -> String {
    let members = format!(
        r#""urgency":"critical",{EN},"reason":"Help.","target_kind":"human","summary_normal":"Help.""#
    );
    event(session, number, "handoff.requested", &members)
}

pub fn cutting_at(list: &[CoalesceBoundary]) -> Terms {
    Terms { boundaries: Boundaries::of(list), ..Terms::default() }
}

/// A preparer and one subscription.
pub struct Listener {
    pub preparer: Preparer,
    pub shaper: Shaper,
    pub now: Mono,
}

impl Listener {
    pub fn new(terms: Terms) -> Self {
        Self::with_limits(terms, HeldLimits::default())
    }

    pub fn with_limits(terms: Terms, limits: HeldLimits) -> Self {
        let now = at(0);
        Self { preparer: Preparer::new(), shaper: Shaper::with_limits(terms, limits, now), now }
    }

    pub fn prepare(&mut self, json: String) -> Arc<Prepared> {
        self.preparer.prepare(json).expect("the test's events are valid")
    }

    pub fn try_offer(&mut self, json: String) -> Result<(), Overflow> {
        let event = self.prepare(json);
        self.shaper.offer(&event, self.now)
    }

    pub fn offer(&mut self, json: String) {
        self.try_offer(json).expect("within the bounds");
    }

    pub fn drain(&mut self) -> Vec<Delivery> {
        let drained: Vec<_> = std::iter::from_fn(|| self.shaper.poll_output(self.now)).collect();
        assert!(self.shaper.next_deadline().is_none_or(|next| next > self.now), "nothing is due");
        for delivery in &drained {
            let read = Event::parse(delivery.bytes.as_bytes());
            assert!(read.is_ok(), "{read:?} {}", delivery.bytes);
        }
        drained
    }

    /// What was sent, in short: the number, and the text where there is any.
    pub fn heard(&mut self) -> Vec<String> {
        self.drain().iter().map(short).collect()
    }

    pub fn say(&mut self, json: String) -> Vec<String> {
        self.offer(json);
        self.heard()
    }

    /// Waits until nothing is due any more.
    pub fn wait(&mut self) -> Vec<Delivery> {
        let mut all = self.drain();
        while let Some(next) = self.shaper.next_deadline() {
            self.now = next;
            all.extend(self.drain());
        }
        all
    }
}

pub fn short(delivery: &Delivery) -> String {
    let event = Event::parse(delivery.bytes.as_bytes()).unwrap();
    let number = event.envelope().sequence_number.unwrap().get();
    match event.payload() {
        Payload::OutputStreaming(output) => {
            let hint = output.coalesce_hint.map_or("", CoalesceBoundary::as_str);
            format!("{number} {}:{} {hint}", output.position.get(), output.chunk.as_str())
        }
        Payload::StateChanged(state) => {
            format!("{number} {}>{}", state.from_state.as_str(), state.to_state.as_str())
        }
        Payload::ToolCompleted(completed) => {
            format!("{number} {}", completed.summary_normal.as_ref().unwrap().as_str())
        }
        _ => number.to_string(),
    }
}
