//! The whole producer: the engine, delivery, and the handshake between them and subscribers (§5).

use aaep_shaping::Terms;
use aaep_types::SubscriptionId;
use aaep_types::handshake::Capabilities;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clock::{Boot, Now};
use crate::delivery::{Deliver, Delivery, Load};
use crate::engine::Engine;
use crate::handshake::{Handshake, Kind, Negotiated, Proposal, Renegotiation, Rights, terms_of};
use crate::ids::Ids;
use crate::io::{Emitted, Handled, Input, Output};
use crate::negotiate::{Agreement, Offer, agree, too_many};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::resume::Resumed;
use crate::rules::{Rules, Sound};
use crate::shares::Shares;
use crate::{Limits, Secrets};

/// How long a subscription waits for somebody to attach.
const UNATTACHED_SECONDS: u64 = 30;

/// What comes out of a producer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProducerOutput {
    /// Something for the journal, the agent, or the sender of a message.
    Engine(Output),
    /// An event was emitted; its deliveries follow. There is nothing to do about it, but a caller that counts
    /// or audits sees every event here once, as it was before shaping.
    Emitted(Emitted),
    /// Something for a subscription.
    Deliver(Deliver),
}

/// A subscription that was agreed on.
struct Agreed {
    peer: Principal,
    /// What was asked for, as JSON, so that a renegotiation changes only what it names.
    asked: Arc<str>,
    /// The terms, if somebody is about to attach: from then on they are delivery's. They take more room
    /// than what was asked for, so a subscription that does not attach at once lets go of them.
    terms: Option<Box<Terms>>,
    rights: Rights,
    attached: bool,
    /// It cannot go on where its subscriber left off, and that was said.
    begins_anew: bool,
    expires: Option<Boot>,
}

/// Engine and delivery, driven as one. The contract is the engine's: one mutation, then drain.
pub struct Producer<R: Rules = Sound> {
    engine: Engine<R>,
    delivery: Delivery<R>,
    offer: Arc<Offer>,
    ids: Ids,
    agreed: BTreeMap<SubscriptionId, Agreed>,
    /// When subscriptions that nobody attached to are given up.
    expiries: BTreeSet<(Boot, SubscriptionId)>,
    /// How many of each principal's and each user's are agreed on, and how many of them nobody is
    /// attached to.
    held: Shares,
    unattached: Shares,
    limits: Limits,
}

impl<R: Rules> Producer<R> {
    /// Puts a producer together from an engine, new or recovered. Subscription ids are made from
    /// `secrets`, whose seed is fresh at every start.
    pub fn new(
        mut engine: Engine<R>,
        secrets: Secrets,
        limits: Limits,
        offer: impl Into<Arc<Offer>>,
        now: Now,
    ) -> Self {
        let mut delivery = Delivery::new(limits);
        for reminder in engine.reminders() {
            delivery.remind(reminder, now.boot);
        }
        Self {
            engine,
            delivery,
            offer: offer.into(),
            ids: Ids::new(secrets.apart()),
            agreed: BTreeMap::new(),
            expiries: BTreeSet::new(),
            held: Shares::default(),
            unattached: Shares::default(),
            limits,
        }
    }

    /// Offers something else from now on, such as a manifest that was signed anew.
    pub fn set_offer(&mut self, offer: Arc<Offer>) {
        self.offer = offer;
    }

    /// Takes an input of the engine.
    pub fn handle(&mut self, input: Input<'_>, now: Now) -> Result<Handled, Refusal> {
        let answer = self.engine.handle(input, now);
        self.delivery.tick(now.boot);
        self.expire(now);
        answer
    }

    /// A handshake message (§5) as it came: the answer to send, or `None` where there is none to send.
    pub fn handshake(
        &mut self,
        peer: &Principal,
        bytes: &[u8],
        now: Now,
    ) -> Result<Option<String>, Refusal> {
        let message = Handshake::parse(bytes, peer, &self.offer)?;
        self.negotiate(peer, message, now).map(Negotiated::json)
    }

    /// A handshake message that was read before.
    pub fn negotiate(
        &mut self,
        peer: &Principal,
        message: Handshake,
        now: Now,
    ) -> Result<Negotiated, Refusal> {
        // enforces: H1, H15, D26
        match message.0 {
            Kind::Request { judged, resumes } => {
                if let Some(rejected) = self.rejects_more(peer) {
                    return Ok(rejected);
                }
                let proposal = match judged {
                    Ok(proposal) => proposal,
                    Err(rejection) => return Ok(rejection.into()),
                };
                let id = self.ids.subscription();
                let left_off = proposal.left_off().filter(|_| resumes);
                let goes_on = left_off.is_some_and(|from| self.delivery.goes_on(peer, from));
                let answer =
                    if goes_on { proposal.answer_resumed(id) } else { proposal.answer(id) };
                self.agree(id, peer, proposal, now)?;
                if let Some(agreed) = self.agreed.get_mut(&id) {
                    agreed.begins_anew = left_off.is_some() && !goes_on;
                }
                Ok(answer)
            }
            Kind::Renegotiate { subscription, renegotiation } => {
                Ok(self.renegotiate(subscription, peer, renegotiation, now))
            }
            Kind::Close { subscription } => {
                self.close(subscription, peer, now);
                Ok(Negotiated::Silent)
            }
        }
    }

    /// What was asked for on a subscription of this principal; see [`Handshake::judge`].
    pub fn asked(&self, id: SubscriptionId, peer: &Principal) -> Option<Arc<str>> {
        let agreed = self.agreed.get(&id).filter(|agreed| agreed.peer == *peer)?;
        Some(agreed.asked.clone())
    }

    /// The rejection of any further subscription of this principal while it has no room for one. It
    /// costs nothing to find out, so ask before a request is read.
    pub fn rejects_more(&self, peer: &Principal) -> Option<Negotiated> {
        self.has_room_for(peer).err().map(|full| too_many(full.text).into())
    }

    // enforces: I22, H21, I29
    fn has_room_for(&self, peer: &Principal) -> Result<(), Refusal> {
        self.unattached.admit(&self.limits.unattached_subscriptions(), peer, 1)?;
        self.held.admit(&self.limits.all_subscriptions(), peer, 1)
    }

    fn agree(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        proposal: Proposal,
        now: Now,
    ) -> Result<(), Refusal> {
        let Proposal { asked, terms, rights, .. } = proposal;
        let (terms, attached, expires) = (Some(Box::new(terms)), false, None);
        let (peer_of, begins_anew) = (peer.clone(), false);
        let agreed = Agreed { peer: peer_of, asked, terms, rights, attached, begins_anew, expires };
        self.agreed.insert(id, agreed);
        self.held.add(peer, 1);
        self.expire_after(id, now);
        // Nobody is there yet who could answer.
        let Rights { time_factor, .. } = rights;
        self.entitle(id, peer, Rights { time_factor, ..Rights::default() }, now)
    }

    /// D4: a stream without a handshake is a subscription with default terms; it may answer if its
    /// principal may. Attach to it like to any other; a renegotiation changes its terms.
    pub fn listen(&mut self, peer: &Principal, now: Now) -> Result<SubscriptionId, Refusal> {
        // enforces: D4
        self.has_room_for(peer)?;
        let mut asked = Capabilities::none();
        asked.supports_confirmation_reply = Some(true);
        asked.supports_clarification_reply = Some(true);
        let id = self.ids.subscription();
        let agreement = agree(&asked, peer, &self.offer).unwrap_or_else(|_| Agreement::nothing());
        let proposal = Proposal::of(&asked, agreement, &self.offer);
        self.agree(id, peer, proposal, now)?;
        Ok(id)
    }

    /// D4: a handshake message on a stream that began without one, as it came.
    pub fn handshake_on(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        bytes: &[u8],
        now: Now,
    ) -> Result<Option<String>, Refusal> {
        let message = Handshake::parse(bytes, peer, &self.offer)?;
        self.negotiate_on(id, peer, message, now).map(Negotiated::json)
    }

    /// D4: a handshake message, which was read before, on a stream that began without one. A request
    /// replaces the stream's terms, a refusal leaves it as it is; whatever subscription the message
    /// names is this one.
    pub fn negotiate_on(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        message: Handshake,
        now: Now,
    ) -> Result<Negotiated, Refusal> {
        match message.0 {
            Kind::Request { judged, .. } => {
                if self.asked(id, peer).is_none() {
                    return Ok(Negotiated::Silent);
                }
                let proposal = match judged {
                    Ok(proposal) => proposal,
                    Err(rejection) => return Ok(rejection.into()),
                };
                let answer = proposal.answer(id);
                self.change_terms(id, peer, proposal, now)?;
                Ok(answer)
            }
            Kind::Renegotiate { renegotiation, .. } => {
                Ok(self.renegotiate(id, peer, renegotiation, now))
            }
            Kind::Close { .. } => {
                self.close(id, peer, now);
                Ok(Negotiated::Silent)
            }
        }
    }

    /// Tells the engine who may answer on this subscription, and with how much time.
    fn entitle(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        rights: Rights,
        now: Now,
    ) -> Result<(), Refusal> {
        let Rights { confirms, clarifies, time_factor } = rights;
        self.engine.handle(Input::Joined { peer, subscription: id, confirms, clarifies }, now)?;
        self.engine.set_time_factor(id, time_factor);
        Ok(())
    }

    /// New terms. Who is away answers nothing meanwhile, and is told apart from who gave it up: what
    /// the terms mean for answers counts from the next attach on (I14).
    fn change_terms(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        proposal: Proposal,
        now: Now,
    ) -> Result<(), Refusal> {
        let Some(agreed) = self.agreed.get_mut(&id) else { return Ok(()) };
        let Proposal { asked, terms, rights, .. } = proposal;
        (agreed.asked, agreed.rights) = (asked, rights);
        let attached = agreed.attached;
        if self.delivery.place(id).is_some() {
            self.delivery.renegotiate(id, terms, now.boot);
        } else {
            agreed.terms = None;
        }
        if attached {
            return self.entitle(id, peer, rights, now);
        }
        self.engine.set_time_factor(id, rights.time_factor);
        Ok(())
    }

    // enforces: H18
    /// H18: only the named members change; a refusal ends the subscription; unknown ids are ignored.
    fn renegotiate(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        renegotiation: Renegotiation,
        now: Now,
    ) -> Negotiated {
        let Some(before) = self.asked(id, peer) else { return Negotiated::Silent };
        match renegotiation.judged(&before, peer, &self.offer) {
            Ok(proposal) => {
                let answer = proposal.answer(id);
                match self.change_terms(id, peer, proposal, now) {
                    Ok(()) => answer,
                    Err(_) => Negotiated::Silent,
                }
            }
            Err(rejection) => {
                self.close(id, peer, now);
                rejection.into()
            }
        }
    }

    /// A connection takes a subscription over; `None` if there is none such of this principal.
    pub fn attach(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        last_event: Option<&str>,
        now: Now,
    ) -> Option<Resumed> {
        let agreed = self.agreed.get_mut(&id).filter(|agreed| agreed.peer == *peer)?;
        agreed.attached = true;
        let begins_anew = std::mem::take(&mut agreed.begins_anew);
        let rights = agreed.rights;
        // Until somebody attaches nothing is heard, so there is nothing to deliver by.
        if self.delivery.place(id).is_none() {
            let made = agreed.terms.take().map(|terms| *terms);
            let terms = made.or_else(|| terms_of(&agreed.asked, peer, &self.offer))?;
            self.delivery.subscribe(id, peer, terms, now.boot);
        }
        self.set_expiry(id, None);
        self.entitle(id, peer, rights, now).ok()?;
        let known = last_event.filter(|_| !begins_anew);
        let resumed = self.delivery.attach(id, peer, known, now.boot)?;
        // enforces: W7
        // B.1.5: a subscriber that comes back to a gap is told the state, also of a session that never changed
        // it.
        if resumed == Resumed::Snapshot && last_event.is_some() {
            for session in self.delivery.recent.sessions_without_state(peer) {
                self.engine.tell_state(session, now);
            }
        }
        Some(R::resumed(resumed))
    }

    // enforces: I22
    /// Nobody attaches to a subscription for now: what was asked for is enough to keep.
    pub fn put_aside(&mut self, id: SubscriptionId) {
        if let Some(agreed) = self.agreed.get_mut(&id) {
            agreed.terms = None;
        }
    }

    /// Somebody is about to attach: these are the terms, made from what was asked for. Without them
    /// they are made in [`Self::attach`].
    pub fn prepare(&mut self, id: SubscriptionId, asked: &Arc<str>, terms: Terms) {
        let agreed = self.agreed.get_mut(&id).filter(|agreed| Arc::ptr_eq(&agreed.asked, asked));
        if let Some(agreed) = agreed.filter(|_| self.delivery.place(id).is_none()) {
            agreed.terms = Some(Box::new(terms));
        }
    }

    /// Where a subscription lies, once somebody has attached to it; see [`Delivery::place`].
    pub fn place(&self, id: SubscriptionId) -> Option<usize> {
        self.delivery.place(id)
    }

    /// A connection was lost; its subscription waits for it to come back.
    pub fn detach(&mut self, id: SubscriptionId, now: Now) {
        if let Some(agreed) = self.agreed.get_mut(&id) {
            agreed.attached = false;
            self.expire_after(id, now);
            self.delivery.detach(id);
            let _ = self.engine.handle(Input::Lost { subscription: id }, now);
        }
    }

    // enforces: H19
    /// H19: one side ends a subscription; everything it held is freed.
    pub fn close(&mut self, id: SubscriptionId, peer: &Principal, now: Now) {
        if self.agreed.get(&id).is_some_and(|agreed| agreed.peer == *peer) {
            self.drop_subscription(id, now);
        }
    }

    fn drop_subscription(&mut self, id: SubscriptionId, now: Now) {
        self.set_expiry(id, None);
        if let Some(agreed) = self.agreed.remove(&id) {
            self.held.remove(&agreed.peer, 1);
        }
        self.delivery.close(id);
        let _ = self.engine.handle(Input::Left { subscription: id }, now);
    }

    /// A subscription that nobody is attached to waits for a while.
    fn expire_after(&mut self, id: SubscriptionId, now: Now) {
        self.set_expiry(id, Some(now.boot.after_seconds(UNATTACHED_SECONDS)));
    }

    fn set_expiry(&mut self, id: SubscriptionId, at: Option<Boot>) {
        let Some(agreed) = self.agreed.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut agreed.expires, at) {
            self.expiries.remove(&(before, id));
            self.unattached.remove(&agreed.peer, 1);
        }
        if let Some(at) = at {
            self.expiries.insert((at, id));
            self.unattached.add(&agreed.peer, 1);
        }
    }

    /// Subscriptions that nobody attached to in time are given up.
    fn expire(&mut self, now: Now) {
        let due = |(at, _): &&(Boot, SubscriptionId)| R::is_abandoned(*at, now.boot);
        while let Some(&(_, id)) = self.expiries.first().filter(due) {
            self.drop_subscription(id, now);
        }
    }

    /// A connection takes nothing more for now; see [`Delivery::pause`].
    pub fn pause(&mut self, id: SubscriptionId) {
        self.delivery.pause(id);
    }

    /// It takes more again.
    pub fn go_on(&mut self, id: SubscriptionId) {
        self.delivery.go_on(id);
    }

    /// The next thing to do outside.
    pub fn poll_output(&mut self, now: Now) -> Option<ProducerOutput> {
        // enforces: T11
        // What an event sets off comes after its deliveries: people hear of a call before it runs.
        if R::delivers_first() {
            self.poll_delivery(now).or_else(|| self.poll_engine(now))
        } else {
            self.poll_engine(now).or_else(|| self.poll_delivery(now))
        }
    }

    fn poll_engine(&mut self, now: Now) -> Option<ProducerOutput> {
        let event = match self.engine.poll_output()? {
            Output::Event(event) => event,
            other => return Some(ProducerOutput::Engine(other)),
        };
        // What the engine lets go has been checked; there is nothing to refuse.
        let _ = self.delivery.offer(&event, now.boot);
        Some(ProducerOutput::Emitted(event))
    }

    fn poll_delivery(&mut self, now: Now) -> Option<ProducerOutput> {
        let deliver = self.delivery.poll_output(now.boot)?;
        if let Deliver::End { subscription, .. } = &deliver {
            self.drop_subscription(*subscription, now);
        }
        Some(ProducerOutput::Deliver(deliver))
    }

    /// When to come back at the latest.
    pub fn next_deadline(&self) -> Option<Boot> {
        let expiry = self.expiries.first().map(|(at, _)| *at);
        [self.engine.next_deadline(), self.delivery.next_deadline(), expiry]
            .into_iter()
            .flatten()
            .min()
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine<R> {
        &self.engine
    }

    /// How many subscriptions each principal and each user has.
    pub fn subscription_shares(&self) -> &Shares {
        &self.held
    }

    /// How much is held for subscribers.
    pub fn load(&self) -> Load {
        self.delivery.load()
    }
}
