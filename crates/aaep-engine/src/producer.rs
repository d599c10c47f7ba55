//! The whole producer: the engine, delivery, and the handshake between them and subscribers (§5).

use aaep_shaping::Terms;
use aaep_types::handshake::Capabilities;
use aaep_types::json::{Members, Raw, Writer};
use aaep_types::{Message, SubscriptionId, rule};
use std::collections::{BTreeMap, BTreeSet};

use crate::clock::{Boot, Now};
use crate::delivery::{Deliver, Delivery, Load};
use crate::engine::Engine;
use crate::ids::Ids;
use crate::io::{Answer, Emitted, Input, Output};
use crate::negotiate::{Offer, accepted, agree, negotiate, too_many, too_much};
use crate::principal::Principal;
use crate::refusal::{Blame, Refusal};
use crate::resume::Resumed;
use crate::rules::{Check, Rules, Sound};
use crate::shares::Shares;
use crate::{Limits, Secrets};

/// How long a subscription waits for somebody to attach.
const UNATTACHED_SECONDS: u64 = 30;

/// What comes out of a producer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcomes {
    /// Something for the journal, the agent, or the sender of a message.
    Engine(Output),
    /// An event was said; its deliveries follow. There is nothing to do about it, but whoever counts
    /// or audits sees every event here once, as it was before shaping.
    Said(Emitted),
    /// Something for a subscription.
    Deliver(Deliver),
}

/// A subscription that was agreed on.
struct Agreed {
    peer: Principal,
    /// What was asked for, as JSON, so that a renegotiation changes only what it names.
    asked: Box<str>,
    rights: Rights,
    attached: bool,
    expires: Option<Boot>,
}

/// What terms mean for answers, while somebody is attached.
#[derive(Clone, Copy, Default)]
struct Rights {
    confirms: bool,
    clarifies: bool,
    /// D32: how many times as long its user needs.
    time_factor: u64,
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

/// Engine and delivery, driven as one. The contract is the engine's: one mutation, then drain.
pub struct Producer<R: Rules = Sound> {
    engine: Engine<R>,
    delivery: Delivery<R>,
    offer: Offer,
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
        offer: Offer,
        now: Now,
    ) -> Self {
        let mut delivery = Delivery::new(limits);
        for event in engine.reminders() {
            // They were valid when they were first sent.
            let _ = delivery.offer(&event, now.boot);
        }
        Self {
            engine,
            delivery,
            offer,
            ids: Ids::new(secrets.apart()),
            agreed: BTreeMap::new(),
            expiries: BTreeSet::new(),
            held: Shares::default(),
            unattached: Shares::default(),
            limits,
        }
    }

    /// Takes an input of the engine.
    pub fn handle(&mut self, input: Input<'_>, now: Now) -> Result<Answer, Refusal> {
        let answer = self.engine.handle(input, now);
        self.delivery.tick(now.boot);
        self.expire(now);
        answer
    }

    /// A handshake message (§5): the answer to send, or `None` where there is none to send.
    pub fn handshake(
        &mut self,
        peer: &Principal,
        bytes: &[u8],
        now: Now,
    ) -> Result<Option<String>, Refusal> {
        // enforces: H1, H15, D26
        match Message::parse(bytes)? {
            Message::Request(request) => {
                if let Some(rejected) = self.rejects_more(peer) {
                    return Ok(Some(rejected));
                }
                match negotiate(&request, peer, &self.offer) {
                    Ok(agreement) => {
                        let id = SubscriptionId::from_bits(self.ids.event());
                        self.agree(id, peer, &request.capabilities, &agreement.honored, now)?;
                        Ok(Some(accepted(id, &agreement, &self.offer)))
                    }
                    Err(rejection) => Ok(Some(rejection.to_json())),
                }
            }
            Message::Renegotiate(wanted) => {
                let id = wanted.subscription_id;
                Ok(self.renegotiate(id, peer, &wanted.capabilities, now))
            }
            Message::Close(close) => {
                self.close(close.subscription_id, peer, now);
                Ok(None)
            }
            _ => Err(Refusal::new(Blame::Malformed, rule::H1, "This is no handshake message.")),
        }
    }

    /// The rejection of any further subscription of this principal while it has no room for one. It
    /// costs nothing to find out, so ask before a request is read.
    pub fn rejects_more(&self, peer: &Principal) -> Option<String> {
        self.has_room_for(peer).err().map(|full| too_many(full.text).to_json())
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
        asked: &Capabilities<'_>,
        honored: &Capabilities<'_>,
        now: Now,
    ) -> Result<(), Refusal> {
        let asked = asked.to_json().into();
        let (rights, attached, expires) = (Rights::of(honored), false, None);
        self.agreed.insert(id, Agreed { peer: peer.clone(), asked, rights, attached, expires });
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
        let id = SubscriptionId::from_bits(self.ids.event());
        let honored = match agree(&asked, peer, &self.offer) {
            Ok(agreement) => agreement.honored,
            Err(_) => Capabilities::none(),
        };
        self.agree(id, peer, &asked, &honored, now)?;
        Ok(id)
    }

    /// D4: a handshake message on a stream that began without one. A request replaces the stream's
    /// terms, a refusal leaves it as it is; whatever subscription the message names is this one.
    pub fn handshake_on(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        bytes: &[u8],
        now: Now,
    ) -> Result<Option<String>, Refusal> {
        match Message::parse(bytes)? {
            Message::Request(request) => {
                let Some(agreed) = self.agreed.get_mut(&id).filter(|agreed| agreed.peer == *peer)
                else {
                    return Ok(None);
                };
                let agreement = match negotiate(&request, peer, &self.offer) {
                    Ok(agreement) => agreement,
                    Err(rejection) => return Ok(Some(rejection.to_json())),
                };
                agreed.asked = request.capabilities.to_json().into();
                self.change_terms(id, peer, &agreement.honored, now)?;
                Ok(Some(accepted(id, &agreement, &self.offer)))
            }
            Message::Renegotiate(wanted) => {
                Ok(self.renegotiate(id, peer, &wanted.capabilities, now))
            }
            Message::Close(_) => {
                self.close(id, peer, now);
                Ok(None)
            }
            _ => Err(Refusal::new(Blame::Malformed, rule::H1, "This is no handshake message.")),
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
        honored: &Capabilities<'_>,
        now: Now,
    ) -> Result<(), Refusal> {
        let Some(agreed) = self.agreed.get_mut(&id) else { return Ok(()) };
        agreed.rights = Rights::of(honored);
        let (rights, attached) = (agreed.rights, agreed.attached);
        self.delivery.renegotiate(id, Terms::new(honored), now.boot);
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
        wanted: &Capabilities<'_>,
        now: Now,
    ) -> Option<String> {
        let agreed = self.agreed.get_mut(&id).filter(|agreed| agreed.peer == *peer)?;
        agreed.asked = changed(&agreed.asked, &wanted.to_json()).into();
        let asked = request_with(&agreed.asked);
        let agreement = match Message::parse(asked.as_bytes()) {
            Ok(Message::Request(request)) => agree(&request.capabilities, peer, &self.offer),
            // Both were valid; only together they are too much.
            _ => Err(too_much()),
        };
        match agreement {
            Ok(agreement) => {
                self.change_terms(id, peer, &agreement.honored, now).ok()?;
                Some(accepted(id, &agreement, &self.offer))
            }
            Err(rejection) => {
                self.close(id, peer, now);
                Some(rejection.to_json())
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
        let rights = agreed.rights;
        // Until somebody attaches nothing is heard, so there is nothing to deliver by.
        if self.delivery.place(id).is_none() {
            let terms = self.terms(id)?;
            self.delivery.subscribe(id, peer, terms, now.boot);
        }
        self.set_expiry(id, None);
        self.entitle(id, peer, rights, now).ok()?;
        let resumed = self.delivery.attach(id, peer, last_event, now.boot)?;
        // enforces: W7
        // B.1.5: whoever comes back to a gap is told the state, also of a session that never changed
        // it.
        if resumed == Resumed::Snapshot && last_event.is_some() {
            for session in self.delivery.sessions_without_state(peer) {
                self.engine.tell_state(session, now);
            }
        }
        Some(resumed)
    }

    /// What was agreed on, from what was asked.
    fn terms(&self, id: SubscriptionId) -> Option<Terms> {
        let agreed = self.agreed.get(&id)?;
        let request = request_with(&agreed.asked);
        let Ok(Message::Request(request)) = Message::parse(request.as_bytes()) else { return None };
        let agreement = agree(&request.capabilities, &agreed.peer, &self.offer).ok()?;
        Some(Terms::new(&agreement.honored))
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
        let due = |(at, _): &&(Boot, SubscriptionId)| *at <= now.boot && R::keeps(Check::GivesUp);
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
    pub fn poll_output(&mut self, now: Now) -> Option<Outcomes> {
        // enforces: T11
        // What an event sets off comes after its deliveries: people hear of a call before it runs.
        if R::keeps(Check::PeopleHearFirst) {
            self.poll_delivery(now).or_else(|| self.poll_engine(now))
        } else {
            self.poll_engine(now).or_else(|| self.poll_delivery(now))
        }
    }

    fn poll_engine(&mut self, now: Now) -> Option<Outcomes> {
        let event = match self.engine.poll_output()? {
            Output::Event(event) => event,
            other => return Some(Outcomes::Engine(other)),
        };
        // What the engine lets go has been checked; there is nothing to refuse.
        let _ = self.delivery.offer(&event, now.boot);
        Some(Outcomes::Said(event))
    }

    fn poll_delivery(&mut self, now: Now) -> Option<Outcomes> {
        let deliver = self.delivery.poll_output(now.boot)?;
        if let Deliver::End { subscription, .. } = &deliver {
            self.drop_subscription(*subscription, now);
        }
        Some(Outcomes::Deliver(deliver))
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

/// D32: how many times as long a subscriber needs, by the capability of the timing extension.
fn time_factor(honored: &Capabilities<'_>) -> u64 {
    let timing = honored.other.iter().find(|(name, _)| name == "timing");
    let Some((_, Raw::Object(text))) = timing else { return 1 };
    let members = Members::whole(text, 8).ok().flatten().unwrap_or_default();
    match members.find("factor") {
        Some(Raw::Number(factor)) => factor.parse().unwrap_or(1).clamp(1, 1000),
        _ => 1,
    }
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
