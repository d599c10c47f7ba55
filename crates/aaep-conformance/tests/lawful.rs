//! A made-up producer that keeps the rules, whatever it is told to do next: tools side by side,
//! several requests at once, replies from elsewhere, timeouts, cancellations. The checker must not
//! find an error in what it emits, nor in any part of it.

use aaep_conformance::stream::{Checker, Finding, Options, Weight};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The longest pause between two events, well under the grace that a resolution has.
const MAX_PAUSE_MS: u64 = 1500;
/// How long a reply is on its way.
const MAX_DELAY_MS: u64 = 2000;

struct Open {
    event: String,
    token: String,
    /// The deadline; after a reply, when that reply arrives at the latest.
    due_ms: u64,
    /// What the request said of its action, and whether silence means yes.
    irreversible: Option<bool>,
    default_accept: bool,
    /// The reply that was sent from here.
    replied: Option<bool>,
}

struct Producer {
    /// Whether resolutions name their request. Without that, one request is open at a time.
    names_outcomes: bool,
    now_ms: u64,
    number: u64,
    state: &'static str,
    tools: Vec<String>,
    outputs: [u64; 3],
    open: Vec<Open>,
    /// Accepted actions that still have to be invoked; whether each is irreversible.
    approved: Vec<bool>,
    lines: Vec<String>,
}

impl Producer {
    fn new(names_outcomes: bool) -> Self {
        let mut producer = Self {
            names_outcomes,
            now_ms: 0,
            number: 0,
            state: "idle",
            tools: Vec::new(),
            outputs: [0; 3],
            open: Vec::new(),
            approved: Vec::new(),
            lines: Vec::new(),
        };
        producer.emit("session.started", json!({ "summary_normal": "Tidying." }));
        producer
    }

    fn stamp(&self) -> String {
        let (minutes, seconds) = (self.now_ms / 60_000, self.now_ms / 1000 % 60);
        let (hour, minute, milli) = (minutes / 60 % 24, minutes % 60, self.now_ms % 1000);
        format!("2026-03-02T{hour:02}:{minute:02}:{seconds:02}.{milli:03}Z")
    }

    fn emit(&mut self, kind: &str, payload: Value) -> String {
        let event_id = format!("evt_{}", self.number);
        let critical = kind.starts_with("awaiting.");
        let mut event = json!({
            "@context": ["https://aaep-protocol.org/context/v1", "urn:aaep-rs:outcome:v1"],
            "aaep_version": "1.0.0", "type": format!("aaep:agent.{kind}"), "event_id": event_id,
            "session_id": "sess_lawful", "sequence_number": self.number, "timestamp": self.stamp(),
            "producer": { "agent_id": "desk-helper" },
            "urgency": if critical { "critical" } else { "normal" },
            "localization_hints": { "primary_language": "en", "text_direction": "auto" },
        });
        if let (Value::Object(event), Value::Object(payload)) = (&mut event, payload) {
            event.extend(payload);
        }
        self.number += 1;
        self.lines.push(event.to_string());
        event_id
    }

    fn go(&mut self, to: &'static str, outcome: Option<(&str, &str)>) {
        let mut payload = json!({ "from_state": self.state, "to_state": to });
        if let (Some((request, outcome)), true) = (outcome, self.names_outcomes) {
            payload["extensions"] =
                json!({ "outcome": { "request_event_id": request, "outcome": outcome } });
        }
        self.state = to;
        self.emit("state.changed", payload);
    }

    fn invoke(&mut self, irreversible: bool) {
        let call = format!("call_{}", self.number);
        let mut payload =
            json!({ "tool": "work", "tool_call_id": call, "summary_normal": "Busy." });
        if irreversible {
            payload["irreversible"] = json!(true);
        }
        self.tools.push(call);
        self.emit("tool.invoked", payload);
    }

    fn finish_tool(&mut self, pick: usize) {
        if self.tools.is_empty() {
            return;
        }
        let call = self.tools.remove(pick % self.tools.len());
        self.emit(
            "tool.completed",
            json!({ "tool": "work", "tool_call_id": call, "status": "success" }),
        );
        if self.tools.is_empty() && self.state == "calling_tool" {
            self.go("thinking", None);
        }
    }

    fn write(&mut self, output: usize, complete: bool) {
        let Some(position) = self.outputs.get_mut(output % 3) else { return };
        if *position == u64::MAX {
            return;
        }
        let chunk = if complete { "" } else { "Ein Stück 🖊." };
        let at = *position;
        *position = if complete { u64::MAX } else { at + chunk.chars().count() as u64 };
        let output_id = format!("out_{}", output % 3);
        self.emit(
            "output.streaming",
            json!({ "chunk": chunk, "position": at, "complete": complete, "output_id": output_id }),
        );
    }

    fn ask(&mut self, pick: usize) {
        if !self.open.is_empty() && !self.names_outcomes {
            return;
        }
        if self.state != "awaiting_input" {
            self.go("awaiting_input", None);
        }
        let (irreversible, default) = match pick % 4 {
            0 => (Some(true), "reject"),
            1 => (None, "reject"),
            2 => (Some(false), "reject"),
            _ => (Some(false), "accept"),
        };
        let seconds = 1 + (pick / 4 % 9) as u64;
        let token = format!("rpl_{}", self.number);
        let mut payload = json!({
            "action": format!("Clear pile {}.", self.number), "consequence": "It is cleared.",
            "reply_token": token, "timeout_seconds": seconds, "default_decision": default,
            "risk_level": "low",
        });
        if let Some(irreversible) = irreversible {
            payload["irreversible"] = json!(irreversible);
        }
        let due_ms = self.now_ms + seconds * 1000;
        let event = self.emit("awaiting.confirmation", payload);
        let default_accept = default == "accept";
        self.open.push(Open { event, token, due_ms, irreversible, default_accept, replied: None });
    }

    /// The user answers here; the producer has not heard of it yet.
    fn reply(&mut self, pick: usize) {
        let (length, stamp, now_ms) = (self.open.len().max(1), self.stamp(), self.now_ms);
        let Some(request) = self.open.get_mut(pick % length) else { return };
        let accept = !pick.is_multiple_of(3);
        let decision = if accept { "accept" } else { "reject" };
        request.replied.get_or_insert(accept);
        request.due_ms = request.due_ms.min(now_ms + MAX_DELAY_MS);
        let reply = json!({ "type": "confirmation.reply", "reply_token": request.token,
            "decision": decision, "subscription_id": "sub_here", "timestamp": stamp });
        self.lines.push(reply.to_string());
    }

    /// A reply arrives, from here or (only told apart by its outcome) from elsewhere.
    fn resolve(&mut self, pick: usize) {
        let Some(at) = self
            .open
            .iter()
            .position(|request| request.replied.is_some())
            .or_else(|| (!self.open.is_empty()).then(|| pick % self.open.len()))
        else {
            return;
        };
        let request = self.open.remove(at);
        let elsewhere = self.names_outcomes && pick.is_multiple_of(5);
        let accept = request.replied.filter(|_| !elsewhere).unwrap_or(pick.is_multiple_of(2));
        let irreversible = request.irreversible.unwrap_or(pick.is_multiple_of(3));
        self.settle(&request, accept, if accept { "accepted" } else { "rejected" }, irreversible);
    }

    fn settle(&mut self, request: &Open, goes_on: bool, outcome: &str, irreversible: bool) {
        let to = if goes_on { "calling_tool" } else { "thinking" };
        self.go(to, Some((&request.event, outcome)));
        if goes_on {
            self.approved.push(irreversible);
            if !irreversible || request.irreversible == Some(true) {
                self.use_approval();
            }
        }
        if !self.open.is_empty() {
            self.go("awaiting_input", None);
        }
    }

    fn use_approval(&mut self) {
        if let Some(irreversible) = self.approved.pop() {
            self.invoke(irreversible);
        }
    }

    fn cancel(&mut self, pick: usize) {
        let unanswered: Vec<usize> =
            (0..self.open.len()).filter(|at| self.open[*at].replied.is_none()).collect();
        if unanswered.is_empty() {
            return;
        }
        let request = self.open.remove(unanswered[pick % unanswered.len()]);
        self.settle(&request, false, "cancelled", false);
    }

    /// Time passes, and what is due is done first.
    fn wait(&mut self, pick: usize) {
        self.now_ms += pick as u64 % MAX_PAUSE_MS;
        while let Some(at) = self.open.iter().position(|open| open.due_ms <= self.now_ms) {
            let request = self.open.remove(at);
            match request.replied {
                // It arrived in time; we are only slow to say so.
                Some(accept) => {
                    let irreversible = request.irreversible == Some(true);
                    let outcome = if accept { "accepted" } else { "rejected" };
                    self.settle(&request, accept, outcome, irreversible);
                }
                None => self.settle(&request, request.default_accept, "timed_out", false),
            }
        }
    }

    fn step(&mut self, kind: u8, pick: usize) {
        self.wait(pick);
        match kind % 10 {
            0 if self.open.is_empty() && self.tools.is_empty() => self.go("deciding", None),
            1 | 2 if self.open.is_empty() => {
                if self.state != "calling_tool" {
                    self.go("calling_tool", None);
                }
                self.invoke(false);
            }
            // Other work while a request is open shows in tool events only.
            1 => self.invoke(false),
            3 => self.finish_tool(pick),
            4 => self.write(pick, pick.is_multiple_of(7)),
            5 => self.ask(pick),
            6 => self.reply(pick),
            7 => self.resolve(pick),
            8 => self.cancel(pick),
            _ => self.use_approval(),
        }
    }

    fn end(mut self) -> Vec<String> {
        while !self.open.is_empty() {
            self.resolve(1);
        }
        while !self.tools.is_empty() {
            self.finish_tool(0);
        }
        for output in 0..3 {
            self.write(output, true);
        }
        self.emit("session.completed", json!({ "summary_normal": "Tidy." }));
        self.lines
    }
}

fn errors(lines: &[String], complete: bool) -> Vec<Finding> {
    let mut checker = Checker::new(Options { complete, ..Options::default() });
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines) {
        checker.message(number, line.as_bytes(), &mut found);
    }
    checker.finish(&mut found);
    found.retain(|finding| finding.weight == Weight::Error);
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    // covers: T1, T7, T12, T13, T15, T17, T18, T24, E10, E15, C1, C2, C4, C14, C24, D19, D20, D30, D35
    #[test]
    fn a_producer_that_keeps_the_rules_is_never_accused(
        steps in proptest::collection::vec((any::<u8>(), any::<u16>()), 0..120),
        names_outcomes: bool,
        cut: prop::sample::Index,
        copies in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let mut producer = Producer::new(names_outcomes);
        for (kind, pick) in steps {
            producer.step(kind, usize::from(pick));
        }
        let mut lines = producer.end();
        for line in &lines {
            prop_assert!(aaep_types::is_valid(line.as_bytes()), "{}", line);
        }
        let found = errors(&lines, true);
        prop_assert!(found.is_empty(), "{:#?}\n{}", found, lines.join("\n"));

        let at = cut.index(lines.len());
        for part in [&lines[at..], &lines[..at]] {
            let found = errors(part, false);
            prop_assert!(found.is_empty(), "{:#?}\n{}", found, part.join("\n"));
        }
        // Events may come twice (W2), as long as their session lives.
        for copy in &copies {
            let events: Vec<String> =
                lines.iter().filter(|line| line.contains("event_id")).cloned().collect();
            let from = copy.index(events.len() - 1);
            let place = lines.iter().position(|line| *line == events[from]).unwrap_or(0) + 1;
            lines.insert(place.max(copy.index(lines.len())), events[from].clone());
        }
        let found = errors(&lines, true);
        prop_assert!(found.is_empty(), "with copies: {:#?}\n{}", found, lines.join("\n"));
    }
}
