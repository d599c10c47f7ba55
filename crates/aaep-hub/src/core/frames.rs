//! The bytes of an event on the wire, made once for all connections that hear the same.

use std::sync::Arc;

use aaep_shaping::Prepared;
use aaep_transport::sse;
use bytes::{Bytes, BytesMut};

/// How a connection's messages are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events of the name `aaep.event`.
    Named,
    /// Server-sent events without a name, as published clients read them (decision D27).
    Unnamed,
    /// One message per frame of the transport.
    Message,
}

impl Framing {
    /// A message that is no event: an answer to the handshake.
    pub(crate) fn answer(self, json: &str) -> Bytes {
        self.frame(None, json)
    }

    fn frame(self, id: Option<&str>, json: &str) -> Bytes {
        let name = match self {
            Framing::Message => return Bytes::copy_from_slice(json.as_bytes()),
            Framing::Named => Some("aaep.event"),
            Framing::Unnamed => None,
        };
        let mut frame = BytesMut::with_capacity(json.len() + 96);
        sse::write_frame(&mut frame, name, id, json);
        frame.freeze()
    }
}

/// Frames of what goes out just now.
#[derive(Default)]
pub(crate) struct Frames(Vec<(Arc<str>, Framing, Bytes)>);

/// More different frames than this at once are not worth remembering.
const REMEMBERED: usize = 64;

impl Frames {
    pub(crate) fn frame(&mut self, framing: Framing, event: &Prepared, json: &Arc<str>) -> Bytes {
        // Equal texts of equal shapes are the same text: the shaper made it once.
        let known = self.0.iter().rev().find(|(of, by, _)| Arc::ptr_eq(of, json) && *by == framing);
        if let Some((_, _, frame)) = known {
            return frame.clone();
        }
        let frame = framing.frame(Some(event.event_id().as_str()), json);
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.push((json.clone(), framing, frame.clone()));
        frame
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
