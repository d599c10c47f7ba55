//! Events on their way to people, and what agents are told.

use aaep_engine::{Emitted, EventNumber, Outcome, RequestId};
use aaep_types::{EventId, EventKind, Timestamp, ToolCallId};
use memchr::memmem;

use super::Oracle;
use crate::prose::Piece;

/// The text value of the first member with this name; our own events have no tricks in them.
pub(crate) fn text<'e>(json: &'e str, name: &str) -> Option<&'e str> {
    let at = memmem::find(json.as_bytes(), name.as_bytes())? + name.len();
    json.get(at..)?.split('"').next()
}

/// The number after the first member with this name.
pub(crate) fn number(json: &str, name: &str) -> Option<u64> {
    let at = memmem::find(json.as_bytes(), name.as_bytes())? + name.len();
    json.get(at..)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The bits of a token.
fn token_bits(token: &str) -> Option<u128> {
    u128::from_str_radix(token.strip_prefix("rpl_")?, 16).ok()
}

/// The number in an event's id.
pub(crate) fn event_number(id: &EventId) -> Option<EventNumber> {
    let digits = id.as_str().strip_prefix("evt_")?;
    u128::from_str_radix(digits, 16).ok().map(EventNumber::from_bits)
}

impl Oracle {
    pub(crate) fn event(&mut self, event: &Emitted, place: usize) {
        self.events += 1;
        self.promise(event);
        // After a crash nobody knows what was heard: the same event may come again, as it was.
        if let Some(before) = self.heard.insert(event.event, event.json.clone()) {
            let same = before == event.json;
            return self.demand(same, "I19", || "an event id was used for another event".into());
        }
        self.order(event, place);
        self.budgeted(event);
        match event.kind {
            Some(EventKind::AwaitingConfirmation | EventKind::AwaitingClarification) => {
                self.announced(event);
            }
            Some(EventKind::StateChanged | EventKind::ProgressUpdated) => self.shown(event),
            Some(EventKind::ToolInvoked) => self.tool_invoked(event),
            Some(EventKind::ToolCompleted) => self.tool_completed(event),
            Some(EventKind::OutputStreaming) => self.text_said(event),
            Some(kind) if kind.is_terminal() => self.terminal(event),
            _ => {}
        }
    }

    /// I5, I19: one start, one end, numbers and stamps that only grow.
    fn order(&mut self, event: &Emitted, place: usize) {
        let durable = self.durable;
        let stamp = text(&event.json, "\"timestamp\":\"").and_then(|t| Timestamp::parse(t).ok());
        let stamp = stamp.map_or(i64::MAX, |stamp| stamp.as_micros());
        let starts = event.kind == Some(EventKind::SessionStarted);
        let Some(session) = self.sessions.get_mut(&event.session) else {
            return self.violated("I5", "an event of a session that nobody opened".into());
        };
        let in_order = session.last_number.is_none_or(|last| last < event.number);
        let first_or_later = session.began.is_some() != starts;
        let over = session.told_end;
        let stamped = session.last_stamp <= stamp;
        let recorded = (1..=durable).contains(&session.opened);
        session.last_number = Some(event.number);
        session.last_stamp = stamp;
        session.began.get_or_insert(place);
        session.started = session.started.or(starts.then_some(event.event));
        self.demand(first_or_later, "I5", || "a session starts once, before all else".into());
        self.demand(!over, "I5", || "something followed the end of a session".into());
        self.demand(in_order, "I19", || format!("number {} was used before", event.number));
        self.demand(stamped, "I19", || "a stamp went back".into());
        self.demand(recorded, "I10", || "a session was shown before it was durable".into());
    }

    /// I10, I25: a request leaves after its record, with a token of its own; with more time it says
    /// which event it stands for (D32).
    fn announced(&mut self, event: &Emitted) {
        let token = text(&event.json, "\"reply_token\":\"").and_then(token_bits);
        let Some(token) = token else {
            return self.violated("I25", "a request without a token".into());
        };
        let first_in = *self.tokens.entry(token).or_insert(event.event);
        self.demand(first_in == event.event, "I25", || "a token was used again".into());
        let stamp = text(&event.json, "\"timestamp\":\"").and_then(|t| Timestamp::parse(t).ok());
        let supersedes = text(&event.json, "\"supersedes\":\"");
        let supersedes = supersedes.and_then(|id| event_number(&EventId::parse(id).ok()?));
        let waits = number(&event.json, "\"timeout_seconds\":");
        let durable = self.durable;
        let request = self.asks.get(&event.event).and_then(|number| self.requests.get_mut(number));
        let place =
            request.as_ref().and_then(|r| r.askings.iter().position(|a| a.event == event.event));
        let (Some(request), Some(place)) = (request, place) else {
            return self.violated("I3", "a request that nobody made was shown".into());
        };
        let before = place.checked_sub(1).map(|place| request.askings[place].event);
        let asking = &mut request.askings[place];
        asking.announced = true;
        asking.stamp = stamp.map_or(0, |stamp| stamp.as_micros());
        let recorded = (1..=durable).contains(&asking.record);
        let promised = waits == Some(asking.timeout_millis / 1000);
        self.demand(recorded, "I10", || "a request was shown before it was durable".into());
        self.demand(promised, "I7", || "a request promises another time than it waits".into());
        self.demand(supersedes == before, "D32", || {
            "more time does not say which request it is for".into()
        });
    }

    /// I2, I10, I18: a resolution is shown after its record, and always the same.
    fn shown(&mut self, event: &Emitted) {
        let Some(named) = text(&event.json, "\"request_event_id\":\"") else { return };
        let outcome = text(&event.json, "\"outcome\":\"").unwrap_or_default();
        let asked = EventId::parse(named).ok().and_then(|id| event_number(&id));
        let Some((asked, number)) = asked.and_then(|id| Some((id, *self.asks.get(&id)?))) else {
            return self.violated("I18", "an outcome that names no request".into());
        };
        if outcome == "expired" {
            return self.expiry_shown(number);
        }
        let outcomes = [
            Outcome::Accepted,
            Outcome::Rejected,
            Outcome::TimedOut,
            Outcome::Cancelled,
            Outcome::Superseded,
        ];
        let outcome = outcomes.into_iter().find(|known| known.as_str() == outcome);
        let durable = self.durable;
        let Some(request) = self.requests.get_mut(&number) else { return };
        let place = request.askings.iter().position(|asking| asking.event == asked);
        let follows = place.and_then(|place| request.askings.get(place + 1)).copied();
        if let Some(asking) = place.and_then(|place| request.askings.get_mut(place)) {
            asking.shown = true;
        }
        let superseded = outcome == Some(Outcome::Superseded);
        self.demand(superseded == follows.is_some(), "D32", || {
            "what is asked again is not shown as superseded".into()
        });
        match follows {
            Some(next) => self.demand(next.record <= durable, "I10", || {
                "more time was shown before it was durable".into()
            }),
            None => self.tell(number, |known| Some(known) == outcome, "an outcome was shown"),
        }
    }

    /// I18, D41: that an approval was not used in time is shown after its record.
    fn expiry_shown(&mut self, number: RequestId) {
        let durable = self.durable;
        let Some(request) = self.requests.get_mut(&number) else { return };
        request.expiry_shown = true;
        let recorded = request.expired.is_some_and(|record| record <= durable);
        self.demand(recorded, "I10", || "an expiry was shown before it was durable".into());
    }

    /// Somebody learns the outcome of a request.
    pub(super) fn tell(&mut self, number: RequestId, same: impl Fn(Outcome) -> bool, what: &str) {
        let durable = self.durable;
        let Some(request) = self.requests.get_mut(&number) else {
            return self.violated("I3", format!("{what} for a request that nobody made"));
        };
        let Some(resolved) = request.resolved else {
            return self.violated("I2", format!("{what} for a request that waits"));
        };
        let before = request.told.replace((resolved.outcome, resolved.runs));
        let agrees = before.is_none_or(|before| before == (resolved.outcome, resolved.runs));
        self.demand(resolved.record <= durable, "I10", || format!("{what} before it was durable"));
        self.demand(same(resolved.outcome) && agrees, "I2", || format!("{what} that is another"));
    }

    /// I1: an irreversible call rests on a durable accept that was not spent before.
    fn tool_invoked(&mut self, event: &Emitted) {
        let call = text(&event.json, "\"tool_call_id\":\"").and_then(|c| ToolCallId::parse(c).ok());
        let irreversible = event.json.contains("\"irreversible\":true");
        let durable = self.durable;
        let known = call.and_then(|call| self.calls.get_mut(&call));
        let Some(known) = known else {
            return self.demand(!irreversible, "I1", || "irreversible, and nobody agreed".into());
        };
        let again = known.announced.replace(event.event).is_some();
        let (request, record) = (known.request, known.record);
        self.demand(!again, "I1", || "one call was announced twice".into());
        self.demand(record <= durable, "I10", || "a call was shown before it was durable".into());
        let durably = self.requests.get(&request).and_then(|request| request.resolved);
        let accepted = durably.is_some_and(|r| r.runs && r.record <= durable);
        self.demand(accepted, "I1", || "invoked without a durable accept".into());
    }

    fn tool_completed(&mut self, event: &Emitted) {
        let call = text(&event.json, "\"tool_call_id\":\"").and_then(|c| ToolCallId::parse(c).ok());
        if let Some(call) = call.and_then(|call| self.calls.get_mut(&call)) {
            call.completed = true;
        }
    }

    /// How far an output is.
    fn text_said(&mut self, event: &Emitted) {
        let Some(piece) = Piece::read(&event.json) else { return };
        if let Some(session) = self.sessions.get_mut(&event.session) {
            session.written.insert(piece.output, piece.position + piece.length());
        }
    }

    /// I5, I11, I13: before the end everything else has ended, and people know how.
    fn terminal(&mut self, event: &Emitted) {
        let (id, durable) = (event.session, self.durable);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.told_end = true;
        let recorded = session.ended.is_some_and(|record| record <= durable);
        self.demand(recorded, "I10", || "an end was shown before it was durable".into());
        let alive = self.requests.values().any(|r| r.session == id && r.waits());
        self.demand(!alive, "I13", || "a session ended with a token still alive".into());
        let open =
            |call: &super::Call| call.session == id && !call.completed && call.announced.is_some();
        let unknown = self.calls.values().any(open);
        self.demand(!unknown, "I11", || "nobody was told that a call's outcome is unknown".into());
    }
}
