//! What an author stores of a session, and of a parked action.

use std::fmt;
use std::str::FromStr;

use aaep_transport::client::SessionSecret;
use aaep_types::SessionId;

/// Everything that is needed to take up a session after a restart of this process: its id, and the
/// secret that shows the hub whose it is, if the agent has no token. Written, it is one word; anyone who
/// reads it can go on with the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTicket {
    pub(crate) id: SessionId,
    pub(crate) secret: Option<SessionSecret>,
}

impl SessionTicket {
    /// The session.
    pub fn id(&self) -> SessionId {
        self.id
    }
}

impl From<SessionId> for SessionTicket {
    fn from(id: SessionId) -> Self {
        Self { id, secret: None }
    }
}

impl From<&Ticket> for SessionTicket {
    fn from(ticket: &Ticket) -> Self {
        ticket.session.clone()
    }
}

impl fmt::Display for SessionTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)?;
        self.secret.as_ref().map_or(Ok(()), |secret| write!(f, "/{}", secret.as_str()))
    }
}

impl FromStr for SessionTicket {
    type Err = NoTicket;

    fn from_str(text: &str) -> Result<Self, NoTicket> {
        let (id, secret) = match text.split_once('/') {
            Some((id, secret)) => (id, Some(SessionSecret::parse(secret).ok_or(NoTicket)?)),
            None => (text, None),
        };
        Ok(Self { id: SessionId::parse(id).map_err(|_| NoTicket)?, secret })
    }
}

/// Everything that is needed to take up a parked action after a restart of this process: its
/// session, its request, and the key under which it is invoked. Store it with the action before you
/// wait for the decision; written, it is one word. Without a token the session's secret is in it, so
/// keep it where only this agent reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) session: SessionTicket,
    pub(crate) request: String,
    pub(crate) key: String,
}

impl Ticket {
    /// The session to resume.
    pub fn session(&self) -> SessionTicket {
        self.session.clone()
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
        let SessionTicket { id, secret } = &self.session;
        write!(f, "{id}/{}/{}", self.request, self.key)?;
        secret.as_ref().map_or(Ok(()), |secret| write!(f, "/{}", secret.as_str()))
    }
}

/// This is no ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTicket;

impl fmt::Display for NoTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("This is no ticket of a session, or of an action that was parked.")
    }
}

impl std::error::Error for NoTicket {}

impl FromStr for Ticket {
    type Err = NoTicket;

    fn from_str(text: &str) -> Result<Self, NoTicket> {
        let mut parts = text.splitn(4, '/');
        let (Some(session), Some(request), Some(key)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(NoTicket);
        };
        let secret = parts.next().map(|text| SessionSecret::parse(text).ok_or(NoTicket));
        let word = |text: &str| {
            let sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            !text.is_empty() && text.len() <= 200 && text.bytes().all(sound)
        };
        if !word(request) || !word(key) {
            return Err(NoTicket);
        }
        let id = SessionId::parse(session).map_err(|_| NoTicket)?;
        let session = SessionTicket { id, secret: secret.transpose()? };
        Ok(Self { session, request: request.to_owned(), key: key.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_read_back_and_nothing_else_is_one() {
        let secret = SessionSecret::generate().unwrap();
        let with_secret = format!("sess_1/req_2/key-3/{}", secret.as_str());
        for text in ["sess_1/req_2/key-3", &with_secret] {
            let ticket: Ticket = text.parse().unwrap();
            assert_eq!(ticket.to_string(), text);
            let session = ticket.session();
            assert_eq!(session.to_string().parse(), Ok(session));
            assert!(!format!("{ticket:?}").contains(secret.as_str()));
        }
        for bad in
            ["", "a/b", "sess_1/req_2", "sess_1/req_2/k/x", "x/req/k", "sess_1/../k", "sess_1/r/"]
        {
            assert_eq!(bad.parse::<Ticket>(), Err(NoTicket), "{bad}");
        }
        assert_eq!("sess_1/aaeps_".parse::<SessionTicket>(), Err(NoTicket));
    }
}
