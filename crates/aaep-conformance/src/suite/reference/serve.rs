//! The doors of the reference producer: streams of events, subscriptions, and messages.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc;

use super::ProducerFault;
use super::listener::{Shaper, Terms};
use super::subscriptions::is_stranger;
use super::world::{ListenerMessage, World};
use crate::suite::http::{self, Request, STREAM, answer};

/// Serves one connection to its end.
pub(super) async fn connection(stream: TcpStream, world: Arc<World>) {
    let (read, mut write) = stream.into_split();
    let mut reader = BufReader::new(read);
    while let Ok(Some(request)) = http::read(&mut reader).await {
        if request.asks("GET", "/events") {
            let _ = events(&mut write, &request, &world).await;
            world.left();
            return;
        }
        let answer = respond(&request, &world);
        if write.write_all(answer.as_bytes()).await.is_err() || request.is_too_long {
            return;
        }
    }
}

async fn events(write: &mut OwnedWriteHalf, request: &Request, world: &World) -> io::Result<()> {
    let (mut heard, terms) = match request.parameter("subscription_id") {
        Some(id) => match world.attach(id) {
            Some(found) => found,
            None => return write.write_all(answer("404 Not Found", "", "").as_bytes()).await,
        },
        None => (world.listen(), Terms::plain()),
    };
    let named = request.parameter("subscription_id").is_some();
    write.write_all(STREAM.as_bytes()).await?;
    if let Some(last) = request.header("last-event-id") {
        for event in world.after(last) {
            tell(write, &event, named).await?;
        }
    }
    let mut shaper = Shaper::new(terms, world.fault);
    loop {
        while let Some(event) = shaper.next(Instant::now()) {
            let named = named && world.fault != Some(ProducerFault::NoFrameIds);
            tell(write, &event, named).await?;
        }
        let pause = shaper.pause();
        let waiting = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            heard = heard.recv() => match heard {
                Some(ListenerMessage::Event(event)) => shaper.offer(event),
                Some(ListenerMessage::Terms(terms)) => shaper.terms = terms,
                Some(ListenerMessage::End) | None => return Ok(()),
            },
            () = waiting => {}
        }
    }
}

async fn tell(write: &mut OwnedWriteHalf, event: &Value, named: bool) -> io::Result<()> {
    let id = event["event_id"].as_str().unwrap_or_default();
    let head = if named { format!("event: aaep.event\nid: {id}\n") } else { String::new() };
    write.write_all(format!("{head}data: {event}\n\n").as_bytes()).await
}

fn respond(request: &Request, world: &Arc<World>) -> String {
    let empty = |status: &str| answer(status, "", "");
    let refuses_long = world.fault == Some(ProducerFault::RefusesLongMessages);
    if request.is_too_long || (refuses_long && request.body.len() > 16 * 1024) {
        if world.fault == Some(ProducerFault::BreaksOnLongMessages) {
            world.stop();
        }
        return empty("413 Content Too Large");
    }
    if request.asks("GET", "/.well-known/aaep-manifest.json") {
        return world.manifest();
    }
    if request.asks("POST", "/subscriptions") {
        return world.subscribe(request);
    }
    let on_replies = request.asks("POST", "/replies");
    if !on_replies && !request.asks("POST", "/messages") {
        return empty("404 Not Found");
    }
    let message = serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
    if message["kind"] == "user_input" {
        let text = message["text"].as_str().unwrap_or_default().to_owned();
        tokio::spawn(Arc::clone(world).play(text));
        return empty("202 Accepted");
    }
    let stranger = is_stranger(request);
    if let Some("subscription.renegotiate" | "subscription.close") = message["type"].as_str() {
        return world.change(&message, stranger);
    }
    if !aaep_types::is_valid(&request.body) {
        return empty(match world.fault {
            Some(ProducerFault::CrashesOnGarbage) => "500 Internal Server Error",
            Some(ProducerFault::TakesGarbage) => "204 No Content",
            _ => "400 Bad Request",
        });
    }
    let named = message["subscription_id"].as_str().unwrap_or_default();
    if on_replies && !world.may_name(named, stranger) {
        return empty("204 No Content");
    }
    let stranger = stranger && world.fault != Some(ProducerFault::TakesBorrowed);
    let (known, counted) = world.reply(&message, stranger);
    match world.fault {
        Some(ProducerFault::TellsUnknownTokens) if !known => empty("404 Not Found"),
        Some(ProducerFault::TellsUsedTokens) if known && !counted => answer("200 OK", "", "used"),
        Some(ProducerFault::HeaderTellsIgnored) if !counted => {
            answer("204 No Content", "x-ignored: yes\r\n", "")
        }
        _ => empty("204 No Content"),
    }
}

/// What a listener is told, and where it reads it.
pub(super) type Attached = (mpsc::Receiver<ListenerMessage>, Terms);
