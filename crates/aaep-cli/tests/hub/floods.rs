//! Those who are let in and do too much: agents that flood, subscribers that never read.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::support::*;

/// Kilobytes that a hub may hold; those who do not read are ended before it is more.
const MEMORY: u64 = 220_000;

// covers: C4, I22, H21
#[test]
fn an_agent_that_asks_all_the_time_is_stopped_at_the_source_and_others_are_not() {
    run(async {
        let person = Hub::shared().person();
        let (agent, helper, mut ear) = (person.agent(), person.helper(), person.reader().await);
        let (loud, quiet) = (agent.open().await, helper.open().await);
        let mut made = 0;
        for number in 0..300 {
            let answer = agent.try_ask(&loud, &deletion(&format!("{number}"))).await;
            match answer.status.as_u16() {
                201 => made += 1,
                429 => assert_eq!(body(&answer)["rule"], "C4"),
                other => panic!("{other}"),
            }
        }
        assert_eq!(made, 20);
        // What waits can be asked for as often as one likes.
        assert_eq!(agent.try_ask(&loud, &deletion("0")).await.status, 200);
        let request = helper.ask(&quiet).await;
        let mut asked = 0;
        loop {
            let question = ear.event("awaiting.confirmation").await;
            asked += 1;
            if question["session_id"] == quiet {
                ear.decide(&question, "accept").await;
                break;
            }
        }
        assert_eq!((asked, helper.outcome(&request).await.as_str()), (21, "accepted"));
    });
}

/// Event streams that nobody reads.
const STREAMS: usize = 20;

/// The same and two WebSockets, with a handshake and without.
const UNREAD: usize = STREAMS + 2;

/// Bytes that wait for a subscription. Few, so that a client that does not read is ended soon after its
/// connection takes no more, and not because a connection that takes nothing is given up after a while.
const HELD: usize = 256 * 1024;

/// Sentences that an agent says at once.
const CHUNK: usize = 400;

// covers: I4, I21, I22, H21, W14
#[test]
fn clients_that_never_read_are_ended_and_everybody_else_hears_everything() {
    run(async {
        let hub = Hub::start(Setup::default().limit("held_bytes", HELD));
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let mut unread = Vec::new();
        let mut ids = Vec::new();
        for number in 0..STREAMS {
            let mut path = "events".to_owned();
            if number % 2 == 0 {
                let asked = request(json!({ "coalesce_boundaries": ["none"] }));
                let answer = person.client("phone").post("subscriptions", asked).await.unwrap();
                ids.push(text(&body(&answer), "subscription_id").to_owned());
                path += &format!("?subscription_id={}", ids[ids.len() - 1]);
            }
            unread.push(open_unread(&hub, &path, &person.token("phone"), "", b"HTTP/1.1 200"));
        }
        for negotiated in [true, false] {
            unread.push(open_unread_web_socket(&hub, &person.token("phone"), negotiated));
        }
        let session = agent.open().await;
        let listening = tokio::spawn(async move {
            ear.event("session.completed").await;
            ear
        });
        let chunk = "All work and no play makes a long text. ".repeat(CHUNK);
        let length = chunk.chars().count();
        let mut count = 0;
        while ended(&hub) < UNREAD {
            let output = json!({ "chunk": chunk, "position": count * length, "complete": false });
            agent.emit(&session, "output.streaming", output).await;
            count += 1;
        }
        agent.complete(&session).await;
        let ear = soon("everything", listening).await.unwrap();
        let heard: usize = ear.heard.iter().map(|text| text.matches("no play").count()).sum();
        assert_eq!(heard, count * CHUNK);
        ear.is_lawful();
        if let Some(memory) = hub.memory() {
            assert!(memory < MEMORY, "{memory} KB");
        }
        for id in ids {
            hub.logs(&["a subscription was ended", &id, "too slow"]);
        }
        let counted = hub.outside(None).get("metrics").await.unwrap();
        let counted = String::from_utf8(counted.body.to_vec()).unwrap();
        let all = format!("\naaep_subscriptions_ended_total {UNREAD}\n");
        assert!(counted.contains(&all), "{counted}");
    });
}

/// Subscriptions that were given up because they could not keep up. Not by the hub's figures: a caller that asks
/// for those is another user, for whom the agent would have to wait.
fn ended(hub: &Hub) -> usize {
    hub.log().iter().filter(|line| line.contains("a subscription was ended")).count()
}

/// A stream over the Unix socket: the kernel holds two hundred kilobytes of it. Over TCP it would hold
/// megabytes, and give the connection up by itself when they lie there for half a minute.
fn open_unread(
    hub: &Hub,
    path: &str,
    token: &str,
    headers: &str,
    expected: &[u8; 12],
) -> UnixStream {
    let mut stream = UnixStream::connect(hub.socket()).unwrap();
    let head = format!(
        "GET /aaep/v1/{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, expected);
    stream
}

/// A WebSocket over the Unix socket, of which only the first bytes are read.
fn open_unread_web_socket(hub: &Hub, token: &str, negotiated: bool) -> UnixStream {
    let mut headers = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        .to_owned();
    if negotiated {
        headers += "sec-websocket-protocol: aaep.v1\r\n";
    }
    let mut stream = open_unread(hub, "ws", token, &headers, b"HTTP/1.1 101");
    if negotiated {
        let asked = request(json!({ "coalesce_boundaries": ["none"] }));
        // One text frame with a length of 16 bits, masked with zeros.
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(u16::try_from(asked.len()).unwrap().to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(asked.bytes());
        stream.write_all(&frame).unwrap();
        // Up to the answer, so that it hears everything that follows.
        let mut read = Vec::new();
        while !read.windows(21).any(|part| part == b"subscription.accepted") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            read.push(byte[0]);
        }
    }
    stream
}

// covers: I22, I4
#[test]
fn whoever_asks_and_does_not_read_the_answers_is_ended() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let token = person.token("reader");
        let mut ear = Ear::web_socket(&hub, Some(&token), true).await;
        let languages: Vec<String> = ('a'..='z').map(|c| format!("en-x-{c}")).collect();
        let renegotiate = json!({ "type": "subscription.renegotiate",
            "subscription_id": ear.subscription, "capabilities": { "languages": languages } })
        .to_string();
        for _ in 0..100_000 {
            let sent = tokio::time::timeout(Duration::from_secs(5), ear.try_send(&renegotiate));
            if sent.await != Ok(true) {
                break;
            }
        }
        hub.logs(&["a subscription was ended", &ear.subscription, "does not read"]);
        if let Some(memory) = hub.memory() {
            assert!(memory < MEMORY, "{memory} KB");
        }
    });
}

/// Sessions that are open before their agent lets all of them fail.
const FAILING: usize = 120;

// covers: I20, I4, I5, T23
#[test]
fn handoffs_and_errors_have_a_budget_and_every_session_ends_all_the_same() {
    run(async {
        // One window for the whole test.
        let hub = Hub::start(Setup::default().limit("prompt_window_seconds", 1_000_000_000));
        let person = hub.person();
        let (agent, helper, mut ear) = (person.agent(), person.helper(), person.reader().await);
        let loud = agent.open().await;
        let mut failing = Vec::new();
        for _ in 0..FAILING {
            failing.push(agent.open().await);
        }
        let handoff = json!({ "reason": "It needs a person.", "target_kind": "human" });
        let mut made = 0;
        for _ in 0..200 {
            let answer = agent.try_emit(&loud, "handoff.requested", handoff.clone()).await;
            match answer.status.as_u16() {
                201 => made += 1,
                429 => assert!(text(&body(&answer), "text").contains("limits.critical_per_window")),
                other => panic!("{other}"),
            }
        }
        assert_eq!(made, 10);
        let error = json!({ "error_category": "unknown", "summary_normal": "It broke." });
        for session in &failing {
            agent.emit(session, "session.errored", error.clone()).await;
        }
        // Nothing more can be begun that could fail; others can.
        let refused = agent.post("agent/sessions", &agent.opening()).await;
        assert_eq!(refused.status, 429, "{refused:?}");
        let quiet = helper.open().await;
        helper.complete(&quiet).await;
        ear.event("session.completed").await;
        let count = |kind: &str| ear.heard.iter().filter(|text| text.contains(kind)).count();
        assert_eq!(count("\"aaep:agent.handoff.requested\""), 10);
        assert_eq!(count("\"aaep:agent.session.errored\""), 90);
        assert_eq!(count("\"aaep:agent.session.cancelled\""), FAILING - 90);
        assert_eq!(count("It broke."), FAILING);
        ear.is_lawful();
    });
}

/// Requests with large arguments, and their bytes.
const LARGE: (usize, usize) = (300, 200_000);

// covers: I22
#[test]
fn the_arguments_of_what_is_settled_leave_memory() {
    run(async {
        let hub = Hub::start(Setup::default().limit("prompts_per_window", 1_000_000));
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let mut before = None;
        for number in 0..LARGE.0 {
            let mut ask = deletion(&number.to_string());
            ask["arguments"] = json!({ "text": format!("{}{number}", "x".repeat(LARGE.1)) });
            let request = agent.ask_for(&session, &ask).await;
            let question = ear.event("awaiting.confirmation").await;
            let runs = number % 2 == 0;
            ear.decide(&question, if runs { "accept" } else { "reject" }).await;
            if runs {
                let granted = agent.invoke(&request, "{}").await;
                assert_eq!(granted.status, 200);
                let call = text(&body(&granted), "tool_call_id").to_owned();
                let done = json!({ "tool": "delete_file", "tool_call_id": call,
                    "status": "success", "summary_normal": "Gone." });
                agent.emit(&session, "tool.completed", done).await;
            }
            ear.heard.clear();
            if number == LARGE.0 / 3 {
                before = hub.memory();
            }
        }
        // Two hundred more of them would be forty megabytes.
        if let (Some(before), Some(after)) = (before, hub.memory()) {
            assert!(after < before + 15_000, "{before} KB, then {after} KB");
        }
    });
}
