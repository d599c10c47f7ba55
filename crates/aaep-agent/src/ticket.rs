//! What an author stores of a parked action.

use std::fmt;
use std::str::FromStr;

use aaep_types::SessionId;

/// Everything that is needed to take up a parked action after a restart of this process: its
/// session, its request, and the key under which it is invoked. Store it with the action before you
/// wait for the decision; written, it is one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) session: SessionId,
    pub(crate) request: String,
    pub(crate) key: String,
}

impl Ticket {
    /// The session to resume.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The request, as the hub names it.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// The key under which the action is invoked, however often: hand it to whatever the action
    /// calls, if that knows idempotency keys.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.session, self.request, self.key)
    }
}

/// This is no ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTicket;

impl fmt::Display for NoTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "This is no ticket: it holds a session, a request and a key, with slashes between.",
        )
    }
}

impl std::error::Error for NoTicket {}

impl FromStr for Ticket {
    type Err = NoTicket;

    fn from_str(text: &str) -> Result<Self, NoTicket> {
        let mut parts = text.split('/');
        let (Some(session), Some(request), Some(key), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NoTicket);
        };
        let word = |text: &str| {
            let sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            !text.is_empty() && text.len() <= 200 && text.bytes().all(sound)
        };
        if !word(request) || !word(key) {
            return Err(NoTicket);
        }
        let session = SessionId::parse(session).map_err(|_| NoTicket)?;
        Ok(Self { session, request: request.to_owned(), key: key.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_read_back_and_nothing_else_is_one() {
        let text = "sess_1/req_2/key-3";
        let ticket: Ticket = text.parse().unwrap();
        assert_eq!(ticket.to_string(), text);
        for bad in
            ["", "a/b", "sess_1/req_2", "sess_1/req_2/k/x", "x/req/k", "sess_1/../k", "sess_1/r/"]
        {
            assert_eq!(bad.parse::<Ticket>(), Err(NoTicket), "{bad}");
        }
    }
}
