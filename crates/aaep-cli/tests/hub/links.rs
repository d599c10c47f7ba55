//! WebSocket and Unix socket in bad company.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crate::support::*;

/// Kilobytes that a hub may hold.
const MEMORY: u64 = 160_000;

fn is_well(hub: &Arc<Hub>) {
    assert!(hub.is_up());
    if let Some(memory) = hub.memory() {
        assert!(memory < MEMORY, "{memory} KB");
    }
    run(async {
        let agent = hub.local_agent();
        let mut ear = Ear::unix(hub).await;
        let request = agent.ask(&agent.open().await).await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        agent.complete(text(&request, "session_id")).await;
    });
}

// covers: D5, W9, E1
#[test]
fn a_message_that_is_none_does_not_end_a_link_and_nobody_answers_it() {
    run(async {
        let person = Hub::shared().person();
        let agent = person.agent();
        for negotiated in [true, false] {
            let token = person.token("reader");
            let mut ear = Ear::web_socket(&person.hub, Some(&token), negotiated).await;
            let session = agent.open().await;
            let request = agent.ask(&session).await;
            let question = ear.event("awaiting.confirmation").await;
            for bad in ["", "{", "null", "[]", "\"x\"", "{}", "{\"type\":\"confirmation.reply\"}"] {
                ear.send(bad).await;
            }
            let twice = decision(text(&question, "reply_token"), &ear.subscription, "accept")
                .replace("\"decision\":", "\"decision\":\"reject\",\"decision\":");
            ear.send(&twice).await;
            ear.decide(&question, "reject").await;
            assert_eq!(agent.outcome(&request).await, "rejected");
            agent.complete(&session).await;
            let types = [ear.next().await, ear.next().await].map(|event| event["type"].clone());
            assert_eq!(types, ["aaep:agent.state.changed", "aaep:agent.session.completed"]);
        }
    });
}

// covers: W9, H15
#[test]
fn a_link_that_is_rejected_is_told_why_and_closed() {
    run(async {
        let person = Hub::shared().person();
        let url = format!("{}/ws", person.hub.base().replace("http", "ws"));
        let options = aaep_transport::client::Options {
            token: Some(aaep_transport::client::Token::parse(&person.token("reader")).unwrap()),
            ..Default::default()
        };
        let link = aaep_transport::ws::connect(&url, true, &options, Default::default());
        let mut link = link.await.unwrap();
        // Before there is a subscription, only a request means anything.
        link.send(decision("rpl_1", "sub_1", "accept")).await.unwrap();
        link.send(request(json!({})).replace("1.0.0", "99.99.99")).await.unwrap();
        let answer = soon("an answer", link.receive()).await.unwrap().unwrap();
        assert!(answer.contains("version_unsupported"), "{answer}");
        let (_sender, mut receiver) = link.split();
        assert_eq!(soon("the end", receiver.receive()).await, Ok(None));
        assert_eq!(receiver.close_reason().map(|(code, _)| code), Some(4001));
    });
}

async fn bare_web_socket(person: &Person) -> aaep_transport::link::Link {
    let url = format!("{}/ws", person.hub.base().replace("http", "ws"));
    let token = aaep_transport::client::Token::parse(&person.token("reader")).unwrap();
    let options = aaep_transport::client::Options { token: Some(token), ..Default::default() };
    aaep_transport::ws::connect(&url, true, &options, Default::default()).await.unwrap()
}

async fn bare_socket(hub: &Hub) -> aaep_transport::link::Link {
    aaep_transport::unix::connect(&hub.socket(), Default::default()).await.unwrap()
}

// covers: H15, W9, W10
#[test]
fn a_request_that_cannot_be_read_is_rejected_at_once_on_every_link() {
    run(async {
        let person = Hub::shared().person();
        let whole = request(json!({}));
        let cases = [
            ("{".to_owned(), "unknown"),
            ("{}".to_owned(), "unknown"),
            (whole.replace("subscriber_id", "who"), "unknown"),
            (whole.replace("1.0.0", "first"), "version_unsupported"),
            (request(json!({ "languages": [7] })), "capabilities_incompatible"),
            (
                request(json!({ "accept_signed_manifests_only": true })),
                "manifest_signature_required",
            ),
        ];
        for (message, code) in cases {
            for mut link in [bare_web_socket(&person).await, bare_socket(&person.hub).await] {
                link.send(message.clone()).await.unwrap();
                let answer = soon("an answer", link.receive()).await.unwrap().unwrap();
                let answer: Value = serde_json::from_str(&answer).unwrap();
                assert_eq!(answer["type"], "subscription.rejected", "{message}");
                assert_eq!(answer["reason_code"], code, "{message} {answer}");
                assert!(!text(&answer, "reason_message").is_empty());
                let (_sender, mut receiver) = link.split();
                assert!(!matches!(soon("the end", receiver.receive()).await, Ok(Some(_))));
            }
        }
    });
}

// covers: H15, H18, W9, W10
#[test]
fn new_terms_that_cannot_be_had_or_read_are_rejected_with_the_reason_and_end_the_subscription() {
    run(async {
        let person = Hub::shared().person();
        let token = person.token("reader");
        for (capabilities, code) in [
            (json!({ "accept_signed_manifests_only": true }), "manifest_signature_required"),
            (json!({ "pace_wpm": "fast" }), "capabilities_incompatible"),
        ] {
            let ears = [
                Ear::web_socket(&person.hub, Some(&token), true).await,
                Ear::unix(&person.hub).await,
            ];
            for mut ear in ears {
                let wanted = json!({ "type": "subscription.renegotiate",
                    "subscription_id": ear.subscription, "capabilities": capabilities });
                ear.send(&wanted.to_string()).await;
                let answer = ear.message("subscription.rejected").await;
                assert_eq!(answer["reason_code"], code, "{answer}");
                assert_eq!(ear.try_next().await, None);
            }
            // A WebSocket says with its code that it was a rejection.
            let mut ear = Ear::web_socket(&person.hub, Some(&token), true).await;
            let wanted = json!({ "type": "subscription.renegotiate",
                "subscription_id": ear.subscription, "capabilities": capabilities });
            ear.send(&wanted.to_string()).await;
            assert_eq!(ear.close_code().await, Some(4001));
        }
    });
}

// covers: H15, D4
#[test]
fn a_second_request_on_a_link_is_rejected_and_the_first_goes_on() {
    run(async {
        let person = Hub::shared().person();
        let token = person.token("reader");
        let agent = person.agent();
        for negotiated in [true, false] {
            let mut ear = Ear::web_socket(&person.hub, Some(&token), negotiated).await;
            let sent = request(json!({})).replace("1.0.0", "99.0.0");
            ear.send(&sent).await;
            let rejected = ear.message("subscription.rejected").await;
            assert!(!text(&rejected, "reason_message").is_empty());
            ear.send(&sent.replace("99.0.0", "1.0.0").replace("{}", "7")).await;
            ear.message("subscription.rejected").await;
            let session = agent.open().await;
            ear.event("session.started").await;
            agent.complete(&session).await;
        }
    });
}

// covers: H15, S5, W8, W9
#[test]
fn who_is_not_let_in_is_rejected_with_authentication_required() {
    run(async {
        let person = Hub::shared().person();
        let nobody = client(&person.hub.base(), Some(&token("nobody")));
        let answer = nobody.post("subscriptions", request(json!({}))).await.unwrap();
        assert_eq!(answer.status, 401);
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        let rejected = body(&answer);
        assert_eq!(rejected["type"], "subscription.rejected");
        assert_eq!(rejected["reason_code"], "authentication_required");
        assert!(aaep_types::Message::parse(&answer.body).is_ok());
        // A WebSocket is one from the upgrade on, so its answer is there.
        let answer = nobody.get("ws").await.unwrap();
        assert_eq!(answer.status, 401);
        assert_eq!(body(&answer)["reason_code"], "authentication_required");
    });
}

/// Opens a WebSocket by hand.
fn upgraded(hub: &Hub) -> Raw {
    let mut raw = Raw::connect(hub);
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    raw.send(raw.head("GET", "ws", None, &upgrade) + "\r\n");
    assert_eq!(raw.reply().status, 101);
    raw
}

/// A frame as a client sends it, masked with zeros.
fn frame(first: u8, length: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match length {
        0..=125 => frame.push(0x80 | length as u8),
        126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        _ => {
            frame.push(0x80 | 127);
            frame.extend(length.to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

// covers: W9, I22, E21
#[test]
fn broken_frames_end_their_web_socket_and_nothing_else() {
    let hub = Hub::start(Setup::default());
    let text = |payload: &[u8]| frame(0x81, payload.len() as u64, payload);
    let long = vec![b'x'; 3 << 20];
    let hostile: Vec<Vec<u8>> = vec![
        frame(0x82, 3, b"abc"),                // not text
        text(b"\xff\xfe"),                     // not UTF-8
        frame(0x81, long.len() as u64, &long), // too long
        frame(0x81, u64::MAX, b""),            // absurdly long
        frame(0x81, 1 << 62, b"x"),            // absurdly long
        frame(0xf1, 3, b"abc"),                // reserved bits
        frame(0x83, 3, b"abc"),                // reserved opcode
        frame(0x80, 3, b"abc"),                // goes on with nothing
        frame(0x09, 3, b"abc"),                // a ping in parts
        frame(0x89, 200, &[b'x'; 200]),        // a ping that is too long
        frame(0x88, 1, b"x"),                  // half a close code
        frame(0x88, 2, &999u16.to_be_bytes()), // no close code
        vec![0x81, 3, b'a', b'b', b'c'],       // not masked
        vec![0xff; 1000],
        [frame(0x01, 10, b"0123456789"), frame(0x00, 1 << 19, &long[..1 << 19]).repeat(4)].concat(),
    ];
    for bytes in hostile {
        let mut raw = upgraded(&hub);
        let _ = raw.try_send(&bytes);
        let shown = format!("{:?}", &bytes[..bytes.len().min(16)]);
        // It ends, and not only after a timeout.
        let rest = raw.rest();
        assert!(rest.len() < 1000, "{shown}: {} bytes came", rest.len());
    }
    // Pings without end, and nobody reads the pongs: this one may stay, but costs little.
    let mut raw = upgraded(&hub);
    raw.stream.set_write_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
    let pings = frame(0x89, 125, &[b'p'; 125]).repeat(1000);
    let _ = (0..200).take_while(|_| raw.try_send(&pings).is_ok()).count();
    is_well(&hub);
}

// covers: W10, W1, I22
#[test]
fn broken_lengths_end_their_unix_connection_and_nothing_else() {
    let hub = Hub::start(Setup::default());
    let request = request(json!({}));
    let framed = |payload: &[u8]| [&(payload.len() as u32).to_be_bytes()[..], payload].concat();
    let hostile: Vec<Vec<u8>> = vec![
        vec![],
        vec![0; 3],
        vec![0; 4000],
        vec![0xff; 4],
        [&u32::MAX.to_be_bytes()[..], &[b'x'; 100_000]].concat(),
        framed(b"\xff\xfe"),
        framed(b"{"),
        framed(&vec![b'['; 1 << 20]),
        [framed(request.as_bytes()), vec![0x7f; 100]].concat(),
        [framed(b"{}"), framed(request.as_bytes())[..20].to_vec()].concat(),
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
    ];
    let mut open = Vec::new();
    for bytes in &hostile {
        let mut stream = UnixStream::connect(hub.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stream.write_all(bytes);
        open.push(stream);
    }
    is_well(&hub);
    for mut stream in open {
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    // A stranger's text does not hurt an honest client on the same kind of connection.
    is_well(&hub);
}
