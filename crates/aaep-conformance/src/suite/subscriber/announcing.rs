//! Level 1: what is announced, and what breaks nothing.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::Run;
use super::session::Session;

/// How late a critical event may be announced while much else is going on.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Events of a flood, and how many come at a time.
const FLOOD: u32 = 300;
const WAVE: u32 = 30;
/// The length of a very large member.
const LARGE: usize = 200_000;

impl Run<'_> {
    /// Every check of level 1.
    pub(super) async fn announcing(&mut self) {
        self.plainly().await;
        self.endings().await;
        self.pieces().await;
        self.unusual().await;
        self.hostile().await;
        self.flood().await;
    }

    async fn plainly(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Fetching the marigold report.");
        // Who speaks may leave out what was over before it could be said.
        self.quiet().await;
        session.tool("juniper", "Calling the juniper office.", "The juniper office answered.");
        self.quiet().await;
        session.enter("thinking", "Thinking.");
        session.complete("The larkspur report is ready.");
        for (what, words) in [
            ("start", "marigold report"),
            ("tool", "calling the juniper office"),
            ("end", "larkspur report is ready"),
        ] {
            let heard = self.hears(from, words).await;
            self.report.holds("announces", heard, format!("The {what} was not announced."));
        }
        let from = self.stage.place();
        let began = std::time::Instant::now();
        Session::begin(self.stage, "Trying the bramble.").fail("The bramble caught fire.");
        let heard = self.stage.hears(from, "bramble caught fire", self.subject.patience).await;
        let in_time = heard.is_some_and(|at| at.duration_since(began) < AT_ONCE);
        self.report.holds("errors", in_time, "An error was not announced at once.");
    }

    /// The same words, three ends: what is announced has to differ.
    async fn endings(&mut self) {
        let words = "it came to its end";
        let mut said = Vec::new();
        for end in 0..3 {
            let session = Session::begin(self.stage, "Trying.");
            self.quiet().await;
            let from = self.stage.place();
            match end {
                0 => session.complete(words),
                1 => session.fail(words),
                _ => session.cancel(words),
            }
            if !self.hears(from, words).await {
                return self.report.fail("endings", "An end was not announced.");
            }
            self.quiet().await;
            said.push(self.stage.transcript(from));
        }
        let differ = said[0] != said[1] && said[1] != said[2] && said[0] != said[2];
        self.report.holds("endings", differ, "Two different ends are announced in the same words.");
    }

    async fn pieces(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Writing.");
        session.enter("writing_output", "Writing.");
        let pieces = ["Quartz", " pebbles", " lie still."];
        let mut position = 0;
        for (place, piece) in (1..).zip(pieces) {
            session.emit(
                "output.streaming",
                json!({ "chunk": piece, "position": position, "complete": place == pieces.len(),
                    "output_id": "out_1", "coalesce_hint": "none" }),
            );
            position += piece.chars().count();
            if place == 1 {
                self.quiet().await;
                if self.stage.transcript(from).contains("quartz") {
                    self.report.fail("text", "A piece without a boundary was announced alone.");
                }
            }
        }
        // It may read the text, or say only that it is there; a part of it alone is neither.
        let end = self.stage.place();
        session.enter("thinking", "Thinking.");
        let whole = self.hears(from, "quartz pebbles lie still").await;
        let said = self.stage.transcript(from);
        let parts = ["quartz", "pebbles", "lie still"].iter().any(|part| said.contains(part));
        if whole || parts {
            self.report.holds("text", whole, "A part of a text was announced, and not the rest.");
        } else if self.stage.place() > end {
            self.report.pass("text");
        } else {
            self.report.skip("text", "Nothing was announced of a text.");
        }
        session.complete("Written.");
    }

    /// What a newer or another producer may say.
    async fn unusual(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Beginning.");
        let mut bare =
            session.event("session.completed", json!({ "summary_normal": "The bare heather." }));
        if let Some(bare) = bare.as_object_mut() {
            bare.retain(|name, _| {
                [
                    "@context",
                    "type",
                    "event_id",
                    "session_id",
                    "timestamp",
                    "producer",
                    "summary_normal",
                ]
                .contains(&name.as_str())
            });
        }
        self.stage.emit(&bare);
        let heard = self.hears(from, "bare heather").await;
        self.report.holds("sparse", heard, "An event without optional members was not announced.");

        let from = self.stage.place();
        let session = Session::begin(self.stage, "Beginning.");
        for (name, urgency, summary) in [
            ("garden:bed.dug", "normal", "A bed was dug."),
            ("aaep:agent.mood.changed", "normal", "The mood changed."),
            ("garden:hail.seen", "critical", "Hail over the hyssop."),
        ] {
            let mut event =
                session.event("x", json!({ "urgency": urgency, "summary_normal": summary }));
            event["type"] = json!(name);
            event["@context"] = json!([
                "https://aaep-protocol.org/context/v1",
                "https://example.org/contexts/garden/v1"
            ]);
            self.stage.emit(&event);
        }
        let heard = self.hears(from, "hail over the hyssop").await;
        let why = "A critical event of an unknown type was not announced.";
        self.report.holds("unknown-types", heard, why);
        session.complete("The garden is done.");
        self.survives("unknown-types", "The foxglove is done.").await;

        let session = Session::begin(self.stage, "Beginning.");
        session.enter("pondering", "Pondering.");
        session.emit(
            "tool.completed",
            json!({ "tool": "rake", "status": "half_done", "summary_normal": "Half done." }),
        );
        session.cancel("Given up.");
        self.survives("unknown-values", "The tansy is done.").await;

        let from = self.stage.place();
        let session = Session::begin(self.stage, "Beginning.");
        session.emit(
            "session.completed",
            json!({ "summary_normal": "The yarrow is done.", "weather": { "rain": [1, 2] },
                "extensions": { "garden": { "beds": 3 } } }),
        );
        let heard = self.hears(from, "yarrow is done").await;
        self.report.holds(
            "unknown-members",
            heard,
            "An event with more members was not announced.",
        );

        let from = self.stage.place();
        let session = Session::begin(self.stage, "Beginning.");
        session.emit(
            "session.completed",
            json!({ "summary_normal": "Saniainen on valmis.",
                "localization_hints": { "primary_language": "fi" } }),
        );
        let heard = self.hears(from, "saniainen on valmis").await;
        self.report.holds("languages", heard, "Text in another language was not announced.");
    }

    async fn hostile(&mut self) {
        let session = Session::begin(self.stage, "Beginning.");
        session.emit(
            "session.completed",
            json!({ "summary_normal": "Large.", "extensions": { "garden": { "x": "y".repeat(LARGE) } } }),
        );
        self.survives("large", "The willow is done.").await;
        for text in ["{", "[]", "null", "\"yes\"", r#"{"type":"aaep:agent.session.started"}"#, "}}"]
        {
            self.stage.emit_text(text);
        }
        self.survives("invalid", "The sorrel is done.").await;
    }

    async fn flood(&mut self) {
        let session = Session::begin(self.stage, "Beginning a flood.");
        let from = self.stage.place();
        let mut heard = None;
        for number in 1..=FLOOD {
            session.emit(
                "progress.updated",
                json!({ "progress": { "step": number, "total_steps": FLOOD },
                    "summary_normal": format!("Step {number}.") }),
            );
            if number == FLOOD / 2 {
                let began = std::time::Instant::now();
                Session::begin(self.stage, "Beginning.").fail("The comfrey burned down.");
                heard = Some(began);
            }
            if number % WAVE == 0 {
                sleep(Duration::from_millis(20)).await;
            }
        }
        let began = heard.unwrap_or_else(std::time::Instant::now);
        let at = self.stage.hears(from, "comfrey burned down", self.subject.patience).await;
        let in_time = at.is_some_and(|at| at.duration_since(began) < AT_ONCE);
        let why = "In a flood, a critical event was not announced at once.";
        self.report.holds("critical", in_time, why);
        session.complete("The flood is over.");
        self.hears(from, "flood is over").await;
    }
}
