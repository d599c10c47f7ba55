//! A hub over HTTP: events as a stream, everything else as requests (B.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aaep_transport::client::{ClientError, EventStream, FullResponse, HttpClient};
use aaep_types::{Message, SubscriptionId, Timestamp};
use http::StatusCode;
use tokio::sync::mpsc;
use tracing::debug;

use super::clock;
use super::hub::{Address, Hub};
use super::shared::Shared;
use crate::inbox::{Backoff, Connection, InboxInput, Outgoing, Purpose, SubscriptionState};

/// Where a hub has its manifest.
const MANIFEST: &str = ".well-known/aaep-manifest.json";

/// What ended a stream, or kept it from beginning.
pub(super) struct Broken {
    pub(super) why: String,
    /// How long the hub wants us to wait.
    pub(super) wait_ms: u64,
}

impl Broken {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), wait_ms: 0 }
    }
}

impl From<ClientError> for Broken {
    fn from(error: ClientError) -> Self {
        Self::new(error.to_string())
    }
}

struct Http {
    shared: Arc<Shared>,
    connection: Connection,
    client: HttpClient,
    hub: Hub,
    /// The hub knows no handshake (D4).
    bare: AtomicBool,
}

/// Listens to one hub until the client is closed.
pub(super) async fn run(
    shared: Arc<Shared>,
    connection: Connection,
    hub: Hub,
    outgoing: mpsc::Receiver<Outgoing>,
) {
    let Address::Http(base) = &hub.address else { return };
    let client = match HttpClient::new(base, hub.options.clone()) {
        Ok(client) => client,
        Err(error) => {
            // Nothing that is tried again will change this.
            let why = error.to_string();
            return shared.handle(InboxInput::Lost { connection, why: &why });
        }
    };
    let http = Http { shared, connection, client, hub, bare: AtomicBool::new(false) };
    // Posting goes on when listening ends: goodbye has to be said.
    tokio::join!(http.post_all(outgoing), async {
        tokio::select! {
            () = http.listen_on() => {}
            () = http.shared.until_closing() => {}
        }
    });
}

impl Http {
    /// Comes back for ever, with growing pauses.
    async fn listen_on(&self) {
        let (mut backoff, mut last_event) = (Backoff::default(), None);
        loop {
            let broken = self.listen(&mut backoff, &mut last_event).await;
            let (connection, why) = (self.connection, broken.why.as_str());
            self.shared.handle(InboxInput::Lost { connection, why });
            let wait = backoff.wait_ms(clock::jitter(), broken.wait_ms);
            debug!(why, wait, "the hub is away");
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
    }

    async fn listen(&self, backoff: &mut Backoff, last_event: &mut Option<String>) -> Broken {
        let mut stream = match self.attach(last_event.as_deref()).await {
            Ok(stream) => stream,
            Err(broken) => return broken,
        };
        backoff.reset();
        let connection = self.connection;
        // enforces: I32
        let anew = !stream.resumed().unwrap_or(last_event.is_some());
        if self.bare.load(Ordering::Relaxed) {
            self.shared.handle(InboxInput::AttachedBare { connection });
        } else if anew {
            self.shared.handle(InboxInput::AttachedAnew { connection });
        } else {
            self.shared.handle(InboxInput::Attached { connection });
        }
        loop {
            match stream.next().await {
                Ok(Some(frame)) => {
                    self.shared.receive(connection, frame.data.as_bytes()).await;
                    if frame.id.is_some() {
                        *last_event = frame.id;
                    }
                    if let SubscriptionState::Ended | SubscriptionState::Refused { .. } =
                        self.standing()
                    {
                        return Broken::new("the hub ended the subscription");
                    }
                }
                Ok(None) => return Broken::new("the hub ended the stream"),
                Err(ClientError::TooLong(_)) => {
                    self.shared.handle(InboxInput::TooLong { connection });
                }
                Err(error) => return error.into(),
            }
        }
    }

    fn standing(&self) -> SubscriptionState {
        self.shared.look(|inbox, _| inbox.standing(self.connection))
    }

    /// Opens the stream of the subscription that there is, or of a new one, after the event that was
    /// heard last.
    async fn attach(&self, last_event: Option<&str>) -> Result<EventStream, Broken> {
        if let SubscriptionState::Subscribed(id) = self.standing()
            && !self.bare.load(Ordering::Relaxed)
        {
            self.is_still_itself().await?;
            match self.client.events(&path(id), last_event).await {
                Err(ClientError::Refused(StatusCode::NOT_FOUND, _)) => {
                    self.shared.handle(InboxInput::Forgotten { connection: self.connection });
                }
                other => return Ok(other?),
            }
        }
        match self.subscribe().await? {
            Some(id) => {
                self.bare.store(false, Ordering::Relaxed);
                Ok(self.client.events(&path(id), last_event).await?)
            }
            None => {
                self.bare.store(true, Ordering::Relaxed);
                Ok(self.client.events("events", last_event).await?)
            }
        }
    }

    // enforces: S7
    /// Looks at who is there after a break, by the manifest at its address: no handshake follows, and
    /// somebody else may listen there by now.
    async fn is_still_itself(&self) -> Result<(), Broken> {
        let Some(trust) = &self.hub.trust else { return Ok(()) };
        if !trust.expects_signature(&self.hub).map_err(not_believed)? {
            return Ok(());
        }
        let Address::Http(base) = &self.hub.address else { return Ok(()) };
        let origin = base.match_indices('/').nth(2).map_or(&**base, |(at, _)| &base[..at]);
        let client = HttpClient::new(origin, self.hub.options.clone())?;
        let mut headers = http::HeaderMap::new();
        headers.insert(http::header::ACCEPT, http::HeaderValue::from_static("application/jose"));
        let answer = client.request(http::Method::GET, MANIFEST, headers, Vec::new()).await?;
        let signed = std::str::from_utf8(&answer.body).ok();
        let signed = signed.filter(|_| answer.status == StatusCode::OK);
        trust.judge_signed(&self.hub, None, signed).map(drop).map_err(not_believed)
    }

    /// Asks for a subscription, for less if need be (X8); `None` where nobody knows of handshakes.
    async fn subscribe(&self) -> Result<Option<SubscriptionId>, Broken> {
        loop {
            let request = self.shared.look(|inbox, now| inbox.begin(self.connection, now));
            let answer = self.client.post("subscriptions", request).await?;
            self.note_date(&answer);
            let unknown = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
            if unknown.contains(&answer.status) {
                // A hub that has to sign cannot do without the handshake.
                if let Some(trust) = &self.hub.trust {
                    trust.judge_signed(&self.hub, None, None).map_err(not_believed)?;
                }
                return Ok(None);
            }
            let is_answer = matches!(
                Message::parse(&answer.body),
                Ok(Message::Accepted(_) | Message::Rejected(_))
            );
            if answer.status.is_success() || is_answer {
                identify(&self.shared, self.connection, &self.hub, &answer.body)?;
                self.shared.receive(self.connection, &answer.body).await;
            }
            match self.standing() {
                SubscriptionState::Subscribed(id) => return Ok(Some(id)),
                SubscriptionState::Refused { again_now: true, .. } => {}
                SubscriptionState::Refused { retry_after_ms, why, .. } => {
                    return Err(Broken { why, wait_ms: retry_after_ms });
                }
                _ => return Err(refused(&answer)),
            }
        }
    }

    /// Sends what is to be sent, one after the other, until goodbye.
    async fn post_all(&self, mut outgoing: mpsc::Receiver<Outgoing>) {
        loop {
            let send = tokio::select! {
                biased;
                send = outgoing.recv() => send,
                () = self.shared.until_closing() => outgoing.try_recv().ok(),
            };
            let Some(send) = send else { return };
            let (ticket, purpose) = (send.ticket, send.purpose);
            let path = if self.bare.load(Ordering::Relaxed) { "messages" } else { "replies" };
            let input = match self.client.post(path, send.json).await {
                Ok(answer) => {
                    self.note_date(&answer);
                    let answers = matches!(purpose, Purpose::Renegotiate | Purpose::Unlock);
                    if answers && answer.status == StatusCode::OK {
                        self.shared.receive(self.connection, &answer.body).await;
                    }
                    arrived(&answer, ticket)
                }
                Err(error) => {
                    let unsent =
                        matches!(error, ClientError::Unreachable(_) | ClientError::Stranger(_));
                    let perhaps = !unsent;
                    InboxInput::NotSent { ticket, perhaps }
                }
            };
            self.shared.handle(input);
            if purpose == Purpose::Close || (self.shared.is_closing() && outgoing.is_empty()) {
                return;
            }
        }
    }

    /// D9: stamps and deadlines follow the hub's clock.
    fn note_date(&self, answer: &FullResponse) {
        let date = answer.headers.get("date").and_then(|date| date.to_str().ok());
        if let Some(unix_ms) = date.and_then(read_date) {
            self.shared.handle(InboxInput::ServerTime { connection: self.connection, unix_ms });
        }
    }
}

// enforces: S7
/// Looks at who accepted a subscription, before anything that it says is heard.
pub(super) fn identify(
    shared: &Shared,
    connection: Connection,
    hub: &Hub,
    answer: &[u8],
) -> Result<(), Broken> {
    let Some(trust) = &hub.trust else { return Ok(()) };
    match trust.judge(hub, answer) {
        Ok(Some(identity)) => {
            shared.handle(InboxInput::Identified { connection, identity: &identity });
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(why) => Err(not_believed(why)),
    }
}

/// Nothing that is tried again soon will change this.
fn not_believed(why: String) -> Broken {
    Broken { why, wait_ms: 60_000 }
}

fn path(id: SubscriptionId) -> String {
    format!("events?subscription_id={id}")
}

/// A refusal that is no answer to the handshake.
fn refused(answer: &FullResponse) -> Broken {
    let text = aaep_types::json::Members::whole(std::str::from_utf8(&answer.body).unwrap_or(""), 8);
    let text = text.ok().flatten().and_then(|members| Some(members.text("text")?.into_owned()));
    let wait = answer.headers.get("retry-after").and_then(|wait| wait.to_str().ok());
    let seconds = wait.and_then(|wait| wait.parse::<u64>().ok()).unwrap_or(0).min(3600);
    let why = match text {
        Some(text) => format!("the hub answered {}: {text}", answer.status),
        None => format!("the hub answered {}", answer.status),
    };
    Broken { why, wait_ms: seconds * 1000 }
}

/// D5: one answer for every reply; others say that it was not taken.
fn arrived(answer: &FullResponse, ticket: crate::inbox::Ticket) -> InboxInput<'static> {
    match answer.status {
        StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::TOO_MANY_REQUESTS
        | StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN => InboxInput::NotSent { ticket, perhaps: false },
        _ => InboxInput::Sent(ticket),
    }
}

/// Reads the date of an answer, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn read_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split(' ').skip(1);
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (time, zone) = (words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    if zone != "GMT" {
        return None;
    }
    let stamp = Timestamp::parse(&format!("{year}-{month:02}-{day}T{time}Z")).ok()?;
    Some(stamp.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: D9
    #[test]
    fn the_date_of_an_answer_is_read() {
        assert_eq!(read_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777_000));
        for wrong in ["", "Sun, 06 Nov 1994", "Sunday, 06-Nov-94 08:49:37 GMT", "a b c d e f"] {
            assert_eq!(read_date(wrong), None, "{wrong}");
        }
    }
}
