//! Too much, too slow, too long, broken: the hub stays up, within its bounds, and serves the rest.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::*;

/// Kilobytes that a hub under attack may hold. An idle one of a debug build has about 20,000.
const MEMORY: u64 = 160_000;

fn stays_small(hub: &Hub) {
    if let Some(memory) = hub.memory() {
        assert!(memory < MEMORY, "{memory} KB");
    }
}

/// Asks and answers once, as an honest pair would.
async fn serves(person: &Person) {
    let (agent, mut ear) = (person.agent(), person.reader().await);
    let session = agent.open().await;
    let request = agent.ask(&session).await;
    let question = ear.event("awaiting.confirmation").await;
    ear.decide(&question, "accept").await;
    assert_eq!(agent.outcome(&request).await, "accepted");
    agent.complete(&session).await;
    ear.event("session.completed").await;
}

/// Whether the other end has closed the connection; waits for it.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

const SLOW_CLIENTS: usize = 2000;

// covers: I21, I22, H21, W3
#[test]
fn thousands_who_send_a_byte_a_second_hold_up_nobody() {
    let hub = Hub::start(Setup::default().limit("header_seconds", 4).limit("body_seconds", 4));
    let address = hub.address();
    let head = Raw::connect(&hub).post("replies", None, &"x".repeat(1000));
    let (body_at, bytes) = (head.find("\r\n\r\n").unwrap() + 4, head.as_bytes());
    // Half of them are slow with the head, half with the body.
    let mut slow: Vec<(usize, TcpStream)> = Vec::new();
    for number in 0..SLOW_CLIENTS {
        let mut stream = TcpStream::connect(address).unwrap();
        let begun = if number % 2 == 0 { 0 } else { body_at };
        stream.write_all(&bytes[..begun]).unwrap();
        slow.push((begun, stream));
    }
    run(async {
        let person = hub.person();
        for _ in 0..3 {
            for (sent, stream) in &mut slow {
                let _ = stream.write_all(&bytes[*sent..=*sent]);
                *sent += 1;
            }
            serves(&person).await;
            // The pace of these clients, and no wait: their deadline runs meanwhile.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        stays_small(&hub);
    });
    // Each was given up in its time; those with a body were told.
    for (_, stream) in &mut slow {
        assert!(is_closed(stream));
    }
    run(async { serves(&hub.person()).await });
}

// covers: I22, W6, E21
#[test]
fn an_endless_body_ends_and_a_huge_one_does_not_begin() {
    let hub = Hub::shared();
    let json = [("content-type", "application/json"), ("content-length", "52428800")];
    let mut raw = Raw::connect(&hub);
    raw.send(raw.head("POST", "agent/sessions", None, &json) + "\r\n");
    let reply = raw.reply();
    assert_eq!((reply.status, reply.text().contains("\"E21\"")), (413, true), "{}", reply.text());
    // Also if it comes anyway.
    let mut raw = Raw::connect(&hub);
    raw.send(raw.head("POST", "replies", None, &json) + "\r\n");
    let megabyte = vec![b'x'; 1 << 20];
    let sent = (0..50).take_while(|_| raw.try_send(&megabyte).is_ok()).count();
    assert!(sent < 50, "{sent}");
    // Nobody knows how long this one is.
    let mut raw = Raw::connect(&hub);
    let chunked = [("content-type", "application/json"), ("transfer-encoding", "chunked")];
    raw.send(raw.head("POST", "messages", None, &chunked) + "\r\n");
    let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
    let sent = (0..500).take_while(|_| raw.try_send(&chunk).is_ok()).count();
    assert!(sent < 500, "{sent}");
    // And this one is deep.
    run(async {
        let deep = format!("{{\"a\":{}", "[".repeat(60_000));
        for path in ["agent/sessions", "messages", "replies", "subscriptions"] {
            let answer = hub.anonymous().post(path, deep.clone()).await.unwrap();
            assert_eq!(answer.status, 400, "{path}");
        }
        serves(&hub.person()).await;
    });
    stays_small(&hub);
}

// covers: I29
#[test]
fn whoever_takes_every_place_and_does_nothing_keeps_nobody_out() {
    let hub = Hub::start(Setup::default().limit("connections", 40));
    run(async {
        // Somebody hears before it begins, and goes on hearing.
        let person = hub.person();
        let mut ear = person.reader().await;
        // Some never ask, some stop in the middle of a head, some asked once.
        let mut flood: Vec<Raw> = Vec::new();
        for number in 0..400 {
            let mut raw = Raw::connect(&hub);
            match number % 3 {
                0 => {}
                1 => drop(raw.try_send("GET /aaep/v1/ev")),
                _ => drop(raw.try_send(raw.head("GET", "/healthz", None, &[]) + "\r\n")),
            }
            flood.push(raw);
        }
        // Somebody else gets in at once: asks, is answered, and runs.
        let agent = person.agent();
        let session = soon("a session", agent.open()).await;
        let request = soon("a question", agent.ask(&session)).await;
        let asked = soon("to be asked", ear.event("awaiting.confirmation")).await;
        ear.decide(&asked, "accept").await;
        assert_eq!(agent.look(&request, 30).await["status"], "accepted");
        assert_eq!(agent.invoke(&request, "{}").await.status, 200);
        drop(flood);
    });
}

// covers: I22
#[test]
fn beyond_the_limit_of_connections_one_is_told_to_come_later() {
    let hub = Hub::start(Setup::default().limit("connections", 20));
    // Streams that are being heard.
    let held: Vec<Raw> = (0..20)
        .map(|_| {
            let mut raw = Raw::connect(&hub);
            raw.send(raw.head("GET", "events", None, &[]) + "\r\n");
            raw.lines_until("");
            raw
        })
        .collect();
    let refused = loop {
        // Connections are taken in their order, so by now all twenty are.
        let mut next = Raw::connect(&hub);
        let _ = next.try_send(next.head("GET", "/healthz", None, &[]) + "\r\n");
        match next.try_reply() {
            Some(reply) => break reply,
            None => continue,
        }
    };
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after"), "{}", refused.head);
    assert!(refused.text().contains("(limits.connections)"), "{}", refused.text());
    drop(held);
    let until = Instant::now() + PATIENCE;
    loop {
        let mut next = Raw::connect(&hub);
        let _ = next.try_send(next.head("GET", "/healthz", None, &[]) + "\r\n");
        if next.try_reply().is_some_and(|reply| reply.status == 200) {
            break;
        }
        assert!(Instant::now() < until);
    }
}

// covers: I22
#[test]
fn a_hub_asks_the_system_for_as_many_files_as_it_needs() {
    let directory = tempfile::tempdir().unwrap();
    let setup = Setup::default();
    let inner = setup.command(directory.path());
    let mut words = vec!["ulimit -Sn 64; exec \"$@\"".to_owned(), "sh".into()];
    words.push(inner.get_program().to_str().unwrap().into());
    words.extend(inner.get_args().map(|word| word.to_str().unwrap().to_owned()));
    let hub = Hub::start_by(directory, |command| {
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").args(&words).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    });
    let mut held: Vec<Raw> = (0..200).map(|_| Raw::connect(&hub)).collect();
    for raw in &mut held {
        raw.send(raw.head("GET", "/healthz", None, &[]) + "\r\n");
        assert_eq!(raw.reply().status, 200);
    }
}

// covers: W1, S5
#[test]
fn a_body_with_two_lengths_hides_no_second_request() {
    let hub = Hub::start(Setup::default());
    let inner = r#"{"producer":{"agent_id":"smuggled"},"summary_normal":"Hi."}"#;
    let hidden = Raw::connect(&hub).post("agent/sessions", None, inner);
    let chunk = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
    let both = |first: &str, second: &str, body: &str| {
        let raw = Raw::connect(&hub);
        let head = raw.head("POST", "messages", None, &[("content-type", "application/json")]);
        format!("{head}{first}\r\n{second}\r\n\r\n{body}")
    };
    let chunked = "transfer-encoding: chunked";
    let bodies = [
        both(&format!("content-length: {}", chunk.len()), chunked, &chunk),
        both(chunked, &format!("content-length: {}", chunk.len()), &chunk),
        both("content-length: 5", chunked, &format!("0\r\n\r\n{hidden}")),
        both(chunked, "content-length: 5", &format!("0\r\n\r\n{hidden}")),
        both("content-length: 0", "content-length: 5", &hidden),
        both("transfer-encoding: gzip, chunked", "x: y", &format!("0\r\n\r\n{hidden}")),
        both("transfer-encoding: chunked, gzip", "x: y", &format!("0\r\n\r\n{hidden}")),
        both("transfer-encoding: xchunked", "x: y", &format!("0\r\n\r\n{hidden}")),
        both("transfer-encoding : chunked", "content-length: 0", &hidden),
        both("content-length: +5", "x: y", &hidden),
        both("content-length: 5, 5", "x: y", &hidden),
        both(chunked, "x: y", &format!("0;ext=\n\r\n\r\n{hidden}")),
        both(chunked, "x: y", &format!("-1\r\n\r\n{hidden}")),
        both(chunked, "x: y", &format!("fffffffffffffffff\r\n{hidden}")),
    ];
    for bytes in bodies {
        let mut raw = Raw::connect(&hub);
        raw.send(&bytes);
        let reply = raw.reply();
        assert!((400..500).contains(&reply.status), "{} {bytes:?}", reply.status);
        // Then the connection is over, whatever followed.
        assert_eq!(String::from_utf8_lossy(&raw.rest()), "", "{bytes:?}");
    }
    run(async {
        let counted = hub.outside(None).get("metrics").await.unwrap();
        let counted = String::from_utf8(counted.body.to_vec()).unwrap();
        assert!(counted.contains("\naaep_sessions_total 0\n"), "{counted}");
    });
}

/// Bytes that are no HTTP, or nearly.
fn broken_http(address: &str) -> Vec<Vec<u8>> {
    let host = format!("host: {address}\r\n");
    let get = |headers: &str| format!("GET /healthz HTTP/1.1\r\n{host}{headers}\r\n").into_bytes();
    let long = "x".repeat(100_000);
    vec![
        b"".to_vec(),
        b"\r\n\r\n\r\n\r\n".to_vec(),
        b"\0\0\0\0\0\0\0\0\r\n\r\n".to_vec(),
        vec![0xff; 70_000],
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"\x80\x2e\x01\x00\x02".to_vec(),
        format!("GET /{long} HTTP/1.1\r\n{host}\r\n").into_bytes(),
        format!("GET /%00%ff%fe/../../etc/passwd HTTP/1.1\r\n{host}\r\n").into_bytes(),
        format!("GET http://evil.example/healthz HTTP/1.1\r\n{host}\r\n").into_bytes(),
        format!("CONNECT evil.example:443 HTTP/1.1\r\n{host}\r\n").into_bytes(),
        format!("TRACE / HTTP/1.1\r\n{host}\r\n").into_bytes(),
        format!("{long} / HTTP/1.1\r\n{host}\r\n").into_bytes(),
        get(&format!("x: {long}\r\n")),
        get(&format!("{long}: x\r\n")),
        get(&"x: y\r\n".repeat(5000)),
        get("x : y\r\n"),
        get(" folded: y\r\n"),
        get("x: a\r\n b\r\n"),
        get("x: \0\r\n"),
        get("x: \x1b[2J\r\n"),
        get("x\r\n"),
        get("expect: the-unexpected\r\n"),
        get("connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: AAAA\r\n"),
        get("range: bytes=0-18446744073709551615\r\n"),
        get("content-length: 99999999999999999999\r\n"),
        get("content-length: -1\r\n"),
        get("transfer-encoding: chunked\r\n"),
        format!("GET /healthz HTTP/1.1\n{host}\n").into_bytes(),
        format!("GET /aaep/v1/events?subscription_id=%zz HTTP/1.1\r\n{host}\r\n").into_bytes(),
        format!("GET /aaep/v1/events?subscription_id={long} HTTP/1.1\r\n{host}\r\n").into_bytes(),
        format!("DELETE /aaep/v1/agent/requests/req_{} HTTP/1.1\r\n{host}\r\n", "f".repeat(32))
            .into_bytes(),
    ]
}

// covers: E21, W1, I22
#[test]
fn broken_bytes_of_every_kind_leave_the_hub_as_it_was() {
    let hub = Hub::start(Setup::default().limit("header_seconds", 2).limit("body_seconds", 2));
    let corpus = broken_http(&hub.address().to_string());
    std::thread::scope(|scope| {
        for bytes in &corpus {
            let hub = &hub;
            scope.spawn(move || {
                let mut raw = Raw::connect(hub);
                let _ = raw.try_send(bytes);
                let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
                let _ = raw.stream.shutdown(std::net::Shutdown::Write);
                if let Some(reply) = raw.try_reply() {
                    assert!(reply.status < 500, "{} {shown:?}", reply.status);
                }
                raw.rest();
            });
        }
    });
    // The same cut off at every place, and with bytes turned around.
    let whole = Raw::connect(&hub).post("replies", None, &decision("rpl_1", "sub_1", "accept"));
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone().into_bytes();
        bytes[at] ^= 0x80 | at as u8;
        let mut raw = Raw::connect(&hub);
        let _ = raw.try_send(&bytes[..]);
        let mut cut = Raw::connect(&hub);
        let _ = cut.try_send(&whole.as_bytes()[..at]);
    }
    run(async { serves(&hub.person()).await });
    assert!(hub.is_up());
    hub.has_not_panicked();
    stays_small(&hub);
}

// covers: E1, E21, D5
#[test]
fn every_message_that_we_know_is_taken_or_refused_wherever_it_is_sent() {
    run(async {
        let hub = Hub::start(Setup::default());
        let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
        let (listener, agent) = (hub.anonymous(), hub.local_agent());
        let session = agent.open().await;
        let (events, requests) = (
            format!("agent/sessions/{session}/events"),
            format!("agent/sessions/{session}/requests"),
        );
        let mut count = 0;
        for folder in ["valid", "invalid", "warning"] {
            for file in std::fs::read_dir(vectors.join(folder)).unwrap() {
                let bytes = std::fs::read(file.unwrap().path()).unwrap();
                let paths =
                    ["replies", "messages", "subscriptions", "agent/sessions", &events, &requests];
                for path in paths {
                    let answer = listener.post(path, bytes.clone()).await.unwrap();
                    assert!(answer.status.as_u16() < 500, "{path} {answer:?}");
                }
                count += 1;
            }
        }
        assert!(count > 100, "{count}");
        serves(&hub.person()).await;
        stays_small(&hub);
    });
}
