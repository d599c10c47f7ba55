//! A hub that is killed again and again under load. Somebody outside keeps account of everything that
//! was acknowledged, and compares.
//!
//! `AAEP_KILLS=10000 cargo test --release -p aaep-cli --test hub kills` does it for longer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::*;

/// How often the hub is killed, unless the environment says otherwise.
const KILLS: usize = 200;

/// Agents that work at the same time.
const AGENTS: usize = 3;

/// Every so many requests one is never answered, and must end by its deadline.
const UNANSWERED: usize = 25;

/// How long such a request waits, in seconds.
const SHORT: u64 = 5;

/// What somebody outside was told of one request.
#[derive(Clone, Debug, Default)]
struct Account {
    /// The whole answer when it was asked.
    asked: Value,
    /// The body that was sent to ask it.
    sent: Value,
    key: String,
    agent: usize,
    /// The reply that was acknowledged.
    replied: Option<&'static str>,
    /// Under which call it ran.
    call: Option<String>,
    /// Nobody answers it.
    unanswered: bool,
}

/// Everything that was acknowledged, by request.
#[derive(Default)]
struct Book {
    accounts: Mutex<BTreeMap<String, Account>>,
    /// Calls that were begun and not acknowledged: what was sent, by key.
    asked: Mutex<usize>,
}

impl Book {
    fn change(&self, request: &str, change: impl FnOnce(&mut Account)) {
        change(self.accounts.lock().unwrap().entry(request.to_owned()).or_default());
    }

    fn all(&self) -> BTreeMap<String, Account> {
        self.accounts.lock().unwrap().clone()
    }

    fn next(&self) -> usize {
        let mut asked = self.asked.lock().unwrap();
        *asked += 1;
        *asked
    }
}

fn setup() -> Setup {
    Setup::durable()
        .set("AAEP_LOG", "warn")
        .limit("prompts_per_window", 10_000_000)
        .limit("replies_per_second", 10_000_000)
        .limit("pending_per_session", 10_000)
}

/// An agent at work: asks, waits, runs what was accepted; until the hub is gone.
async fn work(agent: Agent, number: usize, session: String, book: Arc<Book>) -> Option<()> {
    loop {
        let count = book.next();
        let unanswered = count.is_multiple_of(UNANSWERED);
        let mut sent = deletion(&format!("{count}.txt"));
        if unanswered {
            sent["timeout_seconds"] = json!(SHORT);
        }
        let key = format!("ask-{count}");
        let path = format!("agent/sessions/{session}/requests");
        let answer = try_post(&agent, &path, &key, &sent).await?;
        let asked = accepted(&answer, 201)?;
        let request = text(&asked, "request_id").to_owned();
        book.change(&request, |account| {
            account.asked = asked.clone();
            account.sent = sent;
            account.key = key;
            account.agent = number;
            account.unanswered = unanswered;
        });
        if unanswered {
            continue;
        }
        let view = agent.client.get(&format!("agent/requests/{request}?wait=30")).await.ok()?;
        if accepted(&view, 200)?["status"] == "accepted" {
            run_it(&agent, &request, &book).await?;
        }
    }
}

async fn try_post(agent: &Agent, path: &str, key: &str, sent: &Value) -> Option<Answer> {
    let mut headers = http::HeaderMap::new();
    headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    headers.insert("idempotency-key", http::HeaderValue::from_str(key).ok()?);
    agent.client.request(http::Method::POST, path, headers, sent.to_string()).await.ok()
}

/// The body of an answer that is what it should be; the end of work if the hub is about to go.
fn accepted(answer: &Answer, status: u16) -> Option<Value> {
    if answer.status.as_u16() == 503 {
        return None;
    }
    assert_eq!(answer.status.as_u16(), status, "{answer:?}");
    Some(body(answer))
}

/// Invokes with a key of its own; the same key always gives the same call.
async fn run_it(agent: &Agent, request: &str, book: &Book) -> Option<()> {
    let path = format!("agent/requests/{request}/invoke");
    let answer = try_post(agent, &path, &format!("run-{request}"), &json!({})).await?;
    let call = text(&accepted(&answer, 200)?, "tool_call_id").to_owned();
    book.change(request, |account| match &account.call {
        Some(before) => assert_eq!(*before, call, "it ran twice"),
        None => account.call = Some(call),
    });
    Some(())
}

/// A person who answers everything at once, yes and no in turn.
async fn answer_all(mut ear: Ear, client: HttpClient, book: Arc<Book>) -> Option<()> {
    loop {
        let message = ear.try_next().await?;
        if message["type"] != "aaep:agent.awaiting.confirmation"
            || message["timeout_seconds"] == SHORT
        {
            continue;
        }
        let event = text(&message, "event_id");
        let request = event.replace("evt_", "req_");
        let decided = if event.ends_with(['0', '2', '4', '6', '8', 'a', 'c', 'e']) {
            "accept"
        } else {
            "reject"
        };
        let reply = decision(text(&message, "reply_token"), &ear.subscription, decided);
        let answer = client.post("replies", reply).await.ok()?;
        if answer.status.as_u16() == 204 {
            // A reply that came a second time, after a restart, says the same.
            book.change(&request, |account| account.replied = Some(decided));
        }
    }
}

/// What was acknowledged before is so now.
async fn check(agents: &[Agent], before: &BTreeMap<String, Account>, book: &Book) {
    for (request, account) in before {
        if account.asked.is_null() {
            // Heard and answered, but the agent was not told that it was asked: it asks again.
            continue;
        }
        let agent = &agents[account.agent];
        let view = agent.look(&account.asked, 0).await;
        for same in ["deadline", "digest", "event_id", "session_id"] {
            assert_eq!(view[same], account.asked[same], "{same} of {request}");
        }
        let status = text(&view, "status");
        let fits = match (account.replied, &account.call) {
            (_, Some(_)) => status == "invoked",
            (Some("accept"), None) => matches!(status, "accepted" | "invoked"),
            (Some(_), None) => status == "rejected",
            (None, None) if account.unanswered => matches!(status, "pending" | "timed_out"),
            (None, None) => matches!(status, "pending" | "accepted" | "rejected" | "invoked"),
        };
        assert!(fits, "{request} is {status}, and was told: {account:?}");
        // Asked again with its key, it is the same request.
        let session = text(&account.asked, "session_id");
        let path = format!("agent/sessions/{session}/requests");
        let again = agent.post_once(&path, &account.key, &account.sent).await;
        assert_eq!(body(&again)["request_id"], **request);
        if matches!(status, "accepted" | "invoked") {
            run_it(agent, request, book).await.expect("the hub is there");
            let twice = agent.invoke(&account.asked, "{}").await;
            assert_eq!(twice.status.as_u16(), 409, "{twice:?}");
        }
    }
}

// covers: I1, I2, I3, I10, I11, I25
#[test]
fn whatever_was_acknowledged_survives_every_kill() {
    let kills = std::env::var("AAEP_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let book = Arc::new(Book::default());
        let mut sessions: Vec<String> = Vec::new();
        let mut person: Option<Person> = None;
        let mut last = BTreeMap::new();
        for round in 0..=kills {
            let hub = Hub::start_in(setup(), directory.clone());
            let here = person.as_ref().map_or_else(|| hub.person(), |person| person.at(&hub));
            person = Some(here.clone());
            let agents: Vec<Agent> = (0..AGENTS).map(|_| here.agent()).collect();
            check(&agents, &last, &book).await;
            if round == kills {
                finish(&directory, &agents, &book).await;
                break;
            }
            if sessions.is_empty() {
                for agent in &agents {
                    sessions.push(agent.open().await);
                }
            }
            let known: Vec<String> = book.all().into_keys().collect();
            load(&hub, &here, agents, &sessions, &book, round).await;
            // What happened in this round is looked at in the next.
            last = book.all();
            last.retain(|request, account| account.call.is_none() || !known.contains(request));
            last.retain(|_, account| account.replied != Some("reject") || round % 10 == 0);
        }
    });
}

/// Works for a moment that is a little different each time, and is cut off in the middle.
async fn load(
    hub: &Arc<Hub>,
    person: &Person,
    agents: Vec<Agent>,
    sessions: &[String],
    book: &Arc<Book>,
    round: usize,
) {
    let ear = person.reader().await;
    let listener = tokio::spawn(quietly(answer_all(ear, person.client("reader"), book.clone())));
    let workers: Vec<_> = agents
        .into_iter()
        .zip(sessions)
        .enumerate()
        .map(|(number, (agent, session))| {
            tokio::spawn(work(agent, number, session.clone(), book.clone()))
        })
        .collect();
    // Not to wait for something, but to cut it off at another place each time.
    tokio::time::sleep(Duration::from_micros(20_000 + (round as u64 * 7_919) % 40_000)).await;
    hub.kill();
    for worker in workers {
        worker.await.unwrap();
    }
    listener.await.unwrap();
}

/// A stream that is cut off in the middle is no reason to fail.
async fn quietly(listener: impl Future<Output = Option<()>>) {
    listener.await;
}

/// Everything has an end, and the record tells it once.
async fn finish(directory: &TempDir, agents: &[Agent], book: &Book) {
    let all = book.all();
    assert!(all.len() > 100, "only {} requests", all.len());
    for (request, account) in all.iter().filter(|(_, account)| account.unanswered) {
        let status = agents[account.agent].outcome(&account.asked).await;
        assert_eq!(status, "timed_out", "{request}");
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
        if account.unanswered {
            // Not before its time, whatever happened in between (I8).
            let deadline = text(&account.asked, "deadline");
            let decided = text(&resolved[request][0], "at");
            assert!(decided >= deadline, "{request}: {decided} before {deadline}");
        }
        if account.call.is_some() {
            assert_eq!(invoked.get(request), Some(&1), "{request}");
        }
    }
}
