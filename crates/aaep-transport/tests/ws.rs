//! WebSocket beyond the contract: what is offered, what is refused, how it ends.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real sockets and clocks

use std::net::SocketAddr;
use std::time::Duration;

use aaep_transport::client::{self, ClientError, Token};
use aaep_transport::link::{Link, LinkError, Options};
use aaep_transport::server::{Limits, Server};
use aaep_transport::ws::{self, close};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

const MAX: usize = 1000;

fn options() -> Options {
    Options { max_message: MAX, ..Options::default() }
}

/// A server that gives each link to the test, with what was negotiated and the credentials.
type Arrived = (bool, Option<String>, Link);

async fn serve() -> (SocketAddr, mpsc::Receiver<Arrived>) {
    // A taken-over connection must outlive every deadline for requests.
    let short = Duration::from_millis(300);
    let limits = Limits { idle: short, header_read: Duration::from_secs(60), ..Limits::default() };
    let server = Server::bind("127.0.0.1:0").await.unwrap().with_limits(limits);
    let address = server.local_addr().unwrap();
    let (arrived, arriving) = mpsc::channel(4);
    let handler = move |mut request: Request| async move {
        let upgrade = match ws::upgrade(&mut request) {
            Ok(upgrade) => upgrade,
            Err(refusal) => {
                let (head, ()) = refusal.response().into_parts();
                return (head, refusal.to_string()).into_response();
            }
        };
        let shown = request.headers().get("authorization");
        let shown = shown.map(|value| value.to_str().unwrap().to_owned());
        tokio::spawn(async move {
            let link = upgrade.pending.link(options()).await.unwrap();
            let _ = arrived.send((upgrade.negotiated, shown, link)).await;
        });
        Response::from_parts(upgrade.response.into_parts().0, Body::empty())
    };
    let router = Router::new().fallback(handler);
    tokio::spawn(server.serve(router, std::future::pending()));
    (address, arriving)
}

const HEAD: &str = "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\n\
    upgrade: WebSocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Speaks the handshake by hand and returns the connection and the head of the answer.
async fn by_hand(address: SocketAddr, head: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(answer).unwrap())
}

// covers: D27, W9
#[tokio::test]
async fn the_subprotocol_is_agreed_on_left_out_or_refused() {
    let (address, mut arriving) = serve().await;
    let version = "sec-websocket-version: 13\r\n";
    let cases = [
        ("sec-websocket-protocol: x, aaep.v1\r\n", Some(true)),
        ("sec-websocket-protocol: x\r\nsec-websocket-protocol: aaep.v1\r\n", Some(true)),
        ("", Some(false)),
        ("sec-websocket-protocol: graphql-ws, aaep.v2\r\n", None),
    ];
    for (offer, expected) in cases {
        let (_open, answer) = by_hand(address, &format!("{HEAD}{version}{offer}")).await;
        let Some(negotiated) = expected else {
            assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
            continue;
        };
        assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
        assert!(answer.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_eq!(answer.contains("sec-websocket-protocol: aaep.v1\r\n"), negotiated);
        assert_eq!(arriving.recv().await.unwrap().0, negotiated);
    }
    let (_open, answer) = by_hand(address, HEAD).await;
    assert!(answer.starts_with("HTTP/1.1 426") && answer.contains("sec-websocket-version: 13"));
    let (_open, answer) = by_hand(address, "GET /ws HTTP/1.1\r\nhost: x\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

// covers: D27
#[tokio::test]
async fn a_refusal_names_what_was_offered() {
    let mut request = axum::http::Request::builder();
    for line in HEAD.lines().skip(1).chain(["sec-websocket-version: 13"]) {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let mut request = request.header("sec-websocket-protocol", "mqtt").body(()).unwrap();
    let refusal = ws::upgrade(&mut request).err().unwrap();
    assert_eq!(refusal, ws::Refusal::Subprotocol("mqtt".into()));
    assert!(refusal.to_string().contains("aaep.v1") && refusal.to_string().contains("mqtt"));
}

async fn connect(address: SocketAddr, negotiated: bool) -> Link {
    let url = format!("ws://{address}/ws?a=b");
    ws::connect(&url, negotiated, &client::Options::default(), options()).await.unwrap()
}

// covers: W9
#[tokio::test]
async fn the_client_offers_insists_and_shows_its_token() {
    let (address, mut arriving) = serve().await;
    let _here = connect(address, false).await;
    let (negotiated, shown, _) = arriving.recv().await.unwrap();
    assert!(!negotiated && shown.is_none());
    let token = Some(Token::parse("abc").unwrap());
    let client = client::Options { token, ..client::Options::default() };
    let url = format!("ws://{address}/");
    let mut here = ws::connect(&url, true, &client, options()).await.unwrap();
    let (negotiated, shown, mut there) = arriving.recv().await.unwrap();
    assert!(negotiated);
    assert_eq!(shown.as_deref(), Some("Bearer abc"));
    // The idle deadline, which ends a connection for requests meanwhile, must not apply.
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(b"GET /ws HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(60), idle.read_to_end(&mut rest));
    closed.await.expect("the idle deadline passes").unwrap();
    assert!(rest.starts_with(b"HTTP/1.1 400"), "it was answered first");
    here.send("still there").await.unwrap();
    assert_eq!(there.receive().await.unwrap().unwrap().as_str(), "still there");
}

#[tokio::test]
async fn a_server_that_is_no_websocket_is_refused_with_its_words() {
    let server = Server::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", server.local_addr().unwrap());
    let router = Router::new().fallback(|| async { (axum::http::StatusCode::FORBIDDEN, "no") });
    tokio::spawn(server.serve(router, std::future::pending()));
    let refused = ws::connect(&url, true, &client::Options::default(), options()).await;
    match refused.err().unwrap() {
        ClientError::Refused(status, said) => assert_eq!((status.as_u16(), &*said), (403, "no")),
        other => panic!("{other}"),
    }
}

// covers: W9
#[tokio::test]
async fn close_codes_and_reasons_arrive() {
    let (address, mut arriving) = serve().await;
    let here = connect(address, true).await;
    let (_, _, mut there) = arriving.recv().await.unwrap();
    let reason = "é".repeat(100); // longer than a close frame has room for
    there.close(close::VIOLATION, &reason).await.unwrap();
    let (mut sender, mut receiver) = here.split();
    assert_eq!(receiver.receive().await, Ok(None));
    assert_eq!(receiver.close_reason(), Some((4004, &*"é".repeat(61))));
    assert_eq!(there.receive().await, Ok(None));
    assert_eq!(there.send("late").await, Err(LinkError::Closed));
    assert!(sender.send("late").await.is_err());
}

/// A frame from a client, masked with zeros.
fn frame(opcode: u8, length: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[0x80 | opcode][..], length, &[0; 4], payload].concat()
}

async fn raw_frame(frame: &[u8]) -> (Link, TcpStream) {
    let (address, mut arriving) = serve().await;
    let head = format!("{HEAD}sec-websocket-version: 13\r\n");
    let (mut stream, _) = by_hand(address, &head).await;
    stream.write_all(frame).await.unwrap();
    (arriving.recv().await.unwrap().2, stream)
}

// covers: W1, D5
#[tokio::test]
async fn a_binary_message_is_refused_and_the_link_goes_on() {
    let two = [frame(2, &[0x83], b"abc"), frame(1, &[0x82], b"{}")].concat();
    let (mut there, _open) = raw_frame(&two).await;
    assert_eq!(there.receive().await, Err(LinkError::NotText));
    assert_eq!(there.receive().await.unwrap().unwrap().as_str(), "{}");
}

#[tokio::test]
async fn what_ends_a_link_says_why_and_then_that_it_is_closed() {
    let cases = [
        (frame(1, &[0x82], b"\xFF\xFF"), "not text"),
        // Announced, never sent: refused on the head alone.
        (frame(1, &[0xFF, 0, 0, 0, 0x40, 0, 0, 0, 0], b""), "longer than 1000 bytes"),
        (vec![0x81, 0x02, b'{', b'}'], "broke the rules"), // not masked
        (frame(3, &[0x80], b""), "broke the rules"),
    ];
    for (bytes, expected) in cases {
        let (mut there, _open) = raw_frame(&bytes).await;
        let error = there.receive().await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(there.receive().await, Ok(None));
    }
    let (mut there, open) = raw_frame(&frame(1, &[0x85], b"ab")).await;
    drop(open);
    assert!(matches!(there.receive().await, Err(LinkError::Lost(_))));
}

// covers: W3
#[tokio::test]
async fn a_dropped_send_does_not_cut_a_message() {
    let (address, mut arriving) = serve().await;
    let url = format!("ws://{address}/");
    let large = Options { max_message: 4 << 20, ..Options::default() };
    let mut here = ws::connect(&url, true, &client::Options::default(), large).await.unwrap();
    let (_, _, mut there) = arriving.recv().await.unwrap();
    let long = "x".repeat(1 << 20);
    // Nobody reads: after a few, one does not fit and its future is dropped.
    let mut sent = 0;
    let brief = Duration::from_millis(200);
    while tokio::time::timeout(brief, there.send(long.as_str())).await.is_ok() {
        sent += 1;
    }
    let rest = async { there.send("last").await };
    let read = async {
        for _ in 0..=sent {
            assert_eq!(here.receive().await.unwrap().unwrap().len(), long.len());
        }
        assert_eq!(here.receive().await.unwrap().unwrap().as_str(), "last");
    };
    let (rest, ()) = tokio::join!(rest, read);
    rest.unwrap();
}
