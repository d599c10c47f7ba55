//! Reading the body of a request, with a bound on size and time.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::timeout;

/// Why a body could not be read.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyError {
    /// Longer than this many bytes: 413.
    TooLong(usize),
    /// Not complete within the deadline: 408.
    TooSlow(Duration),
    /// The connection broke, or the body is not what its head announced: 400, if anyone listens.
    Broken(String),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(max) => write!(f, "the body is longer than {max} bytes"),
            Self::TooSlow(wait) => write!(f, "the body took longer than {} s", wait.as_secs()),
            Self::Broken(why) => write!(f, "the body broke off: {why}"),
        }
    }
}

impl std::error::Error for BodyError {}

/// Reads a whole body of at most `max_bytes`, within `deadline` in all.
///
/// A body that announces too much is refused before a byte of it is read. One that announces
/// nothing is refused as soon as it is too long; what it holds until then is bounded by
/// `max_bytes` and the size of one read.
pub async fn read_body<B>(body: B, max_bytes: usize, deadline: Duration) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: fmt::Display,
{
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(BodyError::TooLong(max_bytes));
    }
    match timeout(deadline, collect(body, max_bytes)).await {
        Ok(result) => result,
        Err(_) => Err(BodyError::TooSlow(deadline)),
    }
}

/// Reads a body and forgets it, so that its sender gets to read why it was refused: a connection that
/// is closed with unread bytes takes the answer away with it. Gives up after `deadline`.
#[cfg(feature = "server")]
pub async fn discard_body<B>(body: B, deadline: Duration)
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let _ = timeout(deadline, async { while let Some(Ok(_)) = body.frame().await {} }).await;
}

async fn collect<B>(body: B, max_bytes: usize) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: fmt::Display,
{
    let mut body = pin!(body);
    let mut only = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue }; // trailers
        // enforces: W1, W6
        if only.len() + all.len() + data.len() > max_bytes {
            return Err(BodyError::TooLong(max_bytes));
        }
        if only.is_empty() && all.is_empty() {
            only = data; // most bodies come in one piece, and are not copied
        } else {
            all.extend_from_slice(&std::mem::take(&mut only));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { only } else { all.freeze() })
}
