//! The inbox as the tasks of a client share it.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::sync::{Notify, mpsc, watch};
use tracing::warn;

use super::clock;
use crate::inbox::{Connection, Inbox, InboxInput, Outgoing};
use crate::notification::Notification;

pub(super) struct Shared {
    inbox: Mutex<Inbox>,
    /// Where messages to each hub go.
    outgoing: Vec<mpsc::Sender<Outgoing>>,
    /// Who takes the notifications: there may be something to tell.
    reader: AtomicWaker,
    /// Something may be due at another time than before.
    deadline: Notify,
    /// There may be room to receive more.
    room: Notify,
    closing: watch::Sender<bool>,
    finished: AtomicBool,
}

impl Shared {
    pub(super) fn new(inbox: Inbox, outgoing: Vec<mpsc::Sender<Outgoing>>) -> Self {
        Self {
            inbox: Mutex::new(inbox),
            outgoing,
            reader: AtomicWaker::new(),
            deadline: Notify::new(),
            room: Notify::new(),
            closing: watch::Sender::new(false),
            finished: AtomicBool::new(false),
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the inbox, and everything that follows from it.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Inbox, u64) -> T) -> T {
        let result = self.look(act);
        self.pump();
        self.deadline.notify_one();
        result
    }

    /// Does something with the inbox from which nothing follows at once.
    pub(super) fn look<T>(&self, act: impl FnOnce(&mut Inbox, u64) -> T) -> T {
        let mut inbox = self.inbox();
        // Read under the lock, so that time does not go back for the inbox.
        act(&mut inbox, clock::now_ms())
    }

    pub(super) fn handle(&self, input: InboxInput<'_>) {
        self.with(|inbox, now| inbox.handle(input, now));
    }

    /// Carries away what is to be sent and noted.
    pub(super) fn pump(&self) {
        let mut inbox = self.inbox();
        while let Some(send) = inbox.poll_send() {
            let ticket = send.ticket;
            let way = self.outgoing.get(send.connection.index());
            if way.is_none_or(|way| way.try_send(send).is_err()) {
                inbox.handle(InboxInput::NotSent { ticket, perhaps: false }, clock::now_ms());
            }
        }
        while let Some(note) = inbox.poll_log() {
            warn!(hub = %note.hub, rule = note.rule, "{}", note.text);
        }
        drop(inbox);
        self.reader.wake();
    }

    /// A message came. Waits first while there is no room for it: nothing critical is left out.
    pub(super) async fn receive(&self, connection: Connection, bytes: &[u8]) {
        loop {
            let room = self.room.notified();
            if !self.inbox().is_full() {
                break;
            }
            if self.is_closing() {
                return;
            }
            room.await;
        }
        self.handle(InboxInput::Message { connection, bytes });
    }

    pub(super) fn try_next(&self) -> Option<Notification> {
        let mut inbox = self.inbox();
        let full = inbox.is_full();
        let notification = inbox.poll_notification(clock::now_ms());
        if full && !inbox.is_full() {
            self.room.notify_waiters();
        }
        notification
    }

    pub(super) async fn next(&self) -> Option<Notification> {
        poll_fn(|context| self.poll_next(context)).await
    }

    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Notification>> {
        // Before looking: whatever comes after the look wakes this task.
        self.reader.register(context.waker());
        if let Some(notification) = self.try_next() {
            // What is held back by the pace comes when the clock says so.
            self.deadline.notify_one();
            return Poll::Ready(Some(notification));
        }
        match self.finished.load(Ordering::Acquire) {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    }

    pub(super) async fn deadline_changed(&self) {
        self.deadline.notified().await;
    }

    /// Waits until the client is closed.
    pub(super) async fn until_closing(&self) {
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    pub(super) fn close(&self) {
        self.closing.send_replace(true);
        self.room.notify_waiters();
    }

    pub(super) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Nothing more will come.
    pub(super) fn finish(&self) {
        self.finished.store(true, Ordering::Release);
        self.reader.wake();
    }
}
