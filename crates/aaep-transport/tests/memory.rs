//! What is too long is refused without being held: the peak of all that is allocated while a peer
//! sends without end stays near the limit for one message.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real sockets and threads

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use aaep_transport::client::{self, ClientError, HttpClient};
use aaep_transport::link::{LinkError, Options};
use aaep_transport::server::{BodyError, Server, read_body};
use aaep_transport::ws;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use tokio::sync::mpsc;

const MAX: usize = 64 * 1024;
/// Far more than the limit, and than what all buffers together should take.
const FLOOD: usize = 64 << 20;
const PEAK: u64 = 1 << 20;

/// Runs on this thread alone, and says what it allocated at its peak.
fn peak(work: impl Future<Output = ()>) {
    let mut work = Some(work);
    let measured = allocation_counter::measure(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work.take().unwrap());
    });
    assert!(measured.bytes_max > 1000, "nothing was measured");
    assert!(measured.bytes_max < PEAK, "{} bytes at the peak", measured.bytes_max);
}

/// Sends a beginning and then the same bytes again and again, until it is cut off or done.
fn flood(mut to: impl Write, start: &[u8], again: &[u8]) {
    let mut sent = to.write_all(start);
    for _ in 0..FLOOD / again.len() {
        sent = sent.and_then(|()| to.write_all(again));
    }
}

fn flood_server(address: SocketAddr, start: &str, again: Vec<u8>) {
    let start = start.to_owned();
    thread::spawn(move || flood(TcpStream::connect(address).unwrap(), start.as_bytes(), &again));
}

// covers: W6
#[test]
fn an_endless_body_is_not_held() {
    peak(async {
        let server = Server::bind("127.0.0.1:0").await.unwrap();
        let (told, mut hears) = mpsc::channel(1);
        let take = move |request: Request| async move {
            let wait = std::time::Duration::from_secs(60);
            let read = read_body(request.into_body(), MAX, wait).await;
            told.send(read.unwrap_err()).await.unwrap();
        };
        let head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
        flood_server(server.local_addr().unwrap(), head, chunk);
        tokio::select! {
            () = server.serve(Router::new().fallback(take), std::future::pending()) => {}
            error = hears.recv() => assert_eq!(error, Some(BodyError::TooLong(MAX))),
        }
    });
}

// covers: W6
#[test]
fn endless_fragments_of_a_websocket_are_not_held() {
    peak(async {
        let server = Server::bind("127.0.0.1:0").await.unwrap();
        let (told, mut hears) = mpsc::channel(1);
        let upgrade = move |mut request: Request| async move {
            let upgrade = ws::upgrade(&mut request).unwrap();
            tokio::spawn(async move {
                let options = Options { max_message: MAX, ..Options::default() };
                let mut link = upgrade.pending.link(options).await.unwrap();
                told.send(link.receive().await.unwrap_err()).await.unwrap();
            });
            upgrade.response.map(|()| Body::empty())
        };
        // A text frame that is not the last, then continuations without end.
        let head = "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
            sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        let frame = [&[0x00, 0x80 | 126, 0x10, 0x00, 0, 0, 0, 0][..], &[b'x'; 0x1000]].concat();
        let address = server.local_addr().unwrap();
        thread::spawn(move || {
            let first = [head.as_bytes(), &[0x01, 0x80, 0, 0, 0, 0]].concat();
            flood(TcpStream::connect(address).unwrap(), &first, &frame);
        });
        tokio::select! {
            () = server.serve(Router::new().fallback(upgrade), std::future::pending()) => {}
            error = hears.recv() => {
                assert!(matches!(error, Some(LinkError::TooLong(_))), "{error:?}");
            }
        }
    });
}

// covers: W6
#[cfg(unix)]
#[test]
fn an_endless_message_on_a_unix_socket_is_not_held() {
    use aaep_transport::unix::Listener;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("aaep/agent.sock");
    peak(async {
        let options = Options { max_message: MAX, ..Options::default() };
        let listener = Listener::bind(&path, options).unwrap();
        let socket = path.clone();
        thread::spawn(move || {
            let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
            flood(stream, &[0xFF; 4], &[b'x'; 0x10000]);
        });
        let mut link = listener.accept().await;
        assert!(matches!(link.receive().await, Err(LinkError::TooLong(_))));
        // The whole flood runs through, and its end cuts the message.
        assert!(matches!(link.receive().await, Err(LinkError::Lost(_))));
    });
}

// covers: W6
#[test]
fn an_endless_event_is_not_held_by_a_client() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ";
        flood(stream, head.as_bytes(), &[b'x'; 0x10000]);
    });
    peak(async {
        let options = client::Options { max_message: MAX, ..client::Options::default() };
        let client = HttpClient::new(&url, options).unwrap();
        let mut stream = client.events("events", None).await.unwrap();
        assert!(matches!(stream.next().await, Err(ClientError::TooLong(_))));
        assert!(stream.next().await.unwrap().is_none(), "the rest is dropped as it comes");
    });
}
