//! One session: its rows, and what lasted in it.

use aaep_types::json::{Members, Raw};
use aaep_types::{EventKind, LenientEvent, Limits};

use super::room::{AROUND, Room};
use super::story::Remark;

/// Rows of one session.
const ROWS: usize = 20_000;
/// Things that last: states, tools, requests, outputs.
const SPANS: usize = 5000;
/// Characters of one output, and of any other text.
const OUTPUT: usize = 64 * 1024;
const TEXT: usize = 2000;

/// One message, as a line of a table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) line: u64,
    pub(super) at_us: u64,
    pub(super) what: String,
    pub(super) text: String,
    pub(super) findings: Vec<Remark>,
}

/// What kind of thing lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    State,
    Tool,
    Request,
    Output,
}

impl Lane {
    pub(super) const ALL: [Self; 4] = [Self::State, Self::Tool, Self::Request, Self::Output];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::State => "State",
            Self::Tool => "Tool",
            Self::Request => "Request",
            Self::Output => "Output",
        }
    }
}

/// Something that lasts.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) lane: Lane,
    /// What tells it from others: a call, an event, an output.
    key: String,
    token: Option<String>,
    pub(super) name: String,
    pub(super) from_us: u64,
    /// None as long as its end was not seen.
    pub(super) to_us: Option<u64>,
    pub(super) end: String,
    /// Who ended it, where the recording says so.
    pub(super) by: Option<String>,
    /// What was asked, or written.
    pub(super) text: String,
    /// How much of an output was put together, in characters.
    length: u64,
    /// The rest of an output is not shown.
    is_cut: bool,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) agent: Option<String>,
    pub(super) from_us: u64,
    pub(super) to_us: u64,
    pub(super) begun: bool,
    /// How it ended, in a word.
    pub(super) end: Option<&'static str>,
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
    pub(super) spans: Vec<Span>,
    /// Findings that belong to no row.
    pub(super) findings: Vec<Remark>,
    pub(super) left_out: u64,
}

impl Session {
    pub(super) fn new(id: String, at_us: u64) -> Self {
        Self {
            id,
            agent: None,
            from_us: at_us,
            to_us: at_us,
            begun: false,
            end: None,
            title: String::new(),
            rows: Vec::new(),
            spans: Vec::new(),
            findings: Vec::new(),
            left_out: 0,
        }
    }

    /// Takes an event; gives the number of its row.
    pub(super) fn event(
        &mut self,
        line: u64,
        at: u64,
        event: &LenientEvent<'_>,
        room: &mut Room,
    ) -> Option<usize> {
        self.to_us = self.to_us.max(at);
        if self.agent.is_none() {
            self.agent = event.agent_id().map(|id| room.keep(&shortened(&id)));
        }
        let said = |name: &str| event.text(name).map(|text| shortened(&text));
        let summary = ["summary_normal", "summary_terse", "description", "question", "reason"];
        let text = summary.iter().find_map(|name| said(name)).unwrap_or_default();
        if self.title.is_empty() {
            self.title = room.keep(&text);
        }
        let text = self.lasting(at, event, text, room);
        let what = event.type_name();
        let what = shortened(what.strip_prefix("aaep:agent.").unwrap_or(what));
        self.row(Row { line, at_us: at, what, text, findings: Vec::new() }, room)
    }

    /// What an event says of things that last, and the text of its row.
    fn lasting(
        &mut self,
        at: u64,
        event: &LenientEvent<'_>,
        text: String,
        room: &mut Room,
    ) -> String {
        let said = |name: &str| event.text(name).map(|text| shortened(&text)).unwrap_or_default();
        let id = shortened(event.event_id());
        match event.kind() {
            Some(EventKind::SessionStarted) => self.begun = true,
            Some(EventKind::SessionCompleted) => self.over(at, "completed", room),
            Some(EventKind::SessionErrored) => self.over(at, "failed", room),
            Some(EventKind::SessionCancelled) => self.over(at, "cancelled", room),
            Some(EventKind::StateChanged) => {
                self.close(Lane::State, |_| true, at, "left", room);
                self.resolved(at, event, room);
                let to = said("to_state");
                let shown = format!("{} to {to}. {text}", said("from_state"));
                self.open(Lane::State, id, to, at, String::new(), room);
                return shown;
            }
            Some(EventKind::ToolInvoked) => {
                let call = said("tool_call_id");
                let key = if call.is_empty() { said("tool") } else { call };
                let shown = format!("{}. {text}", said("tool"));
                self.open(Lane::Tool, key, said("tool"), at, said("args_summary"), room);
                return shown;
            }
            Some(EventKind::ToolCompleted) => {
                let call = said("tool_call_id");
                let key = if call.is_empty() { said("tool") } else { call };
                let status = said("status");
                self.close(Lane::Tool, |span| span.key == key, at, &status, room);
                return format!("{}: {status}. {text}", said("tool"));
            }
            Some(EventKind::AwaitingConfirmation | EventKind::AwaitingClarification) => {
                self.resolved(at, event, room);
                return self.asks(at, id, event, &text, room);
            }
            Some(EventKind::OutputStreaming) => return self.output(at, event, room),
            _ => self.resolved(at, event, room),
        }
        text
    }

    fn asks(
        &mut self,
        at: u64,
        id: String,
        event: &LenientEvent<'_>,
        text: &str,
        room: &mut Room,
    ) -> String {
        let said = |name: &str| event.text(name).map(|text| shortened(&text));
        let what = said("action").or_else(|| said("question")).unwrap_or_else(|| text.to_owned());
        let mut about = vec![what.clone()];
        let cannot = event.flag("irreversible") == Some(true)
            || said("reversibility").is_some_and(|how| how == "irreversible");
        if cannot {
            about.push("This cannot be undone.".into());
        }
        about.extend(said("consequence"));
        if let Some(seconds) = event.timeout_seconds() {
            let most =
                said("default_decision").map_or_else(String::new, |no| format!(", then {no}"));
            about.push(format!("Waits {seconds} s at most{most}."));
        }
        let about = about.join(" ");
        let span = self.open(Lane::Request, id, what, at, about.clone(), room);
        if let (Some(span), Some(token)) = (span, event.reply_token()) {
            span.token = room.take(token.as_str().len()).then(|| token.as_str().to_owned());
        }
        about
    }

    /// A request that this event says is over, or that the state shows to be.
    fn resolved(&mut self, at: u64, event: &LenientEvent<'_>, room: &mut Room) {
        let extensions = event.object("extensions");
        let outcome = extensions.and_then(|extensions| match extensions.find("outcome")? {
            Raw::Object(text) => Members::whole(text, Limits::default().max_depth).ok()?,
            _ => None,
        });
        if let Some(outcome) = outcome {
            let id = outcome.text("request_event_id").unwrap_or_default();
            let end = shortened(&outcome.text("outcome").unwrap_or_default());
            self.close(Lane::Request, |span| span.key == id, at, &end, room);
        } else if event.text("from_state").is_some_and(|from| from == "awaiting_input") {
            let to = event.text("to_state").unwrap_or_default();
            let end = match &*to {
                "calling_tool" => "probably accepted: a tool was called next",
                _ => "no longer asked; the recording does not say why",
            };
            self.close(Lane::Request, |_| true, at, end, room);
        }
    }

    fn output(&mut self, at: u64, event: &LenientEvent<'_>, room: &mut Room) -> String {
        let key = event.text("output_id").map(|id| shortened(&id)).unwrap_or_default();
        let chunk = event.text("chunk").unwrap_or_default();
        let is_it =
            |span: &&mut Span| span.lane == Lane::Output && span.key == key && span.end.is_empty();
        if !self.spans.iter_mut().rev().take(64).any(|span| is_it(&span)) {
            let name = if key.is_empty() { "output".to_owned() } else { key.clone() };
            self.open(Lane::Output, key.clone(), name, at, String::new(), room);
        }
        if let Some(span) = self.spans.iter_mut().rev().take(64).find(is_it) {
            if span.put(&chunk, event.number("position"), room) {
                self.left_out += 1;
            }
            span.to_us = Some(at);
            if event.flag("complete") == Some(true) {
                span.end = "complete".into();
            }
        }
        shortened(&chunk)
    }

    /// A reply that stands in the recording.
    pub(super) fn reply(
        &mut self,
        line: u64,
        at: u64,
        token: &str,
        said: &str,
        by: Option<String>,
        room: &mut Room,
    ) -> Option<usize> {
        self.to_us = self.to_us.max(at);
        let by = by.map(|by| shortened(&by));
        let asked = |span: &&mut Span| span.token.as_deref() == Some(token);
        let first = self.spans.iter_mut().find(asked).filter(|span| span.to_us.is_none());
        let counts = first.is_some();
        if let Some(span) = first {
            span.to_us = Some(at);
            span.end = room.keep(said);
            span.by = by.as_deref().map(|by| room.keep(by));
        }
        let by = by.map_or_else(|| "It does not say by whom.".into(), |by| format!("By {by}."));
        let late = if counts { "" } else { " The request was over already." };
        let text = format!("{said}. {by}{late}");
        let what = "reply".into();
        self.row(Row { line, at_us: at, what, text, findings: Vec::new() }, room)
    }

    /// The requests, each with its place among the spans and the event that asked.
    pub(super) fn requests(&self) -> impl Iterator<Item = (usize, &str)> {
        let spans = self.spans.iter().enumerate();
        spans.filter(|(_, span)| span.lane == Lane::Request).map(|(at, span)| (at, &*span.key))
    }

    /// Who decided the request at this place, unless the recording says so itself.
    pub(super) fn decided(&mut self, at: usize, by: &str, room: &mut Room) {
        let Some(span) = self.spans.get_mut(at) else { return };
        if span.by.is_none() {
            span.by = Some(room.keep(&shortened(by)));
        }
    }

    fn over(&mut self, at: u64, how: &'static str, room: &mut Room) {
        self.end = Some(how);
        self.close(Lane::State, |_| true, at, "left", room);
    }

    /// Something begins to last; `None` if there is no room for it.
    fn open(
        &mut self,
        lane: Lane,
        key: String,
        name: String,
        at: u64,
        text: String,
        room: &mut Room,
    ) -> Option<&mut Span> {
        let bytes = AROUND + key.len() + name.len() + text.len();
        if self.spans.len() >= SPANS || !room.take(bytes) {
            self.left_out += 1;
            return None;
        }
        let (to_us, end, by, token) = (None, String::new(), None, None);
        self.spans.push(Span {
            lane,
            key,
            token,
            name,
            from_us: at,
            to_us,
            end,
            by,
            text,
            length: 0,
            is_cut: false,
        });
        self.spans.last_mut()
    }

    /// Ends the oldest of its kind that is open.
    fn close(
        &mut self,
        lane: Lane,
        is_it: impl Fn(&Span) -> bool,
        at: u64,
        end: &str,
        room: &mut Room,
    ) {
        let open = |span: &&mut Span| span.lane == lane && span.to_us.is_none() && is_it(span);
        if let Some(span) = self.spans.iter_mut().find(open) {
            span.to_us = Some(at);
            span.end = room.keep(end);
        }
    }

    fn row(&mut self, row: Row, room: &mut Room) -> Option<usize> {
        if self.rows.len() >= ROWS || !room.take(AROUND + row.what.len() + row.text.len()) {
            self.left_out += 1;
            return None;
        }
        self.rows.push(row);
        Some(self.rows.len() - 1)
    }
}

impl Span {
    /// Puts a piece of an output where it belongs; true if from here on nothing more is shown.
    fn put(&mut self, chunk: &str, position: Option<u64>, room: &mut Room) -> bool {
        let position = position.unwrap_or(self.length);
        let missing = position.saturating_sub(self.length);
        let known = usize::try_from(self.length.saturating_sub(position)).unwrap_or(usize::MAX);
        let length = chunk.chars().count() as u64;
        self.length = self.length.max(position.saturating_add(length));
        if self.is_cut {
            return false;
        }
        let mut new = match missing {
            0 => String::new(),
            _ => format!("\n[{missing} characters are missing here]\n"),
        };
        new.extend(chunk.chars().skip(known));
        if self.text.len() + new.len() <= OUTPUT && room.take(new.len()) {
            self.text.push_str(&new);
        } else {
            self.text.push_str(CUT);
            self.is_cut = true;
        }
        self.is_cut
    }
}

const CUT: &str = "\n[the rest is not shown]";

/// At most so much of a text is kept.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        Some((at, _)) => format!("{}[…]", &text[..at]),
        None => text.to_owned(),
    }
}

impl Span {
    /// How it ended, after how long, and by whom.
    pub(super) fn ended(&self) -> String {
        let Some(to) = self.to_us else { return "Its end is not in the recording.".into() };
        let length = super::clock::lasting(to.saturating_sub(self.from_us));
        let end = if self.end.is_empty() { "not complete" } else { &self.end };
        if self.lane != Lane::Request {
            return format!("After {length}: {end}.");
        }
        match (&self.by, end) {
            (Some(by), _) => format!("After {length}: {end}, by {by}."),
            (None, "timed_out") => format!("After {length}: {end}. Nobody answered in time."),
            (None, "superseded") => format!("After {length}: {end}. It was asked again."),
            // It ended without an answer.
            (None, "cancelled" | "expired") => format!("After {length}: {end}."),
            (None, _) => format!("After {length}: {end}. By whom is not in the recording."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(session: &mut Session, room: &mut Room) -> usize {
        session.open(Lane::Output, "out".into(), "out".into(), 0, String::new(), room).unwrap();
        session.spans.len() - 1
    }

    #[test]
    fn behind_the_place_where_an_output_was_cut_nothing_follows() {
        let (mut session, mut room) = (Session::new("s".into(), 0), Room::of(1 << 20));
        let at = output(&mut session, &mut room);
        let span = &mut session.spans[at];
        assert!(!span.put("begins ", None, &mut room));
        assert!(span.put(&"x".repeat(OUTPUT), None, &mut room));
        assert!(!span.put("fits", None, &mut room));
        assert!(!span.put("after a gap", Some(1 << 40), &mut room));
        assert_eq!(span.text, format!("begins {CUT}"));
    }

    #[test]
    fn gaps_are_told_within_the_bound_too() {
        let (mut session, mut room) = (Session::new("s".into(), 0), Room::of(1 << 20));
        let at = output(&mut session, &mut room);
        let span = &mut session.spans[at];
        for number in 0..10_000 {
            span.put("x", Some(number * 10), &mut room);
        }
        assert!(span.text.starts_with("x\n[9 characters are missing here]\nx"));
        assert!(span.is_cut && span.text.len() <= OUTPUT + CUT.len(), "{}", span.text.len());
    }

    #[test]
    fn a_request_says_who_decided_only_where_somebody_did() {
        let (mut session, mut room) = (Session::new("s".into(), 0), Room::of(1 << 20));
        for (end, says) in [
            ("accepted", "After 0.002 s: accepted. By whom is not in the recording."),
            ("timed_out", "After 0.002 s: timed_out. Nobody answered in time."),
            ("superseded", "After 0.002 s: superseded. It was asked again."),
            ("cancelled", "After 0.002 s: cancelled."),
        ] {
            session.open(Lane::Request, "e".into(), "May I?".into(), 0, String::new(), &mut room);
            session.close(Lane::Request, |_| true, 2000, end, &mut room);
            assert_eq!(session.spans.last().unwrap().ended(), says);
        }
    }
}
