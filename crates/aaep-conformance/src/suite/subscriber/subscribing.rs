//! Level 3: the handshake, gaps, and leaving.

use serde_json::json;

use super::session::Session;
use super::{Act, Run};
use crate::published;

impl Run<'_> {
    /// Every check of level 3.
    pub(super) async fn subscribing(&mut self) {
        self.requests();
        self.twice().await;
        self.holes().await;
        self.despite_filters().await;
        self.restarted().await;
        self.closed().await;
        self.goodbye().await;
    }

    fn requests(&mut self) {
        let requests = self.stage.requests();
        let Some(request) = requests.first() else {
            let why = "It listens without a handshake.";
            self.report.fail("handshake", why);
            return self.report.fail("declares", why);
        };
        for violation in published::judge(request) {
            self.report.fail("handshake", violation.to_string());
        }
        let is_one = request["type"] == "subscription.request";
        self.report.holds("handshake", is_one, "What it said first is no request.");
        let declared = request["capabilities"]["supports_confirmation_reply"] == true;
        self.report.holds("declares", declared, "It does not declare that it can reply.");
    }

    async fn twice(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Beginning.");
        let tool = json!({ "tool": "spade", "tool_call_id": "call_1",
            "summary_normal": "Digging for the madder." });
        let event = session.event("tool.invoked", tool);
        self.stage.emit(&event);
        self.stage.emit(&event);
        session.emit(
            "tool.completed",
            json!({ "tool": "spade", "tool_call_id": "call_1", "status": "success",
                "summary_normal": "It was dug up." }),
        );
        session.complete("The madder is done.");
        self.hears(from, "madder is done").await;
        self.quiet().await;
        let times = self.stage.transcript(from).matches("digging for the madder").count();
        self.report.holds("duplicates", times == 1, format!("It was announced {times} times."));
    }

    async fn holes(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Beginning.");
        session.enter("thinking", "Thinking.");
        session.skip_number();
        session.skip_number();
        let early = session.event(
            "tool.completed",
            json!({ "tool": "hoe", "tool_call_id": "call_2", "status": "success",
                "summary_normal": "The hoe came back." }),
        );
        let late = session.event(
            "progress.updated",
            json!({ "progress": { "percent": 50 }, "summary_normal": "Half." }),
        );
        self.stage.emit(&late);
        self.stage.emit(&early);
        session.complete("The gentian is done.");
        let heard = self.hears(from, "gentian is done").await;
        self.report.holds("gaps", heard, "After a hole, the end was not announced.");
        self.survives("gaps", "The mallow is done.").await;
    }

    async fn despite_filters(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Beginning.");
        let mut event = session.event(
            "x",
            json!({ "urgency": "critical", "summary_normal": "Frost on the saffron." }),
        );
        event["type"] = json!("weather:frost.seen");
        event["@context"] = json!([
            "https://aaep-protocol.org/context/v1",
            "https://example.org/contexts/weather/v1"
        ]);
        self.stage.emit(&event);
        let heard = self.hears(from, "frost on the saffron").await;
        let why = "A critical event that it did not ask for was not announced.";
        self.report.holds("despite-filters", heard, why);
        session.complete("The saffron is done.");
    }

    async fn restarted(&mut self) {
        let comings = self.stage.comings();
        self.stage.hang_up();
        let back = self.stage.somebody(comings, self.subject.patience * 2).await;
        self.report.holds("restarts", back, "After a lost connection, it did not come back.");
        if back {
            self.quiet().await;
            let alive = self.says("The clover is done.").await;
            self.report.holds("restarts", alive, "After it came back, nothing is announced.");
        }
    }

    async fn closed(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Tending the arnica.");
        let question = self.ask(&session, "Pick the arnica.", "The arnica is picked.").await;
        if !self.hears(from, "pick the arnica").await {
            let why = "A question was not announced before the close.";
            return self.report.skip("closed", why);
        }
        self.quiet().await;
        let before = self.stage.said_so_far();
        let comings = self.stage.comings();
        let ids = self.stage.close_all();
        if ids.is_empty() {
            return self.report.skip("closed", "There was no subscription to close.");
        }
        self.quiet().await;
        self.act(&question, Act::Accept).await;
        self.quiet().await;
        self.quiet().await;
        let on_it = self.stage.said(before).into_iter().any(|said| {
            said["reply_token"].is_string()
                && ids.iter().any(|id| said["subscription_id"] == id.as_str())
        });
        let why = "It replied on a subscription that was closed.";
        self.report.holds("closed", !on_it, why);
        // Whether it comes back after a close is its own affair; goodbye needs a subscription.
        self.stage.somebody(comings, self.subject.patience).await;
    }

    async fn goodbye(&mut self) {
        let before = self.stage.said_so_far();
        self.quiet().await;
        self.leave().await;
        let closes = |said: &serde_json::Value| said["type"] == "subscription.close";
        let closed = self.stage.says(before, self.subject.patience, closes).await.is_some();
        self.report.holds("goodbye", closed, "It left without closing its subscription.");
    }
}
