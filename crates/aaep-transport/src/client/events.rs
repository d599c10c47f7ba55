//! A stream of events, as a client reads it.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, timeout_at};

use super::{ClientError, Options};
use crate::sse::{Decoder, Frame, RESUMED, RESUMED_ALL};

/// A stream of events. Drop it to close the connection.
pub struct EventStream {
    body: Incoming,
    decoder: Decoder,
    silence: Duration,
    heard: Instant,
    ended: bool,
    resumed: Option<bool>,
    /// Held so that the connection is not taken for finished.
    _connection: SendRequest<Full<Bytes>>,
}

impl EventStream {
    pub(super) fn new(
        response: Response<Incoming>,
        connection: SendRequest<Full<Bytes>>,
        options: &Options,
    ) -> Self {
        let resumed = response.headers().get(RESUMED).map(|how| how == RESUMED_ALL);
        Self {
            resumed,
            body: response.into_body(),
            decoder: Decoder::new(options.max_message),
            silence: options.silence,
            heard: Instant::now(),
            ended: false,
            _connection: connection,
        }
    }

    /// Whether everything that was missed follows, if the server says so; otherwise how things stand.
    pub fn resumed(&self) -> Option<bool> {
        self.resumed
    }

    /// The next event; `None` once the server has ended the stream.
    ///
    /// After [`ClientError::TooLong`], ask again: one event was dropped, and the stream goes on.
    /// Any other error is the end. Dropping the future loses nothing.
    // enforces: W3
    pub async fn next(&mut self) -> Result<Option<Frame>, ClientError> {
        loop {
            if let Some(frame) = self.decoder.next() {
                return frame.map(Some).map_err(ClientError::TooLong);
            }
            if self.ended {
                return Ok(None);
            }
            let lost = |why: String| Err(ClientError::Broken(why));
            match timeout_at(self.heard + self.silence, self.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    self.heard = Instant::now();
                    if let Some(data) = frame.data_ref() {
                        self.decoder.push(data);
                    }
                }
                Ok(None) => self.ended = true,
                Ok(Some(Err(error))) => {
                    self.ended = true;
                    return lost(error.to_string());
                }
                Err(_) => {
                    self.ended = true;
                    return lost(format!("nothing came for {} s", self.silence.as_secs()));
                }
            }
        }
    }

    /// The id to come back with.
    pub fn last_event_id(&self) -> Option<&str> {
        self.decoder.last_id()
    }

    /// How long the server asked us to wait before coming back, if it did.
    pub fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }
}
