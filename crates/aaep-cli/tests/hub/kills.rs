//! A hub that is killed again and again under load. Somebody outside keeps account of everything that
//! was acknowledged, and compares.
//!
//! `AAEP_KILLS=10000 cargo test --release -p aaep-cli --test hub kills -- --nocapture` does it for
//! longer, and says how far it is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aaep_transport::client::EventStream;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::support::*;

/// How often the hub is killed, unless the environment says otherwise.
const KILLS: usize = 200;

/// How often on one journal. A start reads all of it, so it would take ever longer.
const ON_ONE_JOURNAL: usize = 1000;

/// Agents that work at the same time.
const AGENTS: usize = 3;

/// Every so many requests one is never answered, and must end by its deadline.
const UNANSWERED: usize = 25;

/// How long such a request waits, in seconds.
const SHORT: u64 = 5;

/// What somebody outside was told of one request.
#[derive(Clone, Debug)]
struct Account {
    /// What was sent to ask it, and under which key.
    sent: Value,
    key: String,
    /// The whole answer when it was asked.
    asked: Value,
    /// The reply that was acknowledged.
    replied: Option<&'static str>,
    /// Under which call it ran.
    call: Option<String>,
    /// It was compared after it came to its end.
    settled: bool,
}

impl Account {
    fn is_unanswered(&self) -> bool {
        self.sent["timeout_seconds"] == SHORT
    }
}

/// Everything that was acknowledged.
#[derive(Default)]
struct Book {
    /// By request.
    accounts: BTreeMap<String, Account>,
    /// What was asked, by key, and not acknowledged: it is asked again.
    begun: BTreeMap<String, Value>,
    /// Replies that were acknowledged, also to requests whose agent has not been told yet.
    replies: BTreeMap<String, &'static str>,
    count: usize,
    /// How often something was acknowledged.
    entries: usize,
    written: Arc<Notify>,
}

type Shared = Arc<Mutex<Book>>;

impl Book {
    fn wrote(&mut self) {
        self.entries += 1;
        self.written.notify_one();
    }

    /// The next thing to ask, in this session.
    fn next(&mut self, session: &str) -> (String, Value) {
        self.count += 1;
        let mut sent = deletion(&format!("{}.txt", self.count));
        if self.count.is_multiple_of(UNANSWERED) {
            sent["timeout_seconds"] = json!(SHORT);
        }
        let key = format!("{session}:{}", self.count);
        self.begun.insert(key.clone(), sent.clone());
        (key, sent)
    }

    fn asked(&mut self, key: &str, asked: Value) -> String {
        self.wrote();
        let request = text(&asked, "request_id").to_owned();
        let sent = self.begun.remove(key).unwrap();
        let (key, replied) = (key.to_owned(), self.replies.get(&request).copied());
        let account = Account { sent, key, asked, replied, call: None, settled: false };
        assert!(self.accounts.insert(request.clone(), account).is_none(), "one key, one request");
        request
    }

    fn replied(&mut self, request: &str, decided: &'static str) {
        self.wrote();
        self.replies.insert(request.to_owned(), decided);
        if let Some(account) = self.accounts.get_mut(request) {
            account.replied = Some(decided);
        }
    }

    fn ran(&mut self, request: &str, call: &str) {
        self.wrote();
        let known = &mut self.accounts.get_mut(request).unwrap().call;
        assert_eq!(known.get_or_insert_with(|| call.to_owned()), call, "{request} ran twice");
    }
}

fn setup() -> Setup {
    Setup::durable()
        .set("AAEP_LOG", "warn")
        .limit("prompts_per_window", 10_000_000)
        .limit("replies_per_second", 10_000_000)
        .limit("pending_per_session", 100_000)
        .limit("open_tools", 100_000)
}

/// The body of an answer that is what it should be; `None` if the hub is gone, or about to go.
fn accepted(answer: Result<FullResponse, impl Sized>, status: u16) -> Option<Value> {
    let answer = answer.ok().filter(|answer| answer.status.as_u16() != 503)?;
    assert_eq!(answer.status.as_u16(), status, "{answer:?}");
    Some(body(&answer))
}

async fn post(client: &HttpClient, path: &str, key: &str, sent: &Value) -> Option<FullResponse> {
    let mut headers = http::HeaderMap::new();
    headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    headers.insert("idempotency-key", http::HeaderValue::from_str(key).unwrap());
    client.request(http::Method::POST, path, headers, sent.to_string()).await.ok()
}

async fn ask(client: &HttpClient, key: &str, sent: &Value, book: &Shared) -> Option<String> {
    let session = key.split(':').next().unwrap();
    let path = format!("agent/sessions/{session}/requests");
    let asked = accepted(post(client, &path, key, sent).await.ok_or(()), 201)?;
    Some(book.lock().unwrap().asked(key, asked))
}

/// Invokes with a key of its own; the same key always gives the same call.
async fn run_it(client: &HttpClient, request: &str, book: &Shared) -> Option<()> {
    let path = format!("agent/requests/{request}/invoke");
    let answer = post(client, &path, &format!("run:{request}"), &json!({})).await;
    let granted = accepted(answer.ok_or(()), 200)?;
    book.lock().unwrap().ran(request, text(&granted, "tool_call_id"));
    Some(())
}

/// An agent at work: asks, waits, runs what was accepted; until the hub is gone.
async fn work(client: HttpClient, session: String, book: Shared) -> Option<()> {
    loop {
        let (key, sent) = book.lock().unwrap().next(&session);
        let request = ask(&client, &key, &sent, &book).await?;
        if sent["timeout_seconds"] == SHORT {
            continue;
        }
        let view = client.get(&format!("agent/requests/{request}?wait=30")).await;
        if accepted(view, 200)?["status"] == "accepted" {
            run_it(&client, &request, &book).await?;
        }
    }
}

/// A stream that answers, and its subscription.
async fn hear(client: &HttpClient) -> (EventStream, String) {
    let wanted = request(json!({ "supports_confirmation_reply": true }));
    let accepted = client.post("subscriptions", wanted).await.unwrap();
    let id = text(&body(&accepted), "subscription_id").to_owned();
    (client.events(&format!("events?subscription_id={id}"), None).await.unwrap(), id)
}

/// A person who answers everything at once, yes or no by the number in its name.
async fn answer_all(client: HttpClient, hears: (EventStream, String), book: Shared) -> Option<()> {
    let (mut stream, subscription) = hears;
    loop {
        let frame = stream.next().await.ok()??;
        let message: Value = serde_json::from_str(&frame.data).unwrap();
        let asks = message["type"] == "aaep:agent.awaiting.confirmation";
        if !asks || message["timeout_seconds"] == SHORT {
            continue;
        }
        let event = text(&message, "event_id");
        let odd = event.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']);
        let decided = if odd { "reject" } else { "accept" };
        let reply = decision(text(&message, "reply_token"), &subscription, decided);
        let answer = client.post("replies", reply).await.ok()?;
        if answer.status.as_u16() == 204 {
            book.lock().unwrap().replied(&event.replace("evt_", "req_"), decided);
        }
    }
}

/// What was acknowledged before is so now; what was not is asked again, under its key.
async fn check(client: &HttpClient, book: &Shared) {
    let begun: Vec<_> = book.lock().unwrap().begun.clone().into_iter().collect();
    for (key, sent) in begun {
        ask(client, &key, &sent, book).await.expect("the hub is there");
    }
    let open: Vec<_> = {
        let book = book.lock().unwrap();
        let open = book.accounts.iter().filter(|(_, account)| !account.settled);
        open.map(|(request, account)| (request.clone(), account.clone())).collect()
    };
    for (request, account) in open {
        let view = client.get(&format!("agent/requests/{request}")).await;
        let view = accepted(view, 200).expect("the hub is there");
        for same in ["deadline", "digest", "event_id", "session_id"] {
            assert_eq!(view[same], account.asked[same], "{same} of {request}");
        }
        let status = text(&view, "status");
        let fits = match (account.replied, &account.call) {
            (_, Some(_)) => status == "invoked",
            (Some("accept"), None) => matches!(status, "accepted" | "invoked"),
            (Some(_), None) => status == "rejected",
            (None, None) if account.is_unanswered() => matches!(status, "pending" | "timed_out"),
            (None, None) => matches!(status, "pending" | "accepted" | "rejected" | "invoked"),
        };
        assert!(fits, "{request} is {status}, and was told: {account:?}");
        let session = text(&account.asked, "session_id");
        let path = format!("agent/sessions/{session}/requests");
        let again = post(client, &path, &account.key, &account.sent).await;
        assert_eq!(accepted(again.ok_or(()), 201).unwrap(), account.asked);
        if matches!(status, "accepted" | "invoked") {
            run_it(client, &request, book).await.expect("the hub is there");
            let twice = client.post(&format!("agent/requests/{request}/invoke"), "{}").await;
            assert_eq!(twice.unwrap().status.as_u16(), 409, "{request}");
        }
        if status != "pending" {
            book.lock().unwrap().accounts.get_mut(&request).unwrap().settled = true;
        }
    }
}

// covers: I1, I2, I3, I10, I11, I25
#[test]
fn whatever_was_acknowledged_survives_every_kill() {
    let kills = std::env::var("AAEP_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for first in (0..kills).step_by(ON_ONE_JOURNAL) {
        let end = kills.min(first + ON_ONE_JOURNAL);
        let requests = runtime.block_on(one_journal(first, end));
        eprintln!("{end} of {kills} kills; {requests} requests on this journal");
    }
}

/// Kills the hub again and again; how many requests there were.
async fn one_journal(first: usize, end: usize) -> usize {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let book = Shared::default();
    let mut sessions: Vec<String> = Vec::new();
    let mut person: Option<Person> = None;
    for round in first.. {
        let hub = Hub::start_in(setup(), directory.clone());
        let here = person.as_ref().map_or_else(|| hub.person(), |person| person.at(&hub));
        person = Some(here.clone());
        check(&here.client("agent"), &book).await;
        if round == end {
            finish(&directory, &here.agent(), &book, end - first).await;
            break;
        }
        while sessions.len() < AGENTS {
            sessions.push(here.agent().open().await);
        }
        load(&here, &sessions, &book, round).await;
    }
    book.lock().unwrap().accounts.len()
}

/// Waits until so much more was acknowledged.
async fn more(book: &Shared, entries: usize) {
    let (until, written) = {
        let book = book.lock().unwrap();
        (book.entries + entries, book.written.clone())
    };
    while book.lock().unwrap().entries < until {
        written.notified().await;
    }
}

/// Works for a moment that is a little different each time, and is cut off in the middle.
async fn load(person: &Person, sessions: &[String], book: &Shared, round: usize) {
    let client = person.client("reader");
    let hears = hear(&client).await;
    let listener = tokio::spawn(answer_all(client, hears, book.clone()));
    let work = |session: &String| work(person.client("agent"), session.clone(), book.clone());
    let workers: Vec<_> = sessions.iter().map(|session| tokio::spawn(work(session))).collect();
    more(book, round % 17).await;
    // Not to wait for something, but to cut it off at another place each time.
    tokio::time::sleep(Duration::from_micros(round as u64 * 791 % 5_000)).await;
    person.hub.kill();
    for worker in workers {
        worker.await.unwrap();
    }
    listener.await.unwrap();
}

/// Everything has an end, and the record tells it once.
async fn finish(directory: &TempDir, agent: &Agent, book: &Shared, kills: usize) {
    let all = book.lock().unwrap().accounts.clone();
    assert!(all.len() >= kills, "only {} requests", all.len());
    for (request, account) in all.iter().filter(|(_, account)| account.is_unanswered()) {
        assert_eq!(agent.outcome(&account.asked).await, "timed_out", "{request}");
    }
    let aaep = |arguments: &[&str]| {
        let ended = std::process::Command::new(env!("CARGO_BIN_EXE_aaep"))
            .args(arguments)
            .env_clear()
            .env("HOME", directory.path())
            .output()
            .unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        String::from_utf8(ended.stdout).unwrap()
    };
    aaep(&["audit", "verify"]);
    let mut resolved: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut invoked: BTreeMap<String, usize> = BTreeMap::new();
    for line in aaep(&["audit", "export"]).lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let request = record["request"].as_str().unwrap_or_default().to_owned();
        match record["kind"].as_str().unwrap() {
            "resolved" => resolved.entry(request).or_default().push(record),
            "invoked" => *invoked.entry(request).or_default() += 1,
            _ => {}
        }
    }
    assert!(invoked.values().all(|times| *times == 1), "something ran twice: {invoked:?}");
    assert!(resolved.values().all(|times| times.len() == 1), "something was decided twice");
    for (request, account) in &all {
        if let Some(replied) = account.replied {
            let outcome = if replied == "accept" { "accepted" } else { "rejected" };
            assert_eq!(resolved[request][0]["outcome"], outcome, "{request}");
        }
        if account.is_unanswered() {
            // Not before its time, whatever happened in between (I8).
            let deadline = text(&account.asked, "deadline");
            let decided = text(&resolved[request][0], "at");
            assert!(decided >= deadline, "{request}: {decided} before {deadline}");
        }
        assert_eq!(account.call.is_some(), invoked.contains_key(request), "{request}");
    }
}
