//! The doors of the stage: HTTP with the observer's interface beside it, and a Unix socket.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::doors;
use super::stage::{Out, Shared};
use crate::suite::http::{self, Request, STREAM, answer};

/// How long an observer waits for what the person does.
const ORDER_WAIT: Duration = Duration::from_secs(5);
const JSON: &str = "content-type: application/json\r\naccess-control-allow-origin: *\r\n\
    access-control-expose-headers: location\r\n";
/// What a page of another origin may send.
const ANY_PAGE: &str = "access-control-allow-origin: *\r\naccess-control-allow-headers: *\r\n\
    access-control-allow-methods: GET, POST\r\naccess-control-max-age: 600\r\n";

/// Listens, and gives the address that it listens at and the task that does it.
pub(super) async fn listen(
    address: &str,
    stage: Shared,
) -> Result<(String, JoinHandle<()>), String> {
    if let Some(path) = address.strip_prefix("unix:") {
        return socket(path.strip_prefix("//").unwrap_or(path), stage);
    }
    if let Some(rest) = address.strip_prefix("ws://") {
        return doors::web_socket(rest, stage).await;
    }
    if let Some(rest) = address.strip_prefix("grpc://") {
        return doors::grpc(rest, stage).await;
    }
    let rest = address.strip_prefix("http://").ok_or_else(|| {
        format!(
            "{address} is no address to listen at: name http://127.0.0.1:PORT/PATH, \
             ws://127.0.0.1:PORT/PATH, grpc://127.0.0.1:PORT or unix:PATH"
        )
    })?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, "aaep/v1"));
    let cannot = |error: io::Error| format!("cannot listen at {address}: {error}");
    let listener = TcpListener::bind(host).await.map_err(cannot)?;
    let here = listener.local_addr().map_err(cannot)?;
    let base = format!("/{}", path.trim_end_matches('/'));
    let url = format!("http://{here}{base}");
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, stage.clone(), base.clone()));
        }
    });
    Ok((url, task))
}

#[cfg(not(unix))]
fn socket(path: &str, _: Shared) -> Result<(String, JoinHandle<()>), String> {
    Err(format!("there are no Unix sockets here, so nothing listens at {path}"))
}

#[cfg(unix)]
fn socket(path: &str, stage: Shared) -> Result<(String, JoinHandle<()>), String> {
    use aaep_transport::link::{Link, Options};
    use aaep_transport::peer::{Credentials, Peer};
    let listener = tokio::net::UnixListener::bind(path)
        .map_err(|error| format!("cannot listen at {path}: {error}"))?;
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(found) = stream.peer_cred() else { continue };
            let (uid, gid, pid) = (found.uid(), found.gid(), found.pid());
            let peer = Peer::unix(Credentials { uid, gid, pid });
            let (reader, writer) = stream.into_split();
            let link = Link::framed(reader, writer, peer, &Options::default());
            tokio::spawn(doors::messages(link, stage.clone(), true));
        }
    });
    Ok((format!("unix:{path}"), task))
}

async fn connection(stream: TcpStream, stage: Shared, base: String) {
    let (read, mut write) = stream.into_split();
    let mut reader = BufReader::new(read);
    while let Ok(Some(request)) = http::read(&mut reader).await {
        if request.asks("GET", "/events") {
            let _ = events(&mut write, &request, &stage).await;
            return;
        }
        let answer = respond(&request, &stage, &base).await;
        if write.write_all(answer.as_bytes()).await.is_err() || request.is_too_long {
            return;
        }
    }
}

async fn events(write: &mut OwnedWriteHalf, request: &Request, stage: &Shared) -> io::Result<()> {
    let id = request.parameter("subscription_id");
    let Some(mut heard) = stage.attach(id) else {
        return write.write_all(answer("404 Not Found", "", "").as_bytes()).await;
    };
    write.write_all(STREAM.as_bytes()).await?;
    let named = id.is_some();
    while let Some(Out::Message(text, event)) = heard.recv().await {
        let head = match event.filter(|_| named) {
            Some(event) => format!("event: aaep.event\nid: {event}\n"),
            None if named => "event: aaep.event\n".into(),
            None => String::new(),
        };
        write.write_all(format!("{head}data: {text}\n\n").as_bytes()).await?;
    }
    Ok(())
}

async fn respond(request: &Request, stage: &Shared, base: &str) -> String {
    if request.is_too_long {
        return answer("413 Content Too Large", "", "");
    }
    if request.method == "OPTIONS" {
        return answer("204 No Content", ANY_PAGE, "");
    }
    let message = || serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
    if request.asks("POST", "/subscriptions") {
        let accepted = stage.subscribe(message());
        let id = accepted["subscription_id"].as_str().unwrap_or_default();
        let head = format!("{JSON}location: {base}/events?subscription_id={id}\r\n");
        return answer("201 Created", &head, &accepted.to_string());
    }
    if request.asks("POST", "/observer") {
        let said = message();
        stage.announced(said["announced"].as_str().unwrap_or_default());
        return answer("204 No Content", JSON, "");
    }
    if request.asks("GET", "/observer") {
        return match stage.next_order(ORDER_WAIT).await {
            Some(order) => answer("200 OK", JSON, &order.to_string()),
            None => answer("204 No Content", JSON, ""),
        };
    }
    if request.asks("POST", "/replies") || request.asks("POST", "/messages") {
        return match stage.take(message()) {
            Some(told) => answer("200 OK", JSON, &told.to_string()),
            None => answer("204 No Content", JSON, ""),
        };
    }
    if request.asks("GET", "/.well-known/aaep-manifest.json") {
        return answer("200 OK", JSON, &doors::manifest());
    }
    answer("404 Not Found", JSON, "")
}
