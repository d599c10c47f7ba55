//! Subscribers inside this process: the same core, without a socket between.

use std::future::poll_fn;

use aaep_engine::{Principal, SubscriberMessage};
use aaep_types::SubscriptionId;
use bytes::Bytes;

use crate::Fault;
use crate::access::AuthenticatedPeer;
use crate::core::Framing;
use crate::hub::Hub;
use crate::outbox::Hearing;
use crate::presence::Arrival;

/// Somebody in this process who hears what the hub says, and may answer.
pub struct Listening {
    replier: Replier,
    hearing: Hearing,
}

/// Sends the replies of somebody in this process.
#[derive(Clone)]
pub struct Replier {
    hub: Hub,
    known: AuthenticatedPeer,
}

impl Hub {
    /// Hears everything that this principal may hear, without a handshake (decision D4).
    pub async fn listen_inside(&self, peer: &Principal) -> Result<Listening, Fault> {
        let known = AuthenticatedPeer::inside(peer.clone());
        let listener = known.clone();
        let heard = self.look(move |core| core.listen(&listener, Framing::Message)).await;
        match heard {
            Ok(Ok(heard)) => {
                let replier = Replier { hub: self.clone(), known };
                Ok(Listening { replier, hearing: heard.hearing })
            }
            Ok(Err(refusal)) => Err(Fault::System { what: refusal.text }),
            Err(_) => Err(Fault::System { what: "The hub has stopped.".into() }),
        }
    }
}

impl Listening {
    /// The subscription to name in replies.
    pub fn subscription(&self) -> SubscriptionId {
        self.hearing.outbox.subscription()
    }

    /// The next message, as JSON; `None` at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        poll_fn(|context| self.hearing.outbox.poll_frame(context)).await.ok()
    }

    /// Sends replies, also while something is heard.
    pub fn replier(&self) -> &Replier {
        &self.replier
    }
}

impl Replier {
    /// Sends a reply. It is durable, if it counted, when this returns true; otherwise it could not be
    /// kept and may be sent again.
    pub async fn send(&self, message: Bytes) -> bool {
        let known = self.known.clone();
        let Ok(message) = SubscriberMessage::parse(&message) else { return false };
        match self.hub.call(move |core| core.message(&known, message, &Arrival::default())).await {
            Ok(Ok(taken)) => taken.answered().await.is_ok(),
            _ => false,
        }
    }
}
