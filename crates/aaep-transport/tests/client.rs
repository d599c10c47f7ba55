//! The HTTP client against servers that are honest, wrong or gone.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real sockets and clocks

use std::net::SocketAddr;
use std::time::Duration;

use aaep_transport::client::{ClientError, HttpClient, Options, Token};
use aaep_transport::server::{Limits, Server};
use aaep_transport::{sse, tls};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn serve(server: Server, router: Router) -> SocketAddr {
    let address = server.local_addr().unwrap();
    tokio::spawn(server.serve(router, std::future::pending()));
    address
}

async fn plain(router: Router) -> SocketAddr {
    serve(Server::bind("127.0.0.1:0").await.unwrap(), router).await
}

fn client(address: SocketAddr) -> HttpClient {
    HttpClient::new(&format!("http://{address}/base/"), Options::default()).unwrap()
}

fn header<'a>(request: &'a Request, name: &str) -> &'a str {
    request.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_request_carries_path_host_token_and_type() {
    let show = |request: Request| async move {
        let names = ["host", "authorization", "content-type"].map(|name| header(&request, name));
        (StatusCode::CREATED, [("location", "here")], format!("{} {names:?}", request.uri()))
    };
    let address = plain(Router::new().fallback(show)).await;
    let token = Some(Token::parse("abc").unwrap());
    let options = Options { token, ..Options::default() };
    let client = HttpClient::new(&format!("http://{address}/base/"), options).unwrap();
    let answer = client.post("/replies?a=b", "{}").await.unwrap();
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.headers["location"], "here");
    let expected =
        format!("/base/replies?a=b [\"{address}\", \"Bearer abc\", \"application/json\"]");
    assert_eq!(answer.body, expected);
}

// covers: W5
#[tokio::test]
async fn another_machine_is_not_spoken_to_without_tls() {
    let client = HttpClient::new("http://192.0.2.1:9", Options::default()).unwrap();
    let error = client.get("/").await.unwrap_err();
    assert!(matches!(error, ClientError::PlainOffHost(_)));
    assert!(error.to_string().contains("https"));
    for wrong in ["ftp://x", "/path", "http://", "http://user:word@127.0.0.1/"] {
        assert!(HttpClient::new(wrong, Options::default()).is_err(), "{wrong}");
    }
}

// covers: W7
#[tokio::test]
async fn a_stream_sends_the_last_id_and_gives_events() {
    let events = |request: Request| async move {
        let last = header(&request, "last-event-id").to_owned();
        assert_eq!(header(&request, "accept"), "text/event-stream");
        ([(CONTENT_TYPE, "text/event-stream; charset=utf-8")], format!("id: 8\ndata: {last}\n\n"))
    };
    let address = plain(Router::new().route("/base/events", get(events))).await;
    let mut stream = client(address).events("events", Some("evt_7")).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().data, "evt_7");
    assert_eq!(stream.last_event_id(), Some("8"));
    assert!(stream.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_stream_that_is_none_is_refused_with_the_servers_words() {
    let router = Router::new()
        .route("/base/page", get(|| async { "<html>" }))
        .route("/base/no", get(|| async { (StatusCode::UNAUTHORIZED, "who are you?") }));
    let client = client(plain(router).await);
    for (path, status, text) in [("page", 200, "<html>"), ("no", 401, "who are you?")] {
        match client.events(path, None).await.err().unwrap() {
            ClientError::Refused(found, said) => {
                assert_eq!((found.as_u16(), &*said), (status, text));
            }
            other => panic!("{other}"),
        }
    }
    assert!(client.events("x", Some("a\nb")).await.is_err());
}

// covers: W3
#[tokio::test]
async fn silence_is_a_lost_stream_and_keep_alives_are_not_silence() {
    let body = || {
        let mut left = 8;
        let mut tick = tokio::time::interval(Duration::from_millis(400));
        let stream = futures_util::stream::poll_fn(move |context| {
            if left == 0 {
                return std::task::Poll::Pending;
            }
            std::task::ready!(tick.poll_tick(context));
            left -= 1;
            std::task::Poll::Ready(Some(Ok::<_, std::convert::Infallible>(sse::KEEP_ALIVE)))
        });
        axum::body::Body::from_stream(stream)
    };
    let events = move || async move { ([(CONTENT_TYPE, sse::CONTENT_TYPE)], body()) };
    let address = plain(Router::new().route("/", get(events))).await;
    let options = Options { silence: Duration::from_secs(2), ..Options::default() };
    let client = HttpClient::new(&format!("http://{address}"), options).unwrap();
    let mut stream = client.events("", None).await.unwrap();
    let begun = tokio::time::Instant::now();
    let error = stream.next().await.unwrap_err();
    assert!(error.to_string().contains("nothing came for 2 s"), "{error}");
    assert!(begun.elapsed() > Duration::from_secs(4), "the keep-alives were not heard");
    assert!(stream.next().await.unwrap().is_none());
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_too_slow_is_refused() {
    let slow = || async { std::future::pending::<&str>().await };
    let long = || async { "x".repeat(5000).into_response() };
    let router = Router::new().route("/slow", get(slow)).route("/long", get(long));
    let address = plain(router).await;
    let answer = Duration::from_millis(500);
    let options = Options { answer, max_message: 1000, ..Options::default() };
    let client = HttpClient::new(&format!("http://{address}"), options).unwrap();
    assert!(matches!(client.get("slow").await.unwrap_err(), ClientError::TooSlow));
    assert!(matches!(client.get("long").await.unwrap_err(), ClientError::TooLong(_)));
}

/// Posts must not be repeated, and an idle connection may be gone by the time it is needed.
#[tokio::test]
async fn an_idle_connection_that_ended_is_replaced() {
    let idle = Duration::from_millis(50);
    let limits = Limits { idle, ..Limits::default() };
    let server = Server::bind("127.0.0.1:0").await.unwrap().with_limits(limits);
    let peer = |request: Request| async move {
        request.extensions().get::<aaep_transport::peer::Peer>().unwrap().to_string()
    };
    let client = client(serve(server, Router::new().route("/base/", post(peer))).await);
    let first = client.post("", "{}").await.unwrap().body;
    // The server ends it in its time; sooner or later a post meets that, and none fails.
    let replaced = async {
        while client.post("", "{}").await.unwrap().body == first {
            tokio::time::sleep(4 * idle).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), replaced).await.expect("it is never replaced");
}

// covers: W5
#[tokio::test]
async fn a_certificate_nobody_vouches_for_is_refused() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    let config =
        tls::server(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes());
    let server = Server::bind("127.0.0.1:0").await.unwrap().with_tls(config.unwrap());
    let address = serve(server, Router::new().route("/", get(|| async { "hello" }))).await;
    for (trusted, works) in [(Some(&made), true), (Some(&other), false), (None, false)] {
        let pem = trusted.map(|trusted| trusted.cert.pem().into_bytes());
        let options = Options { extra_roots_pem: pem, ..Options::default() };
        let client = HttpClient::new(&format!("https://{address}"), options);
        // Without any certificate on this machine the client cannot even be made.
        let answer = match client {
            Ok(client) => client.get("/").await,
            Err(error) => Err(error),
        };
        assert_eq!(answer.is_ok(), works, "{answer:?}");
    }
    assert!(tls::server(b"no", b"no").is_err());
}

#[tokio::test]
async fn a_tls_handshake_that_never_comes_is_cut_off() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let config = tls::server(chain.as_bytes(), key.as_bytes()).unwrap();
    let limits = Limits { tls_handshake: Duration::from_millis(200), ..Limits::default() };
    let server = Server::bind("127.0.0.1:0").await.unwrap().with_tls(config).with_limits(limits);
    let address = serve(server, Router::new()).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    silent.write_all(&[0x16]).await.unwrap();
    let read = tokio::time::timeout(Duration::from_secs(60), silent.read(&mut [0; 1])).await;
    assert!(matches!(read.expect("it was not cut off"), Ok(0) | Err(_)));
}
