//! Connections: the [inbox](crate::inbox) with sockets and a clock around it.
//!
//! A [`Client`] speaks with several hubs at once, over HTTP, WebSocket, gRPC, Unix sockets or stdio. It comes back
//! by itself after a lost connection, with growing pauses, and goes on where it left off.
//!
//! ```no_run
//! use aaep_subscriber::Notification;
//! use aaep_subscriber::client::{self, Client};
//! use aaep_subscriber::inbox::{Answer, Settings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (client, mut notifications) = Client::connect(client::find_local(), Settings::default());
//! while let Some(notification) = notifications.next().await {
//!     if let Notification::Asked(request) = notification {
//!         println!("{request:?}");
//!         client.answer(request.id, Answer::Reject)?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![allow(clippy::disallowed_methods)] // this module is the edge: clocks, sockets, files, surroundings

mod clock;
mod discovery;
mod http;
mod hub;
mod link;
mod shared;
mod trust;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::inbox::{Answer, Bounds, Doing, Inbox, InboxError, InboxInput, Settings};
use crate::notification::Notification;
use crate::request::{Request, RequestHandle};
use shared::Shared;

pub use discovery::find_local;
pub use hub::{Address, Hub, NoAddress};
pub use trust::{KNOWN_AGENTS_FILE, KnownFile, Trust};

/// How long goodbye may take.
const GOODBYE: Duration = Duration::from_secs(3);

/// Messages that wait to be sent to one hub.
const OUTGOING: usize = 64;

/// The longest time without looking at the clock: a machine may have slept.
const LOOK_UP: Duration = Duration::from_secs(5);

/// A listener that is connected. Cheap to clone; when the last clone and the [`Notifications`] are
/// gone, the connections end.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    tasks: Arc<Tasks>,
}

/// What happens, in the order in which it shall be heard: a [`Stream`], with a
/// [`next`](Self::next) of its own for those who import no extension trait.
#[must_use = "what is not taken from here is not heard"]
pub struct Notifications {
    shared: Arc<Shared>,
    _tasks: Arc<Tasks>,
}

/// What runs for a client; it ends with it.
struct Tasks(Mutex<Vec<JoinHandle<()>>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

impl Client {
    /// Connects to these hubs, and keeps at it. Whether it works is among the notifications.
    ///
    /// Call it inside a tokio runtime.
    pub fn connect(hubs: Vec<Hub>, settings: Settings) -> (Self, Notifications) {
        Self::connect_with(hubs, settings, Bounds::default())
    }

    /// The same with other bounds.
    pub fn connect_with(
        hubs: Vec<Hub>,
        settings: Settings,
        bounds: Bounds,
    ) -> (Self, Notifications) {
        let mut inbox = Inbox::new(settings, bounds, clock::unix_ms_at_zero());
        let mut outgoing = Vec::new();
        let mut ways = Vec::new();
        for hub in hubs {
            let connection = inbox.add(&hub.name, clock::now_ms());
            let (sender, receiver) = mpsc::channel(OUTGOING);
            outgoing.push(sender);
            ways.push((connection, hub, receiver));
        }
        let shared = Arc::new(Shared::new(inbox, outgoing));
        let mut tasks = vec![tokio::spawn(keep_time(shared.clone()))];
        for (connection, hub, receiver) in ways {
            let shared = shared.clone();
            tasks.push(match hub.address {
                Address::Http(_) => tokio::spawn(http::run(shared, connection, hub, receiver)),
                _ => tokio::spawn(link::run(shared, connection, hub, receiver)),
            });
        }
        let tasks = Arc::new(Tasks(Mutex::new(tasks)));
        let notifications = Notifications { shared: shared.clone(), _tasks: tasks.clone() };
        (Self { shared, tasks }, notifications)
    }

    /// The user answers a request. While the hub is away, the answer is kept, and sent as long as
    /// the request's time allows.
    pub fn answer(&self, request: RequestHandle, answer: Answer) -> Result<(), InboxError> {
        self.shared.with(|inbox, now| inbox.answer(request, answer, now))
    }

    /// The user needs more time for a request: this long from now, in whole seconds.
    pub fn more_time(&self, request: RequestHandle, time: Duration) -> Result<(), InboxError> {
        self.shared.with(|inbox, now| inbox.more_time(request, time, now))
    }

    /// The user types their PIN, so that a yes to this request counts; what becomes of it is among the
    /// notifications.
    pub fn unlock(
        &self,
        request: RequestHandle,
        pin: &aaep_types::presence::Pin<'_>,
    ) -> Result<(), InboxError> {
        self.shared.with(|inbox, now| inbox.unlock(request, pin, now))
    }

    /// Whether a PIN that was typed still counts for this request.
    pub fn is_unlocked(&self, request: RequestHandle) -> bool {
        self.shared.look(|inbox, now| inbox.is_unlocked(request, now))
    }

    /// The user stops the agent of a session.
    pub fn stop(&self, session_id: &str) -> Result<(), InboxError> {
        self.shared.with(|inbox, now| inbox.stop(session_id, now))
    }

    /// The requests that wait for the user, in the order of asking.
    pub fn open_requests(&self) -> Vec<Arc<Request>> {
        self.shared.look(|inbox, _| inbox.open_requests())
    }

    /// What each live session does now.
    pub fn doing(&self) -> Vec<Doing> {
        self.shared.look(|inbox, _| inbox.doing())
    }

    /// Other terms from now on, with every hub.
    pub fn renegotiate(&self, settings: Settings) -> Result<(), InboxError> {
        self.shared.with(|inbox, now| inbox.renegotiate(settings, now))
    }

    /// What is in force.
    pub fn settings(&self) -> Settings {
        self.shared.look(|inbox, _| inbox.settings().clone())
    }

    /// How long a request still waits.
    pub fn time_left(&self, request: &Request) -> Duration {
        request.time_left(clock::now_ms())
    }

    /// The clock by which deadlines are given, now, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    /// Says goodbye to every hub (H26), and ends. Notifications that wait can still be taken.
    pub async fn close(&self) {
        self.shared.with(|inbox, now| inbox.close(now));
        self.shared.close();
        let tasks =
            std::mem::take(&mut *self.tasks.0.lock().unwrap_or_else(PoisonError::into_inner));
        let aborts: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let all = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        if tokio::time::timeout(GOODBYE, all).await.is_err() {
            aborts.iter().for_each(tokio::task::AbortHandle::abort);
        }
        self.shared.finish();
    }
}

impl Notifications {
    /// The next thing to tell; `None` once the client is closed. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Notification> {
        self.shared.next().await
    }

    /// The next thing to tell, if there is one just now.
    pub fn try_next(&mut self) -> Option<Notification> {
        self.shared.try_next()
    }
}

impl Stream for Notifications {
    type Item = Notification;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notification>> {
        self.shared.poll_next(context)
    }
}

/// Tells the inbox what time it is when something is due.
async fn keep_time(shared: Arc<Shared>) {
    loop {
        let wait = shared.look(|inbox, now| {
            inbox.handle(InboxInput::Time, now);
            inbox.next_deadline(now).map(|at| Duration::from_millis(at - now))
        });
        shared.pump();
        tokio::select! {
            () = tokio::time::sleep(wait.unwrap_or(LOOK_UP).min(LOOK_UP)) => {}
            () = shared.deadline_changed() => {}
            () = shared.until_closing() => return,
        }
    }
}
