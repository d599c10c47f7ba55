//! Handshake messages, read and judged before the producer is reached (§5). What they ask for may be
//! long, and nobody else is to wait while it is read (I29).

use aaep_shaping::Terms;
use aaep_types::handshake::Capabilities;
use aaep_types::json::{Members, Raw, Writer};
use aaep_types::resume::{self, LeftOff};
use aaep_types::{EventId, Message, SubscriptionId, recorded, rule};
use std::sync::Arc;

use crate::negotiate::{Agreement, Offer, Rejection, accepted, agree, negotiate, too_much};
use crate::principal::Principal;
use crate::refusal::{Blame, Refusal};

/// A handshake message of a subscriber.
#[derive(Clone, Debug)]
pub struct Handshake(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Request {
        judged: Judged,
        /// Whether the answer may say that what was missed follows.
        resumes: bool,
    },
    Renegotiate {
        subscription: SubscriptionId,
        renegotiation: Renegotiation,
    },
    Close {
        subscription: SubscriptionId,
    },
}

/// What becomes of what was asked for.
pub(crate) type Judged = Result<Proposal, Rejection>;

/// New terms: only what they name changes, so they are judged together with what was asked before.
#[derive(Clone, Debug)]
pub(crate) struct Renegotiation {
    wanted: Box<str>,
    judged: Option<(Arc<str>, Judged)>,
}

/// Terms that can be agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    /// What was asked for, as JSON.
    pub(crate) asked: Arc<str>,
    pub(crate) terms: Terms,
    pub(crate) rights: Rights,
    /// The answer, before and after the subscription's id.
    answer: (Box<str>, Box<str>),
    /// Where the subscriber left off, and what stands after the id if it goes on from there.
    left_off: Option<Box<(LeftOff, Box<str>)>>,
}

impl Proposal {
    pub(crate) fn of(asked: &Capabilities<'_>, agreement: Agreement<'_>, offer: &Offer) -> Self {
        let id = SubscriptionId::from_bits(0);
        // Nothing that others chose stands before the id.
        let halves = |agreement: &Agreement<'_>| -> (Box<str>, Box<str>) {
            let answer = accepted(id, agreement, offer);
            let (before, after) = answer.split_once(id.as_str()).unwrap_or_default();
            (before.into(), after.into())
        };
        let left_off = resume::left_off(&agreement.honored);
        let left_off = left_off.map(|left_off| Box::new((left_off, halves(&agreement).1)));
        let mut agreement = agreement;
        agreement.honored.other.retain(|(name, _)| name != resume::PREFIX);
        Self {
            asked: asked.to_json().into(),
            terms: Terms::new(&agreement.honored),
            rights: Rights::of(&agreement.honored),
            answer: halves(&agreement),
            left_off,
        }
    }

    /// Where the subscriber left off.
    pub(crate) fn left_off(&self) -> Option<LeftOff> {
        self.left_off.as_ref().map(|left_off| left_off.0)
    }

    /// The answer to send for this subscription.
    pub(crate) fn answer(&self, id: SubscriptionId) -> Negotiated {
        let (before, after) = &self.answer;
        Negotiated::Accepted { subscription: id, json: [before, id.as_str(), after].concat() }
    }

    /// The same, if what was missed follows.
    pub(crate) fn answer_resumed(&self, id: SubscriptionId) -> Negotiated {
        let (before, _) = &self.answer;
        match &self.left_off {
            Some(left_off) => {
                let json = [before, id.as_str(), &left_off.1].concat();
                Negotiated::Accepted { subscription: id, json }
            }
            None => self.answer(id),
        }
    }
}

/// What terms mean for answers, while somebody is attached.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rights {
    pub(crate) confirms: bool,
    pub(crate) clarifies: bool,
    /// D32: how many times as long its user needs.
    pub(crate) time_factor: u64,
}

impl Rights {
    fn of(honored: &Capabilities<'_>) -> Self {
        Self {
            confirms: honored.replies_to_confirmations(),
            clarifies: honored.replies_to_clarifications(),
            time_factor: time_factor(honored),
        }
    }
}

/// The answer to a handshake message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Negotiated {
    /// Agreed.
    Accepted {
        /// On which subscription.
        subscription: SubscriptionId,
        /// The message to send.
        json: String,
    },
    /// Refused, and why.
    Rejected(Rejection),
    /// There is nothing to send.
    Silent,
}

impl Negotiated {
    /// The message to send, if there is one.
    pub fn json(self) -> Option<String> {
        match self {
            Self::Accepted { json, .. } => Some(json),
            Self::Rejected(rejection) => Some(rejection.to_json()),
            Self::Silent => None,
        }
    }

    /// Whether something was refused.
    pub fn is_rejected(&self) -> bool {
        matches!(self, Self::Rejected(_))
    }
}

impl From<Rejection> for Negotiated {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl Handshake {
    // enforces: I29
    /// Reads a handshake message of this principal. The work is proportional to its length, so do
    /// this before the producer is taken.
    pub fn parse(bytes: &[u8], peer: &Principal, offer: &Offer) -> Result<Self, Refusal> {
        Self::of(Message::parse(bytes)?, peer, offer)
    }

    /// Takes a message that was read, if it is one of the handshake.
    pub fn of(message: Message<'_>, peer: &Principal, offer: &Offer) -> Result<Self, Refusal> {
        Ok(Self(match message {
            Message::Request(request) => {
                let agreement = negotiate(&request, peer, offer);
                let proposal = |agreement| Proposal::of(&request.capabilities, agreement, offer);
                Kind::Request { judged: agreement.map(proposal), resumes: false }
            }
            Message::Renegotiate(wanted) => {
                let subscription = wanted.subscription_id;
                let wanted = wanted.capabilities.to_json().into();
                let renegotiation = Renegotiation { wanted, judged: None };
                Kind::Renegotiate { subscription, renegotiation }
            }
            Message::Close(close) => Kind::Close { subscription: close.subscription_id },
            _ => {
                let text = "This is no handshake message.";
                return Err(Refusal::new(Blame::Malformed, rule::H1, text));
            }
        }))
    }

    // enforces: W7
    /// It came over a connection that has no other way to say where its listener left off: a client that
    /// takes it attaches at once, after the event that is returned.
    pub fn over_link(mut self) -> (Self, Option<EventId>) {
        let mut last = None;
        if let Kind::Request { judged: Ok(proposal), resumes } = &mut self.0 {
            last = proposal.left_off().map(|left_off| left_off.last_event);
            *resumes = last.is_some();
        }
        (self, last)
    }

    /// The subscription whose terms it changes.
    pub fn renegotiates(&self) -> Option<SubscriptionId> {
        match &self.0 {
            Kind::Renegotiate { subscription, .. } => Some(*subscription),
            _ => None,
        }
    }

    /// The subscription that it ends.
    pub fn closes(&self) -> Option<SubscriptionId> {
        match &self.0 {
            Kind::Close { subscription } => Some(*subscription),
            _ => None,
        }
    }

    // enforces: I29
    /// Judges new terms together with what was asked before, as
    /// [`Producer::asked`](crate::Producer::asked) has it. A caller that skips this leaves it to the
    /// producer.
    pub fn judge(&mut self, before: Arc<str>, peer: &Principal, offer: &Offer) {
        if let Kind::Renegotiate { renegotiation, .. } = &mut self.0 {
            let judged = renegotiation.judge(&before, peer, offer);
            renegotiation.judged = Some((before, judged));
        }
    }
}

impl Renegotiation {
    /// What becomes of the new terms; judged already, unless something has changed since.
    pub(crate) fn judged(self, before: &Arc<str>, peer: &Principal, offer: &Offer) -> Judged {
        match self.judged {
            Some((on, judged)) if Arc::ptr_eq(&on, before) => judged,
            _ => self.judge(before, peer, offer),
        }
    }

    fn judge(&self, before: &str, peer: &Principal, offer: &Offer) -> Judged {
        let asked = request_with(&changed(before, &self.wanted));
        // Both were valid; only together they can be too much.
        let Ok(Message::Request(request)) = Message::parse(asked.as_bytes()) else {
            return Err(too_much());
        };
        let agreement = agree(&request.capabilities, peer, offer)?;
        Ok(Proposal::of(&request.capabilities, agreement, offer))
    }
}

/// The terms that were agreed on, from what was asked for, as [`Producer::asked`](crate::Producer::asked)
/// has it; make them before the producer is taken.
pub fn terms_of(asked: &str, peer: &Principal, offer: &Offer) -> Option<Terms> {
    let request = request_with(asked);
    let Ok(Message::Request(request)) = Message::parse(request.as_bytes()) else { return None };
    let agreement = agree(&request.capabilities, peer, offer).ok()?;
    Some(Terms::new(&agreement.honored))
}

/// D32: how many times as long a subscriber needs, by the capability of the timing extension.
fn time_factor(honored: &Capabilities<'_>) -> u64 {
    let timing = honored.other.iter().find(|(name, _)| name == "timing");
    let Some((_, Raw::Object(text))) = timing else { return 1 };
    recorded::timing_factor(text)
}

/// An object with the members of another in place of its own, where both have them.
fn changed(object: &str, by: &str) -> String {
    let read = |json| Members::whole(json, 64).ok().flatten().unwrap_or_default();
    let (members, new) = (read(object), read(by));
    let kept = members.iter().filter(|member| new.find(&member.name).is_none());
    let mut out = Writer::with_capacity(object.len() + by.len());
    out.open('{');
    for member in kept.chain(new.iter()) {
        out.name(&member.name);
        out.raw(member.value);
        out.comma();
    }
    out.close('}');
    out.finish()
}

/// A request with these capabilities, to be read again.
fn request_with(asked: &str) -> String {
    format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"x","capabilities":{asked}}}"#
    )
}
