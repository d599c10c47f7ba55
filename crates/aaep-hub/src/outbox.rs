//! What waits for one connection: bounded, emptied at the pace of its reader.
//!
//! When it is full the core stops asking the subscription's shaper, which merges what waits and in
//! the end gives the subscription up (I22); nobody else notices (I21, W14).

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use aaep_types::SubscriptionId;
use bytes::{Bytes, BytesMut};

use crate::hub::Hub;

/// Bytes that wait for a connection before its subscription is paused. What the kernel holds for
/// the same connection comes on top.
const FULL_BYTES: usize = 64 * 1024;

/// Bytes that are handed to the connection at once.
const CHUNK_BYTES: usize = 32 * 1024;

/// Frames that a queue has room for while it is empty; more room is given back.
const KEPT_FRAMES: usize = 32;

/// How a stream ended, for its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Closed by the subscriber, or by us with a reason that was recorded.
    Closed,
    /// The subscriber asked for terms that it cannot have; it was told which.
    Rejected,
    /// Another connection of the same principal took it over.
    TakenOver,
    /// The peer is no longer let in.
    Denied,
    /// The hub stops.
    Stopping,
}

#[derive(Default)]
struct State {
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// The core was told that there is no more room.
    full: bool,
    end: Option<End>,
    waker: Option<Waker>,
}

/// The queue of one connection that hears a subscription.
pub(crate) struct Outbox {
    state: Mutex<State>,
    hub: Hub,
    subscription: SubscriptionId,
    /// Tells this connection from others that heard the same subscription before or after.
    serial: u64,
}

impl Outbox {
    pub(crate) fn new(hub: Hub, subscription: SubscriptionId, serial: u64) -> Self {
        Self { state: Mutex::default(), hub, subscription, serial }
    }

    pub(crate) fn subscription(&self) -> SubscriptionId {
        self.subscription
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // enforces: W2, I19
    /// Adds a frame behind those that wait; false when there is no room for another one.
    pub(crate) fn push(&self, frame: Bytes) -> bool {
        let mut state = self.state();
        state.bytes += frame.len();
        state.frames.push_back(frame);
        state.full = state.bytes >= FULL_BYTES;
        let (room, waker) = (!state.full, state.waker.take());
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        room
    }

    /// Whether there is no room for another frame.
    pub(crate) fn is_full(&self) -> bool {
        self.state().full
    }

    /// Bytes that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state().bytes
    }

    /// Nothing more comes; what is there is still sent.
    pub(crate) fn end(&self, end: End) {
        let mut state = self.state();
        state.end.get_or_insert(end);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next bytes to write, several frames at once where they are small; how it ended, when it
    /// has.
    pub(crate) fn poll_chunk(&self, context: &mut Context<'_>) -> Poll<Result<Bytes, End>> {
        let mut state = self.state();
        let Some(first) = state.frames.pop_front() else {
            return match state.end {
                Some(end) => Poll::Ready(Err(end)),
                None => {
                    let same = state.waker.as_ref().is_some_and(|w| w.will_wake(context.waker()));
                    if !same {
                        state.waker = Some(context.waker().clone());
                    }
                    Poll::Pending
                }
            };
        };
        let chunk = if state.frames.is_empty() {
            first
        } else {
            let mut chunk = BytesMut::with_capacity(state.bytes.min(CHUNK_BYTES).max(first.len()));
            chunk.extend_from_slice(&first);
            while let Some(next) =
                state.frames.pop_front_if(|next| chunk.len() + next.len() <= CHUNK_BYTES)
            {
                chunk.extend_from_slice(&next);
            }
            chunk.freeze()
        };
        self.taken(&mut state, chunk.len());
        Poll::Ready(Ok(chunk))
    }

    /// The next frame alone, for transports whose frames are messages.
    pub(crate) fn poll_frame(&self, context: &mut Context<'_>) -> Poll<Result<Bytes, End>> {
        let mut state = self.state();
        match (state.frames.pop_front(), state.end) {
            (Some(frame), _) => {
                self.taken(&mut state, frame.len());
                Poll::Ready(Ok(frame))
            }
            (None, Some(end)) => Poll::Ready(Err(end)),
            (None, None) => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn taken(&self, state: &mut State, bytes: usize) {
        state.bytes = state.bytes.saturating_sub(bytes);
        if state.frames.is_empty() && state.frames.capacity() > KEPT_FRAMES {
            state.frames = VecDeque::new();
        }
        if state.full && state.bytes <= FULL_BYTES / 2 {
            state.full = false;
            let (subscription, serial) = (self.subscription, self.serial);
            self.hub.tell(move |core| core.go_on(subscription, serial));
        }
    }
}

/// A connection that hears a subscription. When it is dropped, the connection is gone (W3).
pub(crate) struct Hearing {
    pub(crate) outbox: std::sync::Arc<Outbox>,
}

impl Drop for Hearing {
    // enforces: W3, H20
    fn drop(&mut self) {
        let (subscription, serial) = (self.outbox.subscription, self.outbox.serial);
        self.outbox.hub.tell(move |core| core.detach(subscription, serial));
    }
}
