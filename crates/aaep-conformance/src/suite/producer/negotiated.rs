//! Level 3: terms, what is delivered under them, and how they change and end.

use std::time::{Duration, Instant};

use aaep_types::Message;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream, lookup_host};

use super::terms::beyond;
use super::{Run, seen};
use crate::published;
use crate::suite::ear::{is, is_critical, is_end};
use crate::suite::target::Script;
use crate::suite::wire::{Asked, Line, request, widest};

/// Events a second that a slow listener asks for.
const RATE: u32 = 8;
/// Messages of this many bytes work (§8.3).
const LONG: usize = 64 * 1024;
/// Nobody has to take so many.
const TOO_LONG: usize = 2 << 20;
/// Listeners that read nothing.
const SLOW: usize = 3;
/// Where a manifest is.
const MANIFEST: &str = ".well-known/aaep-manifest.json";

/// Subscriptions with different terms that hear the same.
pub(super) struct Several {
    pub(super) wide: Line,
    /// Sessions that began before it are not judged by it.
    since: usize,
    pub(super) slow: Line,
    pub(super) whole: Line,
    pub(super) without_tools: Line,
    pub(super) mute: Line,
}

impl Run<'_> {
    /// Every check of level 3.
    pub(super) async fn negotiated(&mut self) -> Result<(), String> {
        self.refused_requests().await;
        self.signed_only().await;
        let Some(lines) = self.several().await else { return Ok(()) };
        self.manifest(&lines.wide).await;
        self.delivery(&lines).await?;
        self.renegotiated(&lines).await?;
        let closed = self.closed().await?;
        self.among_subscriptions(&lines, closed.as_ref()).await?;
        self.resumed().await?;
        self.rough_company(&lines).await?;
        let known = self.first.ear.since(lines.since);
        let begun: Vec<&Value> = known
            .iter()
            .filter(|(event, _)| is(event, "session.started"))
            .map(|(event, _)| &event["session_id"])
            .collect();
        let heard = lines.wide.ear.since(0).into_iter().map(|(event, _)| event);
        let heard: Vec<Value> =
            heard.filter(|event| begun.contains(&&event["session_id"])).collect();
        seen::judge_order(&heard, self.report);
        Ok(())
    }

    /// Subscribes; what is said about it in the report is about the answer.
    async fn open(&mut self, capabilities: &Value) -> Option<Line> {
        match self.wire.subscribe(capabilities).await {
            Asked::Accepted(line) => {
                self.judge_terms(capabilities, &line.accepted);
                Some(*line)
            }
            Asked::Rejected(answer) => {
                let why = format!("It rejected terms: {}", answer["reason_message"]);
                self.report.skip("handshake", why);
                None
            }
            Asked::Refused(status) => {
                let why = format!("A good request was answered with {status} and no message.");
                self.report.fail("handshake", why);
                None
            }
            Asked::Silence(why) => {
                self.report.fail("handshake", format!("A good request: {why}."));
                None
            }
        }
    }

    fn judge_terms(&mut self, asked: &Value, accepted: &Value) {
        for violation in published::judge(accepted) {
            self.report.fail("handshake", violation.to_string());
        }
        self.report.pass("handshake");
        for more in beyond(asked, &accepted["honored_capabilities"]) {
            self.report.fail("honored", more);
        }
        self.report.pass("honored");
    }

    async fn several(&mut self) -> Option<Several> {
        let since = self.first.ear.len();
        let everything = json!({ "include": ["aaep:agent.*"] });
        let wide = self.open(&widest()).await?;
        let slow = self
            .open(&json!({
                "max_events_per_second": RATE, "coalesce_boundaries": ["sentence", "completion"],
                "supports_confirmation_reply": true, "supported_conformance_levels": [1, 2, 3],
                "event_filters": everything,
            }))
            .await?;
        let whole = self
            .open(&json!({
                "coalesce_boundaries": ["completion"], "supports_confirmation_reply": true,
                "supported_conformance_levels": [1, 2, 3], "event_filters": everything,
            }))
            .await?;
        let without_tools = self
            .open(&json!({
                "coalesce_boundaries": ["completion"],
                "event_filters": { "include": ["aaep:agent.*"],
                    "exclude": ["aaep:agent.tool.*", "aaep:agent.state.changed"] },
            }))
            .await?;
        let mute = self
            .open(&json!({ "event_filters": { "include": ["aaep:agent.session.completed"] } }))
            .await?;
        self.defaults().await;
        let mut ids: Vec<_> = [&wide, &slow, &whole, &without_tools, &mute]
            .into_iter()
            .map(|line| line.id.clone())
            .collect();
        ids.sort();
        ids.dedup();
        let own = ids.len() == 5 && ids.iter().all(Option::is_some);
        self.report.holds("handshake", own, "Two subscriptions have the same id, or none.");
        Some(Several { wide, since, slow, whole, without_tools, mute })
    }

    async fn defaults(&mut self) {
        match self.wire.subscribe(&json!({})).await {
            Asked::Accepted(line) => {
                for more in beyond(&json!({}), &line.accepted["honored_capabilities"]) {
                    self.report.fail("defaults", more);
                }
                self.report.pass("defaults");
                let _ = line.close().await;
            }
            _ => self.report.fail("defaults", "A request without capabilities was not accepted."),
        }
        let unknown = json!({ "x-vendor": { "shiny": true } });
        match self.wire.subscribe(&unknown).await {
            Asked::Accepted(line) => {
                self.report.pass("unknown-capabilities");
                let _ = line.close().await;
            }
            _ => {
                let why = "A request with an unknown capability was not accepted.";
                self.report.fail("unknown-capabilities", why);
            }
        }
    }

    async fn refused_requests(&mut self) {
        let mut no_rate = request(&json!({}), "1.0.0".into());
        no_rate["capabilities"]["max_events_per_second"] = json!(0);
        let mut no_object = request(&json!({}), "1.0.0".into());
        no_object["capabilities"] = json!(["everything"]);
        for wrong in [no_rate, no_object, json!({ "type": "subscription.request" })] {
            match self.wire.ask(&wrong).await {
                Asked::Rejected(answer) => self.judge_rejection(&answer),
                Asked::Refused(status) if (400..500).contains(&status) => {
                    self.report.pass("answered");
                }
                Asked::Refused(status) => {
                    self.report.fail("answered", format!("A wrong request got {status}."));
                }
                Asked::Accepted(_) => self.report.fail("answered", "A wrong request was accepted."),
                Asked::Silence(why) => {
                    self.report.fail("answered", format!("A wrong request: {why}."));
                }
            }
        }
        match self.wire.ask(&request(&widest(), "99.0.0".into())).await {
            Asked::Rejected(answer) => {
                self.judge_rejection(&answer);
                let told = answer["reason_code"] == "version_unsupported";
                let why = format!("Version 99.0.0 was rejected for {}.", answer["reason_code"]);
                self.report.holds("version", told, why);
            }
            Asked::Accepted(_) => self.report.fail("version", "Version 99.0.0 was accepted."),
            Asked::Refused(status) => {
                self.report.fail("version", format!("Version 99.0.0 got {status}, and no reason."));
            }
            Asked::Silence(why) => self.report.fail("version", format!("Version 99.0.0: {why}.")),
        }
    }

    fn judge_rejection(&mut self, answer: &Value) {
        for violation in published::judge(answer) {
            self.report.fail("answered", violation.to_string());
        }
        let words = answer["reason_message"].as_str().is_some_and(|text| !text.trim().is_empty());
        self.report.holds("answered", words, "A rejection says no reason in words.");
    }

    async fn signed_only(&mut self) {
        let mut capabilities = widest();
        capabilities["accept_signed_manifests_only"] = json!(true);
        match self.wire.subscribe(&capabilities).await {
            Asked::Accepted(line) => {
                let signed = line.accepted["signed_manifest"].as_str().unwrap_or_default();
                let agent = line.accepted["producer"]["agent_id"].as_str();
                let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
                let now = i64::try_from(now).unwrap_or(i64::MAX);
                let anybody = aaep_signature::Signers::Anybody;
                match aaep_signature::verify(signed, agent, &anybody, now) {
                    Ok(_) => self.report.pass("signed-only"),
                    Err(why) => self.report.fail(
                        "signed-only",
                        format!(
                            "Who accepts only signed manifests got one that is not good: {why}"
                        ),
                    ),
                }
                let _ = line.close().await;
            }
            Asked::Rejected(answer) => {
                let told = answer["reason_code"] == "manifest_signature_required";
                let why = format!("It was rejected for {}.", answer["reason_code"]);
                self.report.holds("signed-only", told, why);
            }
            Asked::Refused(status) => self.report.fail("signed-only", format!("It got {status}.")),
            Asked::Silence(why) => self.report.fail("signed-only", why),
        }
    }

    // Every way of finding it: a call of the transport, the well-known path, the address in the answer.
    async fn manifest(&mut self, line: &Line) {
        let found = match self.wire.manifest().await {
            Some(found) => Some(found),
            None => self.fetch(MANIFEST).await,
        };
        let found = match found {
            Some(found) => Some(found),
            None => {
                let named =
                    [&line.accepted["manifest_uri"], &line.accepted["producer"]["manifest_uri"]];
                let path = named.iter().find_map(|uri| uri.as_str()).and_then(path_of);
                match path {
                    Some(path) => self.fetch(path).await,
                    None => None,
                }
            }
        };
        let Some(bytes) = found else {
            return self.report.fail("manifest", "There is no manifest.");
        };
        if !matches!(Message::parse(&bytes), Ok(Message::Manifest(_))) {
            return self.report.fail("manifest", "The manifest is not valid.");
        }
        let manifest: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let same = manifest["agent_id"] == line.accepted["producer"]["agent_id"];
        self.report.holds("manifest", same, "The manifest is somebody else's.");
        let levels = manifest["conformance_levels_supported"].as_array();
        let claims = levels.is_some_and(|levels| levels.iter().any(|level| level == 3));
        self.report.holds("manifest", claims, "The manifest does not claim level 3.");
    }

    async fn fetch(&self, path: &str) -> Option<Vec<u8>> {
        let answer = self.wire.root().ok()?.get(path).await.ok()?;
        answer.status.is_success().then(|| answer.body.to_vec())
    }

    /// A lot is said, and everybody hears their part.
    async fn delivery(&mut self, lines: &Several) -> Result<(), String> {
        let mut sessions = Vec::new();
        for script in [Script::Flood, Script::Tool, Script::Progress, Script::Tool, Script::Stream]
        {
            if let Some((session, from)) = self.begin(script).await? {
                sessions.push((session, from));
            }
        }
        for (session, from) in &sessions {
            self.end_of(session, *from).await;
        }
        let ids: Vec<&str> = sessions.iter().map(|(session, _)| session.as_str()).collect();
        for line in [&lines.wide, &lines.slow, &lines.whole, &lines.without_tools] {
            for id in &ids {
                let ends = |event: &Value| event["session_id"] == *id && is_end(event);
                line.ear.wait(0, self.target.patience, ends).await;
            }
        }
        self.judge_rate(&lines.wide, &lines.slow);
        self.judge_text(&ids, lines);
        self.judge_filters(&ids, lines);
        Ok(())
    }

    fn judge_rate(&mut self, wide: &Line, slow: &Line) {
        let granted = &slow.accepted["honored_capabilities"]["max_events_per_second"];
        let rate = granted.as_f64().unwrap_or_else(|| f64::from(RATE)).min(f64::from(RATE));
        if !exceeds(&times(wide), rate) {
            let why = "Too little was said to see whether the rate is kept.";
            return self.report.skip("rate", why);
        }
        let kept = !exceeds(&times(slow), rate);
        let why = format!("More than {rate} events a second came, and one second's budget.");
        self.report.holds("rate", kept, why);
    }

    fn judge_text(&mut self, sessions: &[&str], lines: &Several) {
        for id in sessions {
            let full = text(&lines.wide.ear.of(id, 0));
            if full.is_empty() {
                continue;
            }
            for (line, at) in [(&lines.slow, "sentences"), (&lines.whole, "the end")] {
                let events = line.ear.of(id, 0);
                let same = text(&events) == full;
                let why = format!("Text that is merged to {at} is not what was written.");
                self.report.holds("merging", same, why);
                let pieces: Vec<&Value> =
                    events.iter().filter(|event| is(event, "output.streaming")).collect();
                let at_boundary = |piece: &&Value| {
                    let said = piece["chunk"].as_str().unwrap_or_default().trim_end();
                    piece["complete"] == true
                        || (at == "sentences"
                            && said.ends_with(['.', '!', '?', '…', ':', '\n', '”']))
                };
                let fine = pieces.iter().all(at_boundary);
                self.report.holds("boundaries", fine, format!("A piece does not end at {at}."));
            }
        }
    }

    fn judge_filters(&mut self, sessions: &[&str], lines: &Several) {
        let hidden = |event: &Value| {
            let name = event["type"].as_str().unwrap_or_default();
            name.starts_with("aaep:agent.tool.") || name == "aaep:agent.state.changed"
        };
        for id in sessions {
            let wide = lines.wide.ear.of(id, 0);
            let filtered = lines.without_tools.ear.of(id, 0);
            if !wide.iter().any(hidden) || !filtered.iter().any(is_end) {
                continue;
            }
            let leaks = filtered.iter().any(|event| hidden(event) && !is_critical(event));
            self.report.holds("filters", !leaks, "An event came that was filtered out.");
            let rest = |events: &[Value], kind: &str| events.iter().any(|event| is(event, kind));
            let lost = ["session.started", "session.completed"]
                .iter()
                .any(|kind| rest(&wide, kind) && !rest(&filtered, kind));
            self.report.holds("filters", !lost, "An event did not come that was not filtered out.");
            let more = lines.mute.ear.of(id, 0);
            let other = |event: &Value| !is(event, "session.completed") && !is_critical(event);
            let leaks = more.iter().any(other);
            self.report.holds("filters", !leaks, "An event came that was not included.");
        }
    }

    async fn renegotiated(&mut self, lines: &Several) -> Result<(), String> {
        let before = json!({
            "max_events_per_second": 50, "coalesce_boundaries": ["sentence", "completion"],
            "event_filters": { "include": ["aaep:agent.*"] },
        });
        let Some(line) = self.open(&before).await else { return Ok(()) };
        let change = json!({ "event_filters": {
            "include": ["aaep:agent.*"], "exclude": ["aaep:agent.tool.*"] } });
        let answer = match line.renegotiate(&change, self.target.patience).await {
            Ok(answer) => answer,
            Err(why) => {
                self.report.fail("renegotiation", why);
                return Ok(());
            }
        };
        let (old, new) = (&line.accepted["honored_capabilities"], &answer["honored_capabilities"]);
        let same_id = answer["subscription_id"] == line.subscription();
        self.report.holds("renegotiation", same_id, "New terms were not accepted for it.");
        for member in ["max_events_per_second", "coalesce_boundaries"] {
            let kept = old[member] == new[member];
            let why = format!("New terms changed {member}, which they did not name.");
            self.report.holds("renegotiation", kept, why);
        }
        let mut asked = before;
        asked["event_filters"] = change["event_filters"].clone();
        for more in beyond(&asked, new) {
            self.report.fail("renegotiation", more);
        }
        let Some((session, from)) = self.begin(Script::Tool).await? else { return Ok(()) };
        self.end_of(&session, from).await;
        let ends = |event: &Value| event["session_id"] == session && is_end(event);
        let heard = line.ear.wait(0, self.target.patience, ends).await.is_some();
        self.report.holds("renegotiation", heard, "After new terms, a session was not heard.");
        let tool = |event: &Value| is(event, "tool.invoked") || is(event, "tool.completed");
        if lines.wide.ear.of(&session, 0).iter().any(tool) {
            let leaks = line.ear.of(&session, 0).iter().any(tool);
            self.report.holds("renegotiation", !leaks, "The new terms do not hold.");
        }
        let _ = line.close().await;
        Ok(())
    }

    /// A subscription that is closed, and what is said then.
    async fn closed(&mut self) -> Result<Option<Line>, String> {
        let Some(line) = self.open(&widest()).await else { return Ok(None) };
        line.close().await.map_err(|why| format!("a close was not taken: {why}"))?;
        self.quiet().await;
        let from = line.ear.len();
        let Some((session, place)) = self.begin(Script::Tool).await? else { return Ok(None) };
        let alive = self.end_of(&session, place).await.is_some();
        self.quiet().await;
        let nothing = line.ear.len() == from;
        self.report.holds("closed", nothing, "Events came after the close.");
        self.report.holds("closed", alive, "Others heard nothing after somebody closed.");
        Ok(Some(line))
    }

    async fn resumed(&mut self) -> Result<(), String> {
        if !self.wire.is_http() {
            let why = "Only HTTP has a way of the protocol's own to come back.";
            self.report.skip("resume", why);
            return Ok(());
        }
        let Some(line) = self.open(&widest()).await else { return Ok(()) };
        let Some((session, from)) = self.begin(Script::Tool).await? else { return Ok(()) };
        self.end_of(&session, from).await;
        let ends = |event: &Value| event["session_id"] == session && is_end(event);
        line.ear.wait(0, self.target.patience, ends).await;
        let Some(last) = line.ear.last_frame() else {
            self.report.fail("resume", "Events of the stream have no ids to come back with.");
            return Ok(());
        };
        let line = line.deaf();
        let Some((session, from)) = self.begin(Script::Tool).await? else { return Ok(()) };
        self.end_of(&session, from).await;
        let back = match self.wire.come_back(&line, &last).await {
            Ok(back) => back,
            Err(why) => {
                self.report.fail("resume", format!("One cannot come back: {why}"));
                return Ok(());
            }
        };
        let tells = |event: &Value| event["session_id"] == session || is(event, "state.changed");
        let told = back.wait(0, Duration::from_secs(2), tells).await.is_some();
        let why = "Who came back heard neither what was missed nor how things stand.";
        self.report.holds("resume", told, why);
        Ok(())
    }

    /// Listeners that vanish, read nothing, send too much, and speak of what nobody has.
    async fn rough_company(&mut self, lines: &Several) -> Result<(), String> {
        for _ in 0..SLOW {
            drop(self.wire.listen().await);
            drop(self.wire.subscribe(&widest()).await);
        }
        self.goes_on("disconnect", Script::Tool).await?;

        let held = self.slow_readers().await;
        if held.is_empty() {
            self.report.skip("independent", "No connection could be made that reads nothing.");
        } else {
            for _ in 0..SLOW {
                self.goes_on("independent", Script::Flood).await?;
            }
        }
        drop(held);

        let mut long = request(&widest(), "1.0.0".into());
        long["correlation_id"] = json!("");
        long["correlation_id"] = json!("x".repeat(LONG - long.to_string().len()));
        match self.wire.ask(&long).await {
            Asked::Accepted(line) => {
                self.report.pass("sizes");
                let _ = line.close().await;
            }
            _ => self.report.fail("sizes", "A request of 64 KiB was not accepted."),
        }
        if let Ok(line) = self.wire.listen().await {
            // Whether it is refused, ignored, or costs the connection, is its own affair.
            let _ = line.say_text(format!("{{\"text\":\"{}\"}}", "x".repeat(TOO_LONG))).await;
        }
        self.goes_on("sizes", Script::Tool).await?;

        for kind in ["subscription.renegotiate", "subscription.close"] {
            let message = json!({ "type": kind, "capabilities": {},
                "subscription_id": "sub_0123456789abcdef0123456789abcdef" });
            lines.wide.say(&message).await.map_err(|why| format!("{kind}: {why}"))?;
        }
        self.goes_on("unknown-subscription", Script::Tool).await?;
        let over = lines.wide.ear.is_over();
        let why = "A message about an unknown subscription ended another one.";
        self.report.holds("unknown-subscription", !over, why);
        Ok(())
    }

    /// Whether a session still comes to its end.
    async fn goes_on(&mut self, check: &'static str, script: Script) -> Result<(), String> {
        let ended = match self.begin(script).await? {
            Some((session, from)) => self.end_of(&session, from).await.is_some(),
            None => false,
        };
        self.report.holds(check, ended, "Others did not hear a session to its end.");
        Ok(())
    }

    /// Connections that ask for everything and read nothing.
    async fn slow_readers(&self) -> Vec<Held> {
        let mut held = Vec::new();
        for _ in 0..SLOW {
            held.extend(self.slow_reader().await);
        }
        held
    }

    async fn slow_reader(&self) -> Option<Held> {
        if let Some((host, path)) = self.wire.plain_http() {
            let address = lookup_host(&host).await.ok()?.next()?;
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
            let socket = socket.ok()?;
            socket.set_recv_buffer_size(4096).ok()?;
            let mut stream = socket.connect(address).await.ok()?;
            let token = self
                .target
                .token
                .as_deref()
                .map_or(String::new(), |token| format!("authorization: Bearer {token}\r\n"));
            let head = format!(
                "GET {}/events HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\n{token}\r\n",
                path.trim_end_matches('/')
            );
            stream.write_all(head.as_bytes()).await.ok()?;
            return Some(Held::Socket(stream));
        }
        self.wire.idle().await.map(Held::Other)
    }
}

/// A connection that is held and not read.
enum Held {
    #[expect(dead_code, reason = "it is held")]
    Socket(TcpStream),
    #[expect(dead_code, reason = "it is held")]
    Other(Box<dyn std::any::Any + Send>),
}

/// When events came that count against the rate.
fn times(line: &Line) -> Vec<Instant> {
    let events = line.ear.since(0);
    let counted =
        events.iter().filter(|(event, _)| event["event_id"].is_string() && !is_critical(event));
    counted.map(|(_, at)| *at).collect()
}

/// Whether in some stretch of time more came than the rate and one second's budget allow. A quarter of
/// a second is forgiven: what was sent in time may arrive bunched.
fn exceeds(times: &[Instant], rate: f64) -> bool {
    (0..times.len()).any(|first| {
        (first..times.len()).any(|last| {
            let seconds = (times[last] - times[first]).as_secs_f64() + 0.25;
            let allowed = rate * seconds + rate;
            let count = u32::try_from(last - first + 1).unwrap_or(u32::MAX);
            f64::from(count) > allowed
        })
    })
}

/// The text of a session's outputs, put together.
fn text(events: &[Value]) -> String {
    let pieces = events.iter().filter(|event| is(event, "output.streaming"));
    pieces.filter_map(|event| event["chunk"].as_str()).collect()
}

fn path_of(uri: &str) -> Option<&str> {
    let (_, rest) = uri.split_once("://")?;
    rest.split_once('/').map(|(_, path)| path)
}
