//! `aaep demo --say`: says something to the demo, tells what is heard, and takes answers from the
//! terminal, a line each.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aaep_subscriber::words::safe;
use aaep_transport::client::{EventStream, HttpClient, Options};
use aaep_types::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::arguments::DemoOptions;
use crate::discovery;
use crate::exit::{self, Exit};
use crate::lines::Plain;

/// How long an answer of the agent is waited for before anything is heard.
const BEGINS: Duration = Duration::from_secs(10);

/// Lines from the terminal that wait to be read.
const WAITING_LINES: usize = 16;

/// The longest line that is taken as an answer, in bytes.
const LINE_BYTES: usize = 4096;

pub(super) fn say(text: &str, options: &DemoOptions, out: &mut impl Write) -> io::Result<Exit> {
    let url = place(options);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let said = runtime.block_on(async {
        let heard = match Talk::begin(&url, options.trust_loopback, text).await {
            Ok(mut talk) => talk.go_on(out).await,
            Err(why) => Ok(Err(why)),
        };
        heard.map(|heard| match heard {
            Ok(()) => Exit::Good,
            Err(why) => {
                let why = safe(&why);
                exit::say(&format!(
                    "{} Is the demo running at {url}? `aaep demo` starts it.",
                    why.text
                ));
                Exit::Unable
            }
        })
    });
    // A thread may still wait for a line from the terminal.
    runtime.shutdown_background();
    said
}

/// The demo that was named; else the one on a socket of this user; else its usual address.
fn place(options: &DemoOptions) -> String {
    let address = |address: &dyn std::fmt::Display| format!("http://{address}/aaep/v1");
    match (&options.hub, options.listen.first()) {
        (Some(url), _) => url.clone(),
        (None, Some(listens)) => address(listens),
        (None, None) => discovery::demo_socket()
            .unwrap_or_else(|| address(&format!("127.0.0.1:{}", aaep_hub::config::DEFAULT_PORT))),
    }
}

/// A question that waits for an answer.
struct Question {
    session: String,
    token: String,
    consent: bool,
}

struct Talk {
    client: HttpClient,
    events: EventStream,
    subscription: String,
    /// When it was said: what began before is not about it.
    since: String,
    began: bool,
    /// Sessions that are open.
    open: BTreeSet<String>,
    questions: Vec<Question>,
}

fn told(error: impl std::fmt::Display) -> String {
    format!("The demo cannot be reached: {error}.")
}

fn now() -> String {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let stamp = i64::try_from(millis).ok().and_then(Timestamp::from_millis);
    stamp.map(|stamp| stamp.to_string()).unwrap_or_default()
}

impl Talk {
    /// Subscribes, then speaks.
    async fn begin(url: &str, trust_loopback: bool, text: &str) -> Result<Self, String> {
        let options = Options { trust_loopback, ..Options::default() };
        let client = discovery::client(url, options).map_err(told)?;
        let request = json!({
            "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "aaep-demo-say",
            "capabilities": {
                "supports_confirmation_reply": true, "supports_clarification_reply": true,
                "coalesce_boundaries": ["sentence", "completion"],
            },
        });
        let accepted = client.post("subscriptions", request.to_string()).await.map_err(told)?;
        let accepted: Value = serde_json::from_slice(&accepted.body).map_err(told)?;
        let Some(subscription) = accepted["subscription_id"].as_str() else {
            return Err("The demo does not let us listen.".into());
        };
        let path = format!("events?subscription_id={subscription}");
        let events = client.events(&path, None).await.map_err(told)?;
        let since = now();
        let input = json!({ "kind": "user_input", "text": text }).to_string();
        let taken = client.post("messages", input).await.map_err(told)?;
        if !taken.status.is_success() {
            let refused: Value = serde_json::from_slice(&taken.body).unwrap_or_default();
            return Err(refused["text"]
                .as_str()
                .unwrap_or("The demo does not take it.")
                .to_owned());
        }
        let subscription = subscription.to_owned();
        let (began, open, questions) = (false, BTreeSet::new(), Vec::new());
        Ok(Self { client, events, subscription, since, began, open, questions })
    }

    /// Tells what is heard and takes answers, until everything that began has ended.
    async fn go_on(&mut self, out: &mut impl Write) -> io::Result<Result<(), String>> {
        let mut lines = lines();
        let mut more_lines = true;
        while !(self.began && self.open.is_empty()) {
            let asked = !self.questions.is_empty();
            tokio::select! {
                event = self.events.next() => match event {
                    Ok(Some(frame)) => {
                        let event = serde_json::from_str(&frame.data).unwrap_or_default();
                        self.hear(&event, out)?;
                    }
                    Ok(None) => return Ok(Err("The demo has ended.".into())),
                    Err(error) => return Ok(Err(told(error))),
                },
                line = lines.recv(), if asked && more_lines => match line {
                    Some(line) => if let Err(why) = self.answer(&line, out).await? {
                        return Ok(Err(why));
                    },
                    None => more_lines = false,
                },
                () = tokio::time::sleep(BEGINS), if !self.began => {
                    return Ok(Err("The agent does not answer.".into()));
                }
            }
        }
        Ok(Ok(()))
    }

    fn hear(&mut self, event: &Value, out: &mut impl Write) -> io::Result<()> {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let session = text("session_id").to_owned();
        let kind = text("type").strip_prefix("aaep:agent.").unwrap_or_default();
        if kind == "session.started" && text("timestamp") >= self.since.as_str() {
            self.began = true;
            self.open.insert(session.clone());
        }
        if !self.open.contains(&session) {
            return Ok(());
        }
        match kind {
            "output.streaming" => say_line(out, text("chunk"))?,
            "awaiting.confirmation" | "awaiting.clarification" => self.ask(event, kind, out)?,
            _ => say_line(out, text("summary_normal"))?,
        }
        match kind {
            "state.changed" if text("from_state") == "awaiting_input" => {
                self.questions.retain(|question| question.session != session);
            }
            "session.completed" | "session.errored" | "session.cancelled" => {
                self.questions.retain(|question| question.session != session);
                self.open.remove(&session);
            }
            _ => {}
        }
        Ok(())
    }

    fn ask(&mut self, event: &Value, kind: &str, out: &mut impl Write) -> io::Result<()> {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let consent = kind == "awaiting.confirmation";
        let undone = if event["irreversible"] == true { " This cannot be undone." } else { "" };
        match consent {
            true => say_line(
                out,
                &format!("Question: {}{undone} {}", text("action"), text("consequence")),
            )?,
            false => say_line(out, &format!("Question: {}", text("question")))?,
        }
        let how = if consent {
            "Type yes or no, and press Enter."
        } else {
            "Type your answer, and press Enter."
        };
        let silence = match text("default_decision") {
            "accept" => "it is done",
            _ => "nothing is done",
        };
        say_line(
            out,
            &format!("Without an answer in {} seconds, {silence}. {how}", event["timeout_seconds"]),
        )?;
        let (session, token) = (text("session_id").to_owned(), text("reply_token").to_owned());
        self.questions.push(Question { session, token, consent });
        Ok(())
    }

    /// The first question gets the line as its answer.
    async fn answer(&mut self, line: &str, out: &mut impl Write) -> io::Result<Result<(), String>> {
        let Some(question) = self.questions.first() else { return Ok(Ok(())) };
        let mut reply = json!({
            "reply_token": question.token, "subscription_id": self.subscription, "timestamp": now(),
        });
        if question.consent {
            let decision = match line.to_lowercase().as_str() {
                "yes" | "y" => "accept",
                "no" | "n" => "reject",
                _ => {
                    say_line(out, "Type yes or no, and press Enter.")?;
                    return Ok(Ok(()));
                }
            };
            reply["type"] = "confirmation.reply".into();
            reply["decision"] = decision.into();
        } else {
            reply["type"] = "clarification.reply".into();
            reply["response"] = line.into();
        }
        self.questions.remove(0);
        Ok(self.client.post("replies", reply.to_string()).await.map(drop).map_err(told))
    }
}

/// One line, whatever is in it.
fn say_line(out: &mut impl Write, text: &str) -> io::Result<()> {
    let text = text.trim();
    if !text.is_empty() {
        writeln!(out, "{}", Plain(text))?;
    }
    out.flush()
}

/// Lines from standard input, read by a thread of its own: nobody can stop waiting for one.
fn lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(WAITING_LINES);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let line = line.trim();
            let line = &line[..line.floor_char_boundary(LINE_BYTES)];
            if !line.is_empty() && sender.blocking_send(line.to_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}
