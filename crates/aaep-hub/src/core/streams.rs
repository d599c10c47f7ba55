//! Connections that hear subscriptions, and the handshake over them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep_engine::{
    Boot, Evidence, Handled, Handshake, Input, Negotiated, Principal, Refusal, Resumed, Role,
    SubscriberMessage,
};
use aaep_shaping::Terms;
use aaep_types::{Presence, PresenceWord, ReplyToken, SubscriptionId, presence};
use tokio::sync::oneshot;

use super::opening::Opening;
use super::processes::Kinship;
use super::{Core, Framing};
use crate::access::{Access, AuthenticatedPeer};
use crate::hub::Stopped;
use crate::outbox::{End, Hearing, Outbox};
use crate::presence::{Arrival, Unlocked, state};

pub(super) struct Stream {
    pub(super) outbox: Arc<Outbox>,
    pub(super) framing: Framing,
    known: AuthenticatedPeer,
    /// When its token is no longer good.
    expires: Option<Boot>,
    /// Since when it is heard on this connection.
    heard_since: Boot,
    /// The person's PIN was typed on it.
    unlocked: Option<Unlocked>,
    /// Whether the start of a session is sent twice, for the published suite (docs/guests.md).
    pub(super) starts_twice: bool,
}

impl Stream {
    /// As what it is heard.
    pub(super) fn role(&self) -> Role {
        self.known.principal.role
    }
}

#[derive(Default)]
pub(super) struct Streams {
    /// Each where its subscription lies.
    at: Vec<Option<Box<Stream>>>,
    places: BTreeMap<SubscriptionId, usize>,
    /// Those of each principal.
    of_principal: BTreeMap<Principal, Vec<SubscriptionId>>,
    /// Those whose token ends at some time, by that time.
    expiring: BTreeSet<(Boot, SubscriptionId)>,
    /// Those without a handshake, by their serials: the newest last.
    open: BTreeMap<Principal, BTreeMap<u64, SubscriptionId>>,
    /// What waits for a stream to open.
    opening: Opening<Handshake>,
    serial: u64,
}

impl Streams {
    pub(super) fn get(&self, id: SubscriptionId) -> Option<&Stream> {
        self.at(*self.places.get(&id)?, id)
    }

    /// The same, where the place is known. A place may have changed hands, so nobody is trusted to
    /// know it.
    pub(super) fn at(&self, place: usize, id: SubscriptionId) -> Option<&Stream> {
        let stream = self.at.get(place)?.as_deref();
        stream.filter(|stream| stream.outbox.subscription() == id)
    }

    fn get_mut(&mut self, id: SubscriptionId) -> Option<&mut Stream> {
        let stream = self.at.get_mut(*self.places.get(&id)?)?.as_deref_mut();
        stream.filter(|stream| stream.outbox.subscription() == id)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Puts a stream in; the stream that had the place is told why it ends.
    fn insert(&mut self, id: SubscriptionId, place: usize, stream: Stream) {
        self.remove(id).inspect(|before| before.outbox.end(End::TakenOver));
        if self.at.len() <= place {
            self.at.resize_with(place + 1, || None);
        }
        self.of_principal.entry(stream.known.principal.clone()).or_default().push(id);
        self.expiring.extend(stream.expires.map(|at| (at, id)));
        if let Some(other) = self.at[place].replace(Box::new(stream)) {
            // Its subscription is over.
            self.places.remove(&other.outbox.subscription());
            self.forget(&other);
            other.outbox.end(End::Closed);
        }
        self.places.insert(id, place);
    }

    fn remove(&mut self, id: SubscriptionId) -> Option<Box<Stream>> {
        let place = self.places.remove(&id)?;
        let stream = self.at[place].take_if(|stream| stream.outbox.subscription() == id)?;
        self.forget(&stream);
        Some(stream)
    }

    pub(super) fn end(&mut self, id: SubscriptionId, end: End) {
        if let Some(stream) = self.remove(id) {
            stream.outbox.end(end);
        }
    }

    pub(super) fn end_all(&mut self, end: End) {
        self.places.clear();
        self.of_principal.clear();
        self.expiring.clear();
        self.open.clear();
        for stream in std::mem::take(&mut self.at).into_iter().flatten() {
            stream.outbox.end(end);
        }
    }

    /// A stream is no longer among its principal's.
    fn forget(&mut self, stream: &Stream) {
        let (peer, id) = (&stream.known.principal, stream.outbox.subscription());
        if let Some(own) = self.of_principal.get_mut(peer) {
            own.retain(|other| *other != id);
            if own.is_empty() {
                self.of_principal.remove(peer);
            }
        }
        if let Some(at) = stream.expires {
            self.expiring.remove(&(at, id));
        }
        if let Some(open) = self.open.get_mut(peer) {
            open.remove(&stream.outbox.serial());
            if open.is_empty() {
                self.open.remove(peer);
            }
        }
    }

    /// The newest stream without a handshake of this principal.
    fn newest_open(&self, peer: &Principal) -> Option<SubscriptionId> {
        self.open.get(peer)?.last_key_value().map(|(_, id)| *id)
    }

    /// When something that is held is to be forgotten, or a token ends.
    pub(super) fn next_deadline(&self) -> Option<Boot> {
        let expires = self.expiring.first().map(|(at, _)| *at);
        [self.opening.next_deadline(), expires].into_iter().flatten().min()
    }
}

/// A message that was taken. Its answer may have to wait.
#[must_use]
pub(crate) struct Taken(Option<oneshot::Receiver<()>>);

impl Taken {
    /// Waits until the answer may be sent.
    pub(crate) async fn answered(self) -> Result<(), Stopped> {
        match self.0 {
            Some(receiver) => receiver.await.map_err(|_| Stopped),
            None => Ok(()),
        }
    }
}

/// A subscription that a connection now hears.
pub(crate) struct Attached {
    pub(crate) hearing: Hearing,
    /// Whether everything that was missed follows.
    pub(crate) resumed: Resumed,
}

impl Core {
    // enforces: H15, H18
    /// A handshake message, which was read before: the answer to send. With `link`, it is sent on the
    /// stream of that subscription.
    pub(crate) fn handshake(
        &mut self,
        known: &AuthenticatedPeer,
        message: Handshake,
        link: Option<SubscriptionId>,
    ) -> Result<Negotiated, Refusal> {
        let (closes, renegotiates) = (message.closes(), message.renegotiates());
        let answer = self.producer.negotiate(&known.principal, message, self.now)?;
        // What was held under the old terms goes out before the answer that tells the new ones.
        self.drain();
        if let Some(link) = link
            && let Some(answer) = answer.clone().json()
        {
            self.answer_on(link, &answer);
        }
        let rejected = renegotiates.filter(|_| answer.is_rejected());
        let ended = closes.map(|id| (id, End::Closed));
        let ended = ended.or(rejected.map(|id| (id, End::Rejected)));
        if let Some((id, end)) = ended.filter(|(id, _)| self.is_theirs(known, *id)) {
            self.streams.end(id, end);
        }
        Ok(answer)
    }

    /// New terms that cannot be read: the subscription ends, and its stream says why.
    pub(crate) fn reject(&mut self, known: &AuthenticatedPeer, id: SubscriptionId, rejected: &str) {
        self.producer.close(id, &known.principal, self.now);
        self.drain();
        self.answer_on(id, rejected);
        self.streams.end(id, End::Rejected);
    }

    /// The rejection of any further subscription while this principal has no room for one.
    pub(crate) fn rejects_more(&self, known: &AuthenticatedPeer) -> Option<Negotiated> {
        self.producer.rejects_more(&known.principal)
    }

    /// The same for a subscription that is attached to later.
    pub(crate) fn subscribe(
        &mut self,
        known: &AuthenticatedPeer,
        request: Handshake,
    ) -> Result<Negotiated, Refusal> {
        let answer = self.handshake(known, request, None)?;
        if let Negotiated::Accepted { subscription, .. } = &answer {
            self.producer.put_aside(*subscription);
        }
        Ok(answer)
    }

    /// What was asked for on a subscription that has no connection yet.
    pub(crate) fn asked_at_first(
        &self,
        known: &AuthenticatedPeer,
        id: SubscriptionId,
    ) -> Option<Arc<str>> {
        self.asked(known, id).filter(|_| self.producer.place(id).is_none())
    }

    /// Somebody is about to attach: these are the terms.
    pub(crate) fn prepare(&mut self, id: SubscriptionId, asked: &Arc<str>, terms: Terms) {
        self.producer.prepare(id, asked, terms);
    }

    /// What was asked for on a subscription.
    pub(crate) fn asked(&self, known: &AuthenticatedPeer, id: SubscriptionId) -> Option<Arc<str>> {
        self.producer.asked(id, &known.principal)
    }

    /// Whether somebody who was let in before still would be.
    pub(crate) fn still_lets_in(&self, known: &AuthenticatedPeer) -> bool {
        self.hub.0.access.current().still_valid(known)
    }

    fn is_theirs(&self, known: &AuthenticatedPeer, id: SubscriptionId) -> bool {
        let stream = self.streams.get(id);
        stream.is_some_and(|stream| stream.known.principal == known.principal)
    }

    // enforces: S4, W7
    /// A connection hears a subscription from now on, instead of the one before. `first`
    /// is said before everything else. `None`: there is no such subscription of theirs.
    pub(crate) fn attach(
        &mut self,
        known: &AuthenticatedPeer,
        id: SubscriptionId,
        last_event: Option<&str>,
        framing: Framing,
        first: Option<&str>,
    ) -> Option<Attached> {
        // A client that was let in a moment ago may not be any more.
        if self.stopping || !self.still_lets_in(known) {
            return None;
        }
        let resumed = self.producer.attach(id, &known.principal, last_event, self.now)?;
        self.streams.serial += 1;
        let outbox = Arc::new(Outbox::new(self.hub.clone(), id, self.streams.serial));
        if let Some(first) = first {
            outbox.push(framing.answer(first));
        }
        self.streams.opening.opened(&known.principal);
        let (known, starts_twice) = (known.clone(), false);
        let expires = known.expires().map(|at| self.boot_of(at));
        let stream = Stream {
            outbox: outbox.clone(),
            framing,
            known,
            expires,
            heard_since: self.now.boot,
            unlocked: None,
            starts_twice,
        };
        self.streams.insert(id, self.producer.place(id)?, stream);
        self.drain();
        Some(Attached { hearing: Hearing { outbox }, resumed })
    }

    // enforces: D4, D27
    /// A stream without a handshake.
    pub(crate) fn listen(
        &mut self,
        known: &AuthenticatedPeer,
        framing: Framing,
    ) -> Result<Attached, Refusal> {
        let id = self.producer.listen(&known.principal, self.now)?;
        let heard = self.attach(known, id, None, framing, None);
        let Some(heard) = heard else {
            return Err(no_stream());
        };
        let twice = self.hub.config().compatibility.published_suite;
        self.streams.get_mut(id).into_iter().for_each(|stream| stream.starts_twice = twice);
        let serial = heard.hearing.outbox.serial();
        self.streams.open.entry(known.principal.clone()).or_default().insert(serial, id);
        for message in self.streams.opening.take(&known.principal) {
            self.handshake_on_open(known, message)?;
        }
        Ok(heard)
    }

    /// A handshake message for the principal's newest stream without a handshake; it waits for a
    /// while if there is none yet. The answer goes out on the stream.
    pub(crate) fn handshake_on_open(
        &mut self,
        known: &AuthenticatedPeer,
        message: Handshake,
    ) -> Result<(), Refusal> {
        let peer = &known.principal;
        let Some(id) = self.streams.newest_open(peer) else {
            let bound = self.hub.config().limits.held_handshakes();
            return self.streams.opening.hold(&bound, peer, message, self.now.boot);
        };
        let closes = message.closes().is_some();
        let answer = self.producer.negotiate_on(id, peer, message, self.now);
        self.drain();
        let Ok(answer) = answer else { return Ok(()) };
        // Who negotiates knows the protocol.
        if let (Negotiated::Accepted { .. }, Some(stream)) = (&answer, self.streams.get_mut(id)) {
            stream.starts_twice = false;
        }
        if let Some(json) = answer.json() {
            self.answer_on(id, &json);
        }
        if closes {
            self.streams.end(id, End::Closed);
        }
        Ok(())
    }

    // enforces: I22
    /// Sends an answer to the handshake on the stream of a subscription.
    pub(crate) fn answer_on(&mut self, id: SubscriptionId, answer: &str) {
        let Some(stream) = self.streams.get(id) else { return };
        if stream.outbox.is_full() {
            let peer = stream.known.principal.clone();
            self.producer.close(id, &peer, self.now);
            self.give_up(id, "The subscriber asks and does not read the answers.");
        } else if !stream.outbox.push(stream.framing.answer(answer)) {
            self.producer.pause(id);
        }
    }

    /// Whether some connection hears this subscription.
    pub(crate) fn is_attached(&self, id: SubscriptionId) -> bool {
        self.streams.get(id).is_some()
    }

    /// The newest stream without a handshake of this principal, for replies that name none.
    pub(crate) fn open_stream(&self, known: &AuthenticatedPeer) -> Option<SubscriptionId> {
        self.streams.newest_open(&known.principal)
    }

    /// Tells when this principal has a stream; `None` if it has one.
    pub(crate) fn when_open(&mut self, known: &AuthenticatedPeer) -> Option<oneshot::Receiver<()>> {
        let streams = &mut self.streams;
        let has_one = streams.of_principal.contains_key(&known.principal);
        (!has_one).then(|| streams.opening.when_open(&known.principal))
    }

    pub(super) fn forget_held(&mut self) {
        self.streams.opening.forget_old(self.now.boot);
    }

    /// A connection is gone; its subscription waits for another one, unless there is one already.
    pub(crate) fn detach(&mut self, id: SubscriptionId, serial: u64) {
        let current = self.streams.get(id).is_some_and(|s| s.outbox.serial() == serial);
        if !current {
            return;
        }
        if self.streams.remove(id).is_some() {
            self.producer.detach(id, self.now);
        }
    }

    /// A connection has room again.
    pub(crate) fn go_on(&mut self, id: SubscriptionId, serial: u64) {
        if self.streams.get(id).is_some_and(|stream| stream.outbox.serial() == serial) {
            self.producer.go_on(id);
        }
    }

    /// A principal showed a new token: its streams go on as long as that is good.
    pub(crate) fn renew(&mut self, peer: &Principal, expires: i64) {
        let until = self.boot_of(expires);
        for id in self.streams.of_principal.get(peer).cloned().unwrap_or_default() {
            let Some(stream) = self.streams.get_mut(id) else { continue };
            let Some(before) = stream.expires.filter(|before| *before < until) else { continue };
            stream.expires = Some(until);
            stream.known.renew(expires);
            self.streams.expiring.remove(&(before, id));
            self.streams.expiring.insert((until, id));
        }
    }

    // enforces: S4
    /// Ends the connections whose token is no longer good. Their subscriptions wait for another one.
    pub(super) fn end_expired(&mut self) {
        while let Some((at, id)) = self.streams.expiring.first().copied()
            && at <= self.now.boot
        {
            self.streams.end(id, End::Denied);
            // Whatever became of the stream: it is not looked at twice.
            self.streams.expiring.remove(&(at, id));
            self.producer.detach(id, self.now);
        }
    }

    /// A time of the wall clock, in milliseconds, on the boot clock.
    fn boot_of(&self, millis: i64) -> Boot {
        let left = millis.saturating_sub(self.now.wall.as_millis());
        let micros = u64::try_from(left).unwrap_or_default().saturating_mul(1000);
        Boot(self.now.boot.0.saturating_add(micros))
    }

    /// After the configuration was read again: those who are no longer let in hear nothing more.
    pub(crate) fn recheck(&mut self, access: &Access) {
        let denied: Vec<(SubscriptionId, Principal)> = self
            .streams
            .at
            .iter()
            .flatten()
            .filter(|stream| !access.still_valid(&stream.known))
            .map(|stream| (stream.outbox.subscription(), stream.known.principal.clone()))
            .collect();
        for (id, peer) in denied {
            self.producer.close(id, &peer, self.now);
            self.streams.end(id, End::Denied);
        }
    }

    /// A message of a subscriber that is no handshake (§6.3). Whatever becomes of it, nobody can see
    /// from outside; the error says that nothing can be kept now (decision D5). A client that sends
    /// too much is answered later, when the receiver says so (decision D40).
    pub(crate) fn message(
        &mut self,
        known: &AuthenticatedPeer,
        message: SubscriberMessage,
        arrival: &Arrival,
    ) -> Result<Taken, Refusal> {
        // Better no answer than one that may be forgotten: its sender can send it again.
        if !self.is_ready() {
            return Err(Refusal {
                blame: aaep_engine::Blame::Unavailable,
                rule: aaep_types::rule::C13,
                text: "Nothing can be made durable now; try again later.".into(),
            });
        }
        self.last_call += 1;
        let evidence = self.evidence(known, &message, arrival);
        let message = &message.with_evidence(evidence);
        let input = Input::Message { peer: &known.principal, message, call: self.last_call };
        let answer = self.handle(input)?;
        self.hub.metrics().replies.add(1);
        Ok(Taken(match answer {
            Handled::Held => {
                let (sender, receiver) = oneshot::channel();
                self.held_answers.insert(self.last_call, sender);
                Some(receiver)
            }
            _ => None,
        }))
    }

    // enforces: I30, I34
    /// What is known of a message beyond who sent it.
    fn evidence(
        &self,
        known: &AuthenticatedPeer,
        message: &SubscriberMessage,
        arrival: &Arrival,
    ) -> Evidence {
        let session = self.producer.engine().session_about(message);
        let session = session.filter(|_| self.judges_processes());
        let kinship = session.map(|session| self.agents.kinship(session, arrival));
        let proven = if !arrival.assertion.is_empty() {
            Some(Presence::Passkey)
        } else {
            let unlocked = self.is_unlocked(known, message.subscription(), arrival);
            unlocked.then_some(Presence::Pin)
        };
        let own_tree = match kinship {
            Some(Kinship::Certain) => true,
            // What only the person knows or has says more than what a process looks like.
            Some(Kinship::Suspected) => proven.is_none(),
            Some(Kinship::None) | None => false,
        };
        let heard = if known.is_proven() { Presence::Listener } else { Presence::None };
        let presence = proven.unwrap_or(heard);
        Evidence { presence, assertion: arrival.assertion.clone(), own_tree }
    }

    /// Since when somebody hears this subscription of theirs where they type their PIN; `None` if they
    /// do not.
    pub(crate) fn may_unlock(
        &self,
        known: &AuthenticatedPeer,
        id: SubscriptionId,
        arrival: &Arrival,
    ) -> Option<Boot> {
        let stream = self.streams.get(id)?;
        let here = arrival.link.is_none_or(|serial| stream.outbox.serial() == serial);
        (stream.known.principal == known.principal && here).then_some(stream.heard_since)
    }

    /// Whether the person's PIN was typed where this came from, and still counts.
    pub(crate) fn is_unlocked(
        &self,
        known: &AuthenticatedPeer,
        id: SubscriptionId,
        arrival: &Arrival,
    ) -> bool {
        let stream = self.streams.get(id);
        let stream = stream.filter(|stream| stream.known.principal == known.principal);
        let unlocked = stream.and_then(|stream| stream.unlocked.as_ref());
        unlocked.is_some_and(|unlocked| unlocked.counts_for(arrival, self.now.boot))
    }

    /// What somebody would answer with this token: the request and the digest of its action.
    pub(crate) fn answerable(
        &self,
        peer: &Principal,
        token: &ReplyToken,
    ) -> Option<(String, String)> {
        let (request, digest) = self.producer.engine().answerable(peer, token)?;
        Some((request.to_string(), digest.to_string()))
    }

    /// The person's PIN was typed: answers on this connection count until then. False if it is gone.
    pub(crate) fn unlock(
        &mut self,
        known: &AuthenticatedPeer,
        id: SubscriptionId,
        arrival: &Arrival,
        until: Boot,
    ) -> bool {
        let may = self.may_unlock(known, id, arrival).is_some();
        let stream = self.streams.get_mut(id).filter(|_| may);
        stream.map(|stream| stream.unlocked = Some(Unlocked::new(until, arrival))).is_some()
    }

    /// Tells those who hear for a user, and know the words, that something happened to their PIN.
    pub(crate) fn announce_presence(
        &mut self,
        user: &str,
        but: Option<SubscriptionId>,
        word: PresenceWord,
        failures: u32,
    ) {
        let streams = self.streams.at.iter().flatten();
        let theirs = streams.filter(|stream| &*stream.known.principal.user == user);
        let ids: Vec<(SubscriptionId, Principal)> = theirs
            .filter(|stream| stream.known.principal.role != Role::Agent)
            .map(|stream| (stream.outbox.subscription(), stream.known.principal.clone()))
            .filter(|(id, _)| Some(*id) != but)
            .collect();
        for (id, peer) in ids {
            let asked = self.producer.asked(id, &peer);
            if asked.is_some_and(|asked| asked.contains(presence::URI)) {
                self.answer_on(id, &state(id, word, 0, failures));
            }
            // A PIN that is another now was not typed here.
            if word == PresenceWord::Changed
                && let Some(stream) = self.streams.get_mut(id)
            {
                stream.unlocked = None;
            }
        }
    }

    /// The sender of a message whose answer was held gets it.
    pub(super) fn answer_held(&mut self, call: u64) {
        if let Some(sender) = self.held_answers.remove(&call) {
            let _ = sender.send(());
        }
    }
}

fn no_stream() -> Refusal {
    Refusal {
        blame: aaep_engine::Blame::Unavailable,
        rule: aaep_types::rule::H15,
        text: "The stream could not be opened; try again.".into(),
    }
}
