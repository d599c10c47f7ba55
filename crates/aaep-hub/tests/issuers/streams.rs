//! What becomes of streams when a token ends.

use std::time::Duration;

use aaep_hub::{Hub, Running};
use aaep_transport::client::{HttpClient, Options, Token};
use aaep_transport::{link, ws};
use serde_json::{Value, json};

use crate::support::{Key, claims, config, set, with};

struct Service {
    place: tempfile::TempDir,
    hub: Running,
    key: Key,
}

impl Service {
    async fn start() -> Self {
        Self::with_streams(None).await
    }

    /// One on which so many streams of one listener are open at once.
    async fn with_streams(streams: Option<usize>) -> Self {
        let (place, key) = (tempfile::tempdir().unwrap(), Key::new("first"));
        let mut config = config(place.path(), &set(&[&key]));
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.unix_socket.enabled = false;
        if let Some(streams) = streams {
            let limits = &mut config.limits;
            limits.subscriptions = limits.subscriptions.max(streams);
            limits.subscriptions_per_user = streams;
            limits.subscriptions_per_principal = streams;
            let connections = streams + 500;
            limits.connections = limits.connections.max(connections);
            limits.connections_per_address = limits.connections_per_address.max(connections);
        }
        let hub = Hub::builder().config(config).start().await.unwrap();
        Self { place, hub, key }
    }

    fn url(&self) -> String {
        self.hub.url(self.hub.addresses()[0])
    }

    fn options(&self, claims: &Value) -> Options {
        let token = Some(Token::parse(&self.key.sign(claims)).unwrap());
        Options { token, ..agent_options() }
    }

    fn listener(&self, seconds: i64) -> HttpClient {
        HttpClient::new(&self.url(), self.options(&claims(seconds))).unwrap()
    }

    fn agent(&self) -> HttpClient {
        let claims = with(claims(600), "groups", json!("agents"));
        HttpClient::new(&self.url(), self.options(&claims)).unwrap()
    }

    /// An agent says something.
    async fn say(&self, agent: &HttpClient, what: &str) {
        let body = json!({"producer": {"agent_id": "a"}, "summary_normal": what});
        let answer = agent.post("/agent/sessions", body.to_string()).await.unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
    }
}

fn request() -> String {
    json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
        "capabilities": {"supports_confirmation_reply": true},
    })
    .to_string()
}

async fn subscribe(client: &HttpClient) -> String {
    let answer = client.post("/subscriptions", request()).await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    let path = answer.headers["location"].to_str().unwrap().to_owned();
    path.strip_prefix("/aaep/v1").unwrap().to_owned()
}

// covers: S4
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_token_and_goes_on_with_another_where_it_was() {
    let service = Service::start().await;
    let agent = service.agent();
    let listener = service.listener(2);
    let path = subscribe(&listener).await;
    let mut stream = listener.events(&path, None).await.unwrap();
    service.say(&agent, "First.").await;
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.data.contains("First."), "{first:?}");
    // Its token ends, and with it the stream; nothing else would end it.
    let end = tokio::time::timeout(Duration::from_secs(20), async {
        while let Ok(Some(_)) = stream.next().await {}
    });
    end.await.expect("the stream ends with its token");
    let last = stream.last_event_id().map(str::to_owned);
    service.say(&agent, "Meanwhile.").await;
    // The old token opens nothing more, the new one what was the old one's.
    assert!(listener.events(&path, last.as_deref()).await.is_err());
    let renewed = service.listener(600);
    let mut stream = renewed.events(&path, last.as_deref()).await.unwrap();
    assert_eq!(stream.resumed(), Some(true), "nothing was lost");
    let next = stream.next().await.unwrap().unwrap();
    assert!(next.data.contains("Meanwhile."), "{next:?}");
    service.hub.stop().await.unwrap();
}

// covers: S4
#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_that_is_shown_in_time_keeps_the_stream() {
    let service = Service::start().await;
    let agent = service.agent();
    let kept = service.listener(3);
    let path = subscribe(&kept).await;
    let mut stream = kept.events(&path, None).await.unwrap();
    // Somebody else, whose token ends at the same time: when theirs has ended, the time is over.
    let other = with(claims(3), "sub", json!("bob"));
    let other = HttpClient::new(&service.url(), service.options(&other)).unwrap();
    let path = subscribe(&other).await;
    let mut ends = other.events(&path, None).await.unwrap();
    // Any call with the new token will do.
    let renewed = service.listener(600);
    subscribe(&renewed).await;
    while let Ok(Some(_)) = ends.next().await {}
    service.say(&agent, "Still here.").await;
    let next = stream.next().await.unwrap().unwrap();
    assert!(next.data.contains("Still here."), "{next:?}");
    service.hub.stop().await.unwrap();
}

// covers: S4, H15
#[tokio::test(flavor = "multi_thread")]
async fn a_web_socket_is_closed_as_one_that_has_to_authenticate() {
    let service = Service::start().await;
    let url = format!("{}/ws", service.url().replacen("http", "ws", 1));
    let options = service.options(&claims(2));
    let link = ws::connect(&url, true, &options, link::Options::default()).await.unwrap();
    let (mut sender, mut receiver) = link.split();
    sender.send(request()).await.unwrap();
    let accepted = receiver.receive().await.unwrap().unwrap();
    assert!(accepted.contains("subscription.accepted"));
    let end = tokio::time::timeout(Duration::from_secs(20), async {
        while let Ok(Some(_)) = receiver.receive().await {}
    });
    end.await.expect("the link ends with its token");
    assert_eq!(receiver.close_reason().unwrap().0, ws::close::AUTHENTICATION);
    service.hub.stop().await.unwrap();
}

// covers: S4
#[tokio::test(flavor = "multi_thread")]
async fn streams_outlive_the_key_that_let_them_in_and_not_the_issuer() {
    let service = Service::start().await;
    let agent = service.agent();
    let listener = service.listener(600);
    let path = subscribe(&listener).await;
    let mut stream = listener.events(&path, None).await.unwrap();
    // The issuer signs with another key now, and has forgotten this one.
    let next = Key::new("second");
    let reread = config(service.place.path(), &set(&[&next]));
    service.hub.reload(&reread).unwrap();
    let denied = listener.post("/subscriptions", request()).await.unwrap();
    assert_eq!(denied.status, 401, "what the old key signed is not believed any more");
    let claims = with(claims(600), "groups", json!("agents"));
    let token = Some(Token::parse(&next.sign(&claims)).unwrap());
    let agent_of_new_key =
        HttpClient::new(&service.url(), Options { token, ..agent_options() }).unwrap();
    service.say(&agent_of_new_key, "After the change.").await;
    let heard = stream.next().await.unwrap().unwrap();
    assert!(heard.data.contains("After the change."), "{heard:?}");
    drop(agent);
    // Without the issuer nobody of its stays.
    service.hub.reload(&aaep_hub::config::Config::default()).unwrap();
    while let Ok(Some(_)) = stream.next().await {}
    service.hub.stop().await.unwrap();
}

/// How many streams are open while keys change; `AAEP_TEST_STREAMS` asks for more.
fn many() -> usize {
    std::env::var("AAEP_TEST_STREAMS").map_or(200, |many| many.parse().unwrap())
}

/// Streams of one process: each takes an open file, and so does its other end in the hub's process.
const STREAMS_OF_PROCESS: usize = 5000;

const SAID: [&str; 4] = ["Step 0, key 0.", "Step 1, key 0.", "Step 1, key 1.", "Step 2, key 0."];

/// A process with listeners of its own: this test, with what it needs in the environment.
struct Ears {
    process: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Ears {
    fn start(url: &str, token: &str, streams: usize) -> Self {
        use std::io::BufRead;
        let mut process = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "streams::ears_of_another_process", "--nocapture"])
            .envs([("AAEP_EARS_URL", url), ("AAEP_EARS_TOKEN", token)])
            .env("AAEP_EARS_STREAMS", streams.to_string())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn says(&mut self, word: &str) {
        let said = self.lines.by_ref().map_while(Result::ok).any(|line| line.ends_with(word));
        assert!(said, "the listeners ended before they were {word}");
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part of the next one, in a process of its own"]
async fn ears_of_another_process() {
    let given = |name: &str| std::env::var(format!("AAEP_EARS_{name}"));
    let (Ok(url), Ok(token), Ok(streams)) = (given("URL"), given("TOKEN"), given("STREAMS")) else {
        return;
    };
    let token = Some(Token::parse(&token).unwrap());
    let listener = HttpClient::new(&url, Options { token, ..agent_options() }).unwrap();
    let mut open = Vec::new();
    for _ in 0..streams.parse().unwrap() {
        let path = subscribe(&listener).await;
        open.push(listener.events(&path, None).await.unwrap());
    }
    println!("open");
    for (number, stream) in open.iter_mut().enumerate() {
        for expected in SAID {
            let heard = stream.next().await.unwrap();
            let heard = heard.unwrap_or_else(|| panic!("stream {number} ended before {expected}"));
            assert!(heard.data.contains(expected), "stream {number}: {expected} {heard:?}");
        }
    }
    println!("done");
}

// covers: S4
#[tokio::test(flavor = "multi_thread")]
async fn many_streams_hear_everything_before_while_and_after_keys_change() {
    let streams = many();
    let service = Service::with_streams(Some(streams)).await;
    let (first, second) = (&service.key, Key::new("second"));
    let token = first.sign(&claims(3600));
    let processes = streams.div_ceil(STREAMS_OF_PROCESS).max(2);
    let of = |process: usize| streams / processes + usize::from(process < streams % processes);
    let url = service.url();
    let mut ears: Vec<Ears> =
        (0..processes).map(|process| Ears::start(&url, &token, of(process))).collect();
    let mut all = |word: &str| {
        tokio::task::block_in_place(|| ears.iter_mut().for_each(|ears| ears.says(word)));
    };
    all("open");
    let signed_by = |key: &Key| {
        let claims = with(claims(600), "groups", json!("agents"));
        let token = Some(Token::parse(&key.sign(&claims)).unwrap());
        HttpClient::new(&service.url(), Options { token, ..agent_options() }).unwrap()
    };
    // The old key alone, both, the new one alone.
    let begun = std::time::Instant::now();
    let steps = [vec![first], vec![first, &second], vec![&second]];
    for (step, keys) in steps.iter().enumerate() {
        let reread = config(service.place.path(), &set(keys));
        service.hub.reload(&reread).unwrap();
        for (number, key) in keys.iter().enumerate() {
            service.say(&signed_by(key), &format!("Step {step}, key {number}.")).await;
        }
    }
    all("done");
    let took = begun.elapsed().as_secs_f64();
    println!("{streams} streams heard everything while keys changed twice, in {took:.1} s");
    service.hub.stop().await.unwrap();
}

/// Whose process listens is not looked up for each connection: that reads every file of every process,
/// and there may be ten thousand.
fn agent_options() -> Options {
    Options { answer: Duration::from_secs(30), trust_loopback: true, ..Options::default() }
}
