//! Just enough HTTP/1.1: a stream of events, and messages.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::world::World;
use super::{Fault, STRANGER};

const MAX_HEAD: u64 = 16 * 1024;
const MAX_BODY: usize = 256 * 1024;

struct Request {
    line: String,
    stranger: bool,
    body: Vec<u8>,
}

/// Serves one connection to its end.
pub(super) async fn connection(stream: TcpStream, world: Arc<World>) {
    let (read, mut write) = stream.into_split();
    let mut reader = BufReader::new(read);
    while let Ok(Some(request)) = read_request(&mut reader).await {
        if request.line.starts_with("GET ") && request.line.contains("/events") {
            let _ = events(&mut write, &world).await;
            return;
        }
        let answer = answer(&request, &world);
        if write.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_request(reader: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Request>> {
    let mut request = Request { line: String::new(), stranger: false, body: Vec::new() };
    let mut length = 0;
    let mut head = reader.take(MAX_HEAD);
    if head.read_line(&mut request.line).await? == 0 {
        return Ok(None);
    }
    loop {
        let mut header = String::new();
        if head.read_line(&mut header).await? == 0 {
            return Ok(None);
        }
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(usize::MAX);
        }
        request.stranger |= header.starts_with("authorization:") && header.ends_with(STRANGER);
    }
    if length > MAX_BODY {
        return Ok(None);
    }
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).await?;
    Ok(Some(request))
}

async fn events(write: &mut OwnedWriteHalf, world: &World) -> io::Result<()> {
    let mut heard = world.listen();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: here\n\n";
    write.write_all(head.as_bytes()).await?;
    while let Some(event) = heard.recv().await {
        write.write_all(format!("data: {event}\n\n").as_bytes()).await?;
    }
    Ok(())
}

fn answer(request: &Request, world: &Arc<World>) -> String {
    let empty = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    if !(request.line.starts_with("POST ") && request.line.contains("/messages")) {
        return empty("404 Not Found");
    }
    let message = serde_json::from_slice::<serde_json::Value>(&request.body).unwrap_or_default();
    if message["kind"] == "user_input" {
        let text = message["text"].as_str().unwrap_or_default().to_owned();
        tokio::spawn(Arc::clone(world).play(text));
        return empty("202 Accepted");
    }
    if !aaep_types::is_valid(&request.body) {
        return empty(match world.fault {
            Some(Fault::CrashesOnGarbage) => "500 Internal Server Error",
            Some(Fault::TakesGarbage) => "204 No Content",
            _ => "400 Bad Request",
        });
    }
    let (known, counted) = world.reply(&message, request.stranger);
    match world.fault {
        Some(Fault::TellsUnknownTokens) if !known => empty("404 Not Found"),
        Some(Fault::TellsUsedTokens) if known && !counted => {
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nused".into()
        }
        Some(Fault::HeaderTellsIgnored) if !counted => {
            "HTTP/1.1 204 No Content\r\nx-ignored: yes\r\n\r\n".into()
        }
        _ => "HTTP/1.1 204 No Content\r\n\r\n".into(),
    }
}
