//! The HTTP server under clients that are honest, slow, greedy or gone.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real sockets and clocks

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aaep_transport::peer::Peer;
use aaep_transport::server::{BodyError, Limits, Server, read_body};
use axum::body::Body;
use axum::extract::{Extension, Request};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Router, response::Response};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(800);

fn limits() -> Limits {
    Limits { header_read: LONG, idle: LONG, write_stall: LONG, grace: LONG, ..Limits::default() }
}

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

async fn run(router: Router, limits: Limits) -> Running {
    let server = Server::bind("127.0.0.1:0").await.unwrap().with_limits(limits);
    let address = server.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let server = tokio::spawn(server.serve(router, async {
        let _ = stopped.await;
    }));
    Running { address, stop, server }
}

async fn connect(running: &Running) -> TcpStream {
    TcpStream::connect(running.address).await.unwrap()
}

async fn ask(stream: &mut TcpStream, head: &str) {
    stream.write_all(head.as_bytes()).await.unwrap();
}

/// Reads until the text has come, or the connection ended.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut got = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&got).into_owned();
        if text.contains(end) {
            return text;
        }
        match timeout(LONG, stream.read(&mut chunk)).await.expect("nothing came") {
            Ok(0) | Err(_) => return text + "(closed)",
            Ok(n) => got.extend_from_slice(&chunk[..n]),
        }
    }
}

async fn closed(stream: &mut TcpStream) {
    assert!(read_until(stream, "(never)").await.ends_with("(closed)"));
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

const HELLO: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test]
async fn every_request_carries_its_peer() {
    let show = |Extension(peer): Extension<Peer>| async move {
        assert!(peer.is_local() && !peer.is_tls() && peer.credentials().is_none());
        peer.to_string()
    };
    let running = run(Router::new().route("/", get(show)), limits()).await;
    let mut client = connect(&running).await;
    let own = client.local_addr().unwrap().to_string();
    for _ in 0..2 {
        ask(&mut client, HELLO).await;
        read_until(&mut client, &own).await;
    }
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off_and_others_are_not() {
    let running = run(hello(), Limits { header_read: SHORT, ..limits() }).await;
    let mut honest = connect(&running).await;
    ask(&mut honest, HELLO).await;
    read_until(&mut honest, "hello").await;
    let mut slow = connect(&running).await;
    let dripping = async {
        loop {
            if slow.write_all(b"G").await.is_err() {
                return;
            }
            // The pace of this client, and no wait.
            tokio::time::sleep(SHORT / 10).await;
        }
    };
    timeout(LONG, dripping).await.expect("one byte now and then keeps a head open");
    let mut silent = connect(&running).await;
    closed(&mut silent).await;
    ask(&mut honest, HELLO).await;
    assert!(!read_until(&mut honest, "hello").await.ends_with("(closed)"));
    ask(&mut honest, "GET / HT").await;
    closed(&mut honest).await;
}

#[tokio::test]
async fn a_connection_between_two_requests_has_its_own_deadline() {
    let running = run(hello(), Limits { idle: SHORT, ..limits() }).await;
    let mut client = connect(&running).await;
    // Every request begins it anew: they take longer together than the deadline. On a machine that was
    // too busy to ask in time, it begins again.
    let (mut begun, mut last) = (Instant::now(), Instant::now());
    while begun.elapsed() < 2 * SHORT {
        ask(&mut client, HELLO).await;
        if read_until(&mut client, "hello").await.ends_with("(closed)") {
            assert!(last.elapsed() >= SHORT, "closed before its deadline");
            client = connect(&running).await;
            begun = Instant::now();
        }
        last = Instant::now();
        tokio::time::sleep(SHORT / 4).await;
    }
    closed(&mut client).await;
}

#[tokio::test]
async fn a_running_response_is_not_idle() {
    let wait = Arc::new(Notify::new());
    let begun = Arc::new(Notify::new());
    let (waiting, told) = (Arc::clone(&wait), Arc::clone(&begun));
    let slow = move || {
        let (waiting, told) = (Arc::clone(&waiting), Arc::clone(&told));
        async move {
            told.notify_one();
            waiting.notified().await;
            "done"
        }
    };
    let limits = Limits { idle: SHORT, header_read: SHORT, ..limits() };
    let router = Router::new().route("/", get(slow)).route("/hello", get(|| async { "hello" }));
    let running = run(router, limits).await;
    let mut client = connect(&running).await;
    ask(&mut client, HELLO).await;
    begun.notified().await;
    // Both deadlines pass for others who came later; they must not apply here.
    let mut idle = connect(&running).await;
    ask(&mut idle, "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n").await;
    read_until(&mut idle, "hello").await;
    let mut silent = connect(&running).await;
    closed(&mut idle).await;
    closed(&mut silent).await;
    wait.notify_one();
    assert!(!read_until(&mut client, "done").await.ends_with("(closed)"));
    closed(&mut client).await; // they apply again
}

#[tokio::test]
async fn connections_beyond_the_limit_are_told_so_and_places_come_back() {
    let begun = Arc::new(Notify::new());
    let told = begun.clone();
    let wait = move || async move {
        told.notify_one();
        std::future::pending::<()>().await;
    };
    let router = hello().route("/wait", get(wait));
    let running = run(router, Limits { connections: 2, grace: SHORT, ..limits() }).await;
    let mut first = connect(&running).await;
    let mut second = connect(&running).await;
    for client in [&mut first, &mut second] {
        ask(client, "GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
        begun.notified().await;
    }
    let mut third = connect(&running).await;
    assert!(read_until(&mut third, "\r\n\r\n").await.starts_with("HTTP/1.1 503"));
    drop(first);
    loop {
        let mut fourth = connect(&running).await;
        let _ = fourth.write_all(HELLO.as_bytes()).await;
        if read_until(&mut fourth, "hello").await.contains("hello") {
            break;
        }
    }
}

// covers: I29
#[tokio::test]
async fn who_only_connects_keeps_nobody_out() {
    let running = run(hello(), Limits { connections: 2, ..limits() }).await;
    // One that never asks, one that asked and waits for nothing, one in the middle of a head.
    for held in ["", HELLO, "GET / HTTP/1.1\r\nho"] {
        let mut idle = [connect(&running).await, connect(&running).await];
        for client in &mut idle {
            ask(client, held).await;
        }
        if held == HELLO {
            for client in &mut idle {
                read_until(client, "hello").await;
            }
        }
        let mut newcomers = Vec::new();
        for _ in 0..3 {
            let mut newcomer = connect(&running).await;
            ask(&mut newcomer, HELLO).await;
            assert!(read_until(&mut newcomer, "hello").await.ends_with("hello"), "{held:?}");
            newcomers.push(newcomer); // and stays, so that the next one needs a place as well
        }
        // Both had to give way to others.
        for mut client in idle {
            closed(&mut client).await;
        }
    }
}

#[tokio::test]
async fn the_limit_per_address_holds_for_loopback_when_asked() {
    let limits = Limits { connections_per_address: 1, limit_loopback: true, ..limits() };
    let running = run(hello(), limits).await;
    let mut first = connect(&running).await;
    ask(&mut first, HELLO).await;
    read_until(&mut first, "hello").await;
    let mut second = connect(&running).await;
    assert!(read_until(&mut second, "\r\n\r\n").await.starts_with("HTTP/1.1 503"));
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let running = run(hello(), limits()).await;
    let mut client = connect(&running).await;
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let _ = client.write_all(head.as_bytes()).await;
    let answer = read_until(&mut client, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 431") || answer.ends_with("(closed)"), "{answer}");
}

fn upload(deadline: Duration) -> Router {
    let take = move |request: Request| async move {
        let status = match read_body(request.into_body(), 1000, deadline).await {
            Ok(body) => return (StatusCode::OK, body.len().to_string()),
            Err(BodyError::TooLong(1000)) => StatusCode::PAYLOAD_TOO_LARGE,
            Err(BodyError::TooSlow(_)) => StatusCode::REQUEST_TIMEOUT,
            Err(_) => StatusCode::BAD_REQUEST,
        };
        (status, String::new())
    };
    Router::new().route("/", post(take))
}

async fn answer_to(deadline: Duration, request: &str) -> String {
    let running = run(upload(deadline), limits()).await;
    let mut client = connect(&running).await;
    ask(&mut client, request).await;
    read_until(&mut client, "\r\n\r\n").await
}

// covers: W1
#[tokio::test]
async fn a_body_is_read_whole_in_whatever_pieces_it_comes() {
    let running = run(upload(LONG), limits()).await;
    let mut client = connect(&running).await;
    ask(&mut client, "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
    for _ in 0..10 {
        ask(&mut client, "64\r\n").await;
        ask(&mut client, &format!("{}\r\n", "a".repeat(100))).await;
    }
    ask(&mut client, "0\r\n\r\n").await;
    read_until(&mut client, "1000").await;
}

#[tokio::test]
async fn a_body_too_long_too_slow_or_broken_is_told_apart() {
    let announced = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n";
    assert!(answer_to(LONG, announced).await.starts_with("HTTP/1.1 413"));
    let chunk = format!("3e9\r\n{}\r\n", "a".repeat(1001));
    let endless =
        format!("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{chunk}");
    assert!(answer_to(LONG, &endless).await.starts_with("HTTP/1.1 413"));
    let slow = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc";
    assert!(answer_to(SHORT, slow).await.starts_with("HTTP/1.1 408"));
    let broken = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n";
    assert!(answer_to(LONG, broken).await.starts_with("HTTP/1.1 400"));
}

// covers: W1
#[tokio::test]
async fn whoever_waits_to_be_told_is_told_to_send_only_when_the_body_is_read() {
    let request = "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n";
    assert!(answer_to(LONG, request).await.starts_with("HTTP/1.1 100"));
    let refuse = Router::new().route("/", post(|| async { StatusCode::UNAUTHORIZED }));
    let running = run(refuse, limits()).await;
    let mut client = connect(&running).await;
    ask(&mut client, request).await;
    assert!(read_until(&mut client, "\r\n\r\n").await.starts_with("HTTP/1.1 401"));
}

/// A body that says when it is dropped; it gives chunks of 64 KiB if `endless`, otherwise one.
fn watched_body(endless: bool, dropped: Arc<Notify>) -> Body {
    struct OnDrop(Arc<Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let guard = OnDrop(dropped);
    let mut given = false;
    let stream = futures_util::stream::poll_fn(move |_| {
        let _held = &guard;
        if given && !endless {
            return std::task::Poll::Pending;
        }
        given = true;
        let chunk = Bytes::from_static(&[b'x'; 64 * 1024]);
        std::task::Poll::Ready(Some(Ok::<_, std::convert::Infallible>(Frame::data(chunk))))
    });
    Body::new(StreamBody::new(stream))
}

fn streaming(endless: bool) -> (Router, Arc<Notify>) {
    let dropped = Arc::new(Notify::new());
    let signal = Arc::clone(&dropped);
    let route = get(move || async move { Response::new(watched_body(endless, signal)) });
    (Router::new().route("/", route), dropped)
}

// covers: W3
#[tokio::test]
async fn a_stream_ends_when_its_client_goes() {
    let (router, dropped) = streaming(false);
    let running = run(router, limits()).await;
    let mut client = connect(&running).await;
    ask(&mut client, HELLO).await;
    read_until(&mut client, "xxx").await;
    drop(client);
    timeout(LONG, dropped.notified()).await.expect("the body was kept");
}

// covers: W3
#[tokio::test]
async fn a_client_that_reads_nothing_is_dropped() {
    let (router, dropped) = streaming(true);
    let running = run(router, Limits { write_stall: SHORT, ..limits() }).await;
    let mut client = connect(&running).await;
    ask(&mut client, HELLO).await;
    timeout(LONG, dropped.notified()).await.expect("the body was kept");
}

#[tokio::test]
async fn stopping_lets_running_requests_end_and_nobody_in() {
    let wait = Arc::new(Notify::new());
    let (waiting, begun) = (Arc::clone(&wait), Arc::new(Notify::new()));
    let inside = Arc::clone(&begun);
    let slow = move || async move {
        inside.notify_one();
        waiting.notified().await;
        "done"
    };
    let running = run(Router::new().route("/", get(slow)), limits()).await;
    let mut idle = connect(&running).await;
    let mut client = connect(&running).await;
    ask(&mut client, HELLO).await;
    begun.notified().await;
    running.stop.send(()).unwrap();
    closed(&mut idle).await;
    assert!(TcpStream::connect(running.address).await.is_err());
    wait.notify_one();
    assert!(read_until(&mut client, "done").await.contains("connection: close"));
    timeout(LONG, running.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn after_the_grace_time_what_still_runs_is_dropped() {
    let (router, dropped) = streaming(false);
    let running = run(router, Limits { grace: SHORT, ..limits() }).await;
    let mut client = connect(&running).await;
    ask(&mut client, HELLO).await;
    read_until(&mut client, "xxx").await;
    running.stop.send(()).unwrap();
    timeout(LONG, running.server).await.unwrap().unwrap();
    timeout(LONG, dropped.notified()).await.unwrap();
    closed(&mut client).await;
}

/// A long answer: a greeting, then whatever the sender says.
fn long(says: tokio::sync::mpsc::Receiver<Bytes>) -> Router {
    let says = Arc::new(std::sync::Mutex::new(Some(says)));
    Router::new().route("/", get(|| async { "hello" })).route(
        "/long",
        get(move || async move {
            let says = says.lock().unwrap().take().expect("asked twice");
            // As bodies do now and then, and tasks that wait for a lock: it wakes itself.
            std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                std::task::Poll::Ready(())
            })
            .await;
            let frames = futures_util::stream::unfold(says, |mut says| async move {
                let said = says.recv().await?;
                Some((Ok::<_, BodyError>(Frame::data(said)), says))
            });
            let mut response = Response::new(Body::new(StreamBody::new(frames)));
            response.extensions_mut().insert(aaep_transport::server::Long);
            response
        }),
    )
}

const ASK_LONG: &str = "GET /long HTTP/1.1\r\nhost: x\r\n\r\n";

// covers: W3
#[tokio::test]
async fn a_long_answer_is_poured_in_chunks_to_its_end() {
    let (say, says) = tokio::sync::mpsc::channel(1);
    let running = run(long(says), limits()).await;
    let mut stream = connect(&running).await;
    // It may follow other answers on the same connection.
    ask(&mut stream, HELLO).await;
    read_until(&mut stream, "hello").await;
    ask(&mut stream, ASK_LONG).await;
    let head = read_until(&mut stream, "\r\n\r\n").await.to_lowercase();
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    assert!(head.contains("connection: close"), "{head}");
    for word in ["one", "", "and two"] {
        say.send(Bytes::from(word)).await.unwrap();
    }
    assert_eq!(read_until(&mut stream, "two\r\n").await, "3\r\none\r\n7\r\nand two\r\n");
    let big = Bytes::from(vec![b'x'; 3 << 20]);
    say.send(big.clone()).await.unwrap();
    drop(say);
    let rest = read_until(&mut stream, "(never)").await;
    let expected = format!("300000\r\n{}\r\n0\r\n\r\n(closed)", str::from_utf8(&big).unwrap());
    assert!(rest == expected, "{} bytes came", rest.len());
}

// covers: W3
#[tokio::test]
async fn whoever_leaves_a_long_answer_is_missed_at_once() {
    let (say, says) = tokio::sync::mpsc::channel(1);
    let running = run(long(says), limits()).await;
    let mut stream = connect(&running).await;
    ask(&mut stream, ASK_LONG).await;
    read_until(&mut stream, "\r\n\r\n").await;
    // What it says meanwhile is nobody's business.
    ask(&mut stream, HELLO).await;
    say.send(Bytes::from("here")).await.unwrap();
    assert_eq!(read_until(&mut stream, "here\r\n").await, "4\r\nhere\r\n");
    drop(stream);
    timeout(LONG, say.closed()).await.expect("nobody noticed");
}

// covers: W14
#[tokio::test]
async fn whoever_reads_nothing_of_a_long_answer_is_given_up() {
    let (say, says) = tokio::sync::mpsc::channel(1);
    let running = run(long(says), Limits { write_stall: SHORT, ..limits() }).await;
    let mut stream = connect(&running).await;
    ask(&mut stream, ASK_LONG).await;
    read_until(&mut stream, "\r\n\r\n").await;
    let flood = async { while say.send(Bytes::from(vec![b'x'; 1 << 20])).await.is_ok() {} };
    timeout(LONG, flood).await.expect("it was waited for");
}

#[tokio::test]
async fn whoever_talks_through_a_long_answer_is_given_up() {
    let (say, says) = tokio::sync::mpsc::channel(1);
    let running = run(long(says), limits()).await;
    let mut stream = connect(&running).await;
    ask(&mut stream, ASK_LONG).await;
    read_until(&mut stream, "\r\n\r\n").await;
    stream.write_all(&vec![b'x'; 1 << 20]).await.ok();
    timeout(LONG, say.closed()).await.expect("it was listened to");
}

#[tokio::test]
async fn an_old_client_gets_a_long_answer_without_chunks() {
    let (say, says) = tokio::sync::mpsc::channel(1);
    let running = run(long(says), limits()).await;
    let mut stream = connect(&running).await;
    ask(&mut stream, "GET /long HTTP/1.0\r\n\r\n").await;
    let head = read_until(&mut stream, "\r\n\r\n").await.to_lowercase();
    assert!(!head.contains("chunked"), "{head}");
    say.send(Bytes::from("word")).await.unwrap();
    drop(say);
    assert_eq!(read_until(&mut stream, "(never)").await, "word(closed)");
}

// covers: W3
#[tokio::test]
async fn long_answers_have_the_grace_time_when_the_server_stops() {
    let (say, says) = tokio::sync::mpsc::channel(1);
    let running = run(long(says), limits()).await;
    let mut stream = connect(&running).await;
    ask(&mut stream, ASK_LONG).await;
    read_until(&mut stream, "\r\n\r\n").await;
    running.stop.send(()).unwrap();
    say.send(Bytes::from("last words")).await.unwrap();
    drop(say);
    assert_eq!(read_until(&mut stream, "(never)").await, "a\r\nlast words\r\n0\r\n\r\n(closed)");
    timeout(LONG, running.server).await.expect("it went on").unwrap();
}

/// Bytes that show where something is missing, doubled or out of place.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'a' + ((at / 7 + at) % 26) as u8).collect()
}

// covers: W1
#[tokio::test]
async fn every_byte_of_a_body_arrives_however_it_is_cut() {
    let echo = |body: Bytes| async move { body };
    let running = run(Router::new().route("/", post(echo)), limits()).await;
    let lengths = [1, 2, 63, 1024, 8191, 8192, 8193, 16 * 1024, 70_000];
    // How the bytes of head and body are cut into writes, and whether to wait in between.
    let cuts: [(usize, bool); 5] =
        [(usize::MAX, false), (1, false), (3, true), (4096, true), (8192, false)];
    for length in lengths {
        for (size, waits) in cuts {
            if size < 4096 && length > 2000 {
                continue;
            }
            for chunked in [false, true] {
                let body = pattern(length);
                let mut sent = match chunked {
                    false => {
                        format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n")
                            .into_bytes()
                    }
                    true => {
                        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".to_vec()
                    }
                };
                if chunked {
                    for chunk in body.chunks(length.div_ceil(5)) {
                        sent.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                        sent.extend_from_slice(chunk);
                        sent.extend_from_slice(b"\r\n");
                    }
                    sent.extend_from_slice(b"0\r\n\r\n");
                } else {
                    sent.extend_from_slice(&body);
                }
                // Two requests on one connection, the second right behind the first.
                sent.extend_from_slice(&sent.clone());
                let mut client = connect(&running).await;
                client.set_nodelay(true).unwrap();
                let (mut read, mut write) = client.split();
                let writing = async {
                    for piece in sent.chunks(size.min(sent.len())) {
                        write.write_all(piece).await.unwrap();
                        if waits {
                            tokio::task::yield_now().await;
                        }
                    }
                };
                let reading = async {
                    let mut got = Vec::new();
                    let mut chunk = vec![0; 65536];
                    let whole =
                        |got: &[u8]| got.windows(body.len()).filter(|at| *at == body).count();
                    while got.len() < 2 * length || whole(&got) < 2 {
                        let read =
                            timeout(LONG, read.read(&mut chunk)).await.expect("bytes are lost");
                        let read = read.unwrap();
                        assert!(read > 0, "{length} bytes, cut by {size}, chunked: {chunked}");
                        got.extend_from_slice(&chunk[..read]);
                    }
                };
                tokio::join!(writing, reading);
            }
        }
    }
}
