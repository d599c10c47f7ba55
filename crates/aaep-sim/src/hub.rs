//! The edge of the hub: connections with a bounded outbox each, the handshake, and what becomes of
//! those who do not read.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep_engine::{Handshake, Input, Negotiated, Resumed, Rules};
use aaep_shaping::Prepared;
use aaep_types::SubscriptionId;

use crate::cast::user_of;
use crate::client::{Parcel, Reads};
use crate::oracle::{Cause, Line, Listener, text};
use crate::picture::Way;
use crate::wants::Wants;
use crate::world::World;

/// Messages that a connection holds. When it is full its subscription is paused: what is said waits
/// in the shaper, merged where it can be, and beyond the bound the subscription is ended.
const OUTBOX_MESSAGES: usize = 6;
/// A connection that took nothing for so long is closed, and that is recorded; the device may come
/// back for what it missed.
const STALLED_MILLIS: u64 = 60_000;

impl<R: Rules> World<'_, R> {
    /// How the subscription of a client stands; one that this hub never knew is closed.
    pub(crate) fn line(&self, client: usize) -> Line {
        let listener = self.clients[client].listener.map(|index| &self.oracle.listeners[index]);
        listener.filter(|listener| listener.known).map_or(Line::Closed(0), |l| l.line)
    }

    /// The id of a client's subscription, known or not.
    pub(crate) fn id(&self, client: usize) -> Option<SubscriptionId> {
        Some(self.oracle.listeners[self.clients[client].listener?].id)
    }

    fn listener(&mut self, client: usize) -> Option<&mut Listener> {
        let index = self.clients[client].listener?;
        self.oracle.listeners.get_mut(index)
    }

    /// The handshake: a client asks, and the hub agrees unless it has no room.
    pub(crate) fn negotiate(&mut self, client: usize) {
        if self.clients[client].is_link() {
            // What was changed on another connection is not asked for on this one.
            self.clients[client].wants = Wants::PLAIN;
        }
        let (principal, wants) = (self.clients[client].principal, self.clients[client].wants);
        let (peer, offer) = (&self.cast.everybody[principal], &self.cast.offer);
        let begun =
            self.clients[client].picture.as_mut().map(|picture| (picture.begin(), picture.way));
        let message = match begun {
            Some((request, Way::Link)) => request,
            _ => wants.request(),
        };
        self.note(|| format!("client {client}: {message}"));
        let Ok(mut read) = Handshake::parse(message.as_bytes(), peer, offer) else {
            return self.oracle.violated("H15", format!("a handshake cannot be read: {message}"));
        };
        if self.clients[client].is_link() {
            (read, self.clients[client].last) = read.over_link();
        }
        self.call(
            Cause::Other,
            |hub, now| hub.negotiate(peer, read, now).map(Negotiated::json),
            |world, answer| {
                let answer = answer.as_ref().ok().and_then(Option::as_deref).unwrap_or_default();
                let id = text(answer, "\"subscription_id\":\"");
                match id.and_then(|id| SubscriptionId::parse(id).ok()) {
                    Some(id) => {
                        let now = (world.clocks.passed, world.clocks.now().boot.0);
                        world.clients[client].listener = Some(world.oracle.listeners.len());
                        let listener = Listener::new(principal, id, wants, now);
                        world.oracle.listeners.push(listener);
                        if let Some(picture) = &mut world.clients[client].picture {
                            picture.hear(answer, world.clocks.passed);
                        }
                    }
                    None => world.turned_away(principal, answer),
                }
            },
        );
    }

    /// A principal that has taken its share is told so; nobody is turned away for what others hold (I29).
    fn turned_away(&mut self, principal: usize, answer: &str) {
        let for_others = answer.contains("(limits.subscriptions)");
        self.oracle.demand(!for_others, "I29", || format!("turned away for others: {answer}"));
        let user = user_of(principal);
        let open = |l: &&Listener| {
            l.known && user_of(l.principal) == user && !matches!(l.line, Line::Closed(_))
        };
        let held = self.oracle.listeners.iter().filter(open).count();
        let full = held >= self.limits.subscriptions_per_user;
        let lawful = full && answer.contains("\"rate_limit\"");
        self.oracle.demand(lawful, "H15", || format!("a handshake was answered by {answer:?}"));
    }

    /// A connection takes a client's subscription over, with the last event that it read.
    pub(crate) fn attach(&mut self, client: usize, resumes: bool, afresh: bool) {
        let Some(id) = self.id(client) else { return };
        let lives = !matches!(self.line(client), Line::Closed(_));
        let known = &self.clients[client];
        let last = known.last.filter(|_| resumes);
        let peer = &self.cast.everybody[known.principal];
        self.note(|| format!("client {client} attaches to {id} after {last:?}"));
        // Told how things stand, nobody can say what was missed; and on another subscription than
        // the one it was heard on, nobody knows what was merged into the last event.
        let merged = afresh && !self.clients[client].wants.is_plain();
        if afresh {
            self.clients[client].ear.listen_elsewhere();
        }
        let anew = |resumed: Option<Resumed>| merged || resumed != Some(Resumed::All);
        let resumed = self.call(
            Cause::Other,
            |hub, now| hub.attach(id, peer, last.as_ref().map(|last| last.as_str()), now),
            |world, resumed| {
                let resumed = *resumed;
                world.oracle.demand(resumed.is_some() == lives, "H19", || {
                    format!("a subscription that lives: {lives}, attached: {resumed:?}")
                });
                if resumed.is_some() {
                    let exact = !afresh && resumed == Some(Resumed::All);
                    let snapshot = resumed == Some(Resumed::Snapshot);
                    world.attached(client, anew(resumed), exact, snapshot);
                    let known = &mut world.clients[client];
                    let slowly = !known.wants.is_plain() || known.reads != Reads::Briskly;
                    if let Some(picture) = &mut known.picture {
                        picture.attached(!snapshot, slowly, world.clocks.passed);
                    }
                }
            },
        );
        if anew(resumed.flatten()) {
            self.clients[client].ear.begin_anew(self.outputs);
        } else if self.motley {
            self.clients[client].ear.number_anew(self.outputs);
        }
    }

    fn attached(&mut self, client: usize, anew: bool, exact: bool, snapshot: bool) {
        self.clients[client].outbox.clear();
        self.clients[client].full_since = None;
        if anew {
            self.clients[client].ear.begin_anew(usize::MAX);
        } else if self.motley {
            // So much at once may be merged for want of room.
            self.clients[client].ear.number_anew(usize::MAX);
        }
        let Some(index) = self.clients[client].listener else { return };
        self.oracle.listeners[index].attach();
        // Who goes on where they left off need not be asked again what they were asked before.
        let nothing = BTreeSet::new();
        let knows = if exact { &self.clients[client].asked } else { &nothing };
        self.oracle.came(index, knows, snapshot);
        self.oracle.note_repliers();
    }

    /// A connection is lost; what it held may have arrived or not.
    pub(crate) fn detach(&mut self, client: usize) {
        let Some(id) = self.id(client).filter(|_| self.line(client) == Line::Live) else { return };
        let now = self.clocks.passed;
        self.hang_up(client);
        if let Some(listener) = self.listener(client) {
            listener.lose(now);
        }
        self.note(|| format!("client {client} loses its line"));
        self.call(Cause::Other, |hub, now| hub.detach(id, now), |_, ()| {});
    }

    /// Reads some of what the connection still held, and forgets the rest.
    pub(crate) fn hang_up(&mut self, client: usize) {
        let known = &mut self.clients[client];
        if !known.outbox.is_empty() && known.reads != Reads::Never {
            let arrived = self.random.below(known.outbox.len() + 1);
            known.read(arrived, &mut self.oracle);
        }
        self.clients[client].outbox.clear();
        self.clients[client].full_since = None;
        if let Some(picture) = &mut self.clients[client].picture {
            picture.lost(self.clocks.passed);
        }
    }

    /// A client says goodbye.
    pub(crate) fn leave(&mut self, client: usize) {
        let Some(id) = self.id(client).filter(|_| !matches!(self.line(client), Line::Closed(_)))
        else {
            return;
        };
        let now = self.clocks.passed;
        self.hang_up(client);
        if let Some(listener) = self.listener(client) {
            listener.close(now);
        }
        let message = format!(r#"{{"type":"subscription.close","subscription_id":"{id}"}}"#);
        self.note(|| format!("client {client} leaves"));
        let peer = &self.cast.everybody[self.clients[client].principal];
        let act =
            |hub: &mut crate::world::Hub<R>, now| hub.handshake(peer, message.as_bytes(), now);
        self.call(Cause::Other, act, |_, _| {});
    }

    /// A client wants other terms. They hold from the answer on.
    pub(crate) fn renegotiate(&mut self, client: usize, wants: Wants) {
        let Some(id) = self.id(client) else { return };
        let lives = !matches!(self.line(client), Line::Closed(_));
        let before = self.clients[client].wants;
        let message = wants.renegotiation(id.as_str(), &before);
        self.note(|| format!("client {client}: {message}"));
        let peer = &self.cast.everybody[self.clients[client].principal];
        self.call(
            Cause::Other,
            |hub, now| hub.handshake(peer, message.as_bytes(), now),
            |world, answer| {
                let accepted = matches!(answer, Ok(Some(json)) if json.contains(".accepted"));
                world.oracle.demand(accepted == lives, "H18", || {
                    format!("a subscription that lives: {lives}, new terms: {answer:?}")
                });
                world.new_terms(client, wants, !accepted);
                if let (Some(picture), Ok(Some(json))) =
                    (&mut world.clients[client].picture, answer)
                {
                    picture.hear(json, world.clocks.passed);
                }
            },
        );
        self.clients[client].ear.begin_anew(self.outputs);
    }

    /// A client's terms are these from now on, unless its subscription ends over them.
    pub(crate) fn new_terms(&mut self, client: usize, wants: Wants, ends: bool) {
        let now = self.clocks.passed;
        self.clients[client].wants = wants;
        self.clients[client].ear.begin_anew(usize::MAX);
        if !wants.hears_all() {
            // Who does not hear of sessions has no picture of them.
            self.clients[client].picture = None;
        }
        match self.listener(client) {
            Some(listener) if ends => listener.close(now),
            Some(listener) => listener.change(wants),
            None => {}
        }
        // D2: who gets the right to answer is somebody who could.
        self.oracle.note_repliers();
    }

    /// Something to send. A connection without room for it is closed, and that is recorded.
    pub(crate) fn post(&mut self, id: SubscriptionId, event: Arc<Prepared>, bytes: Arc<str>) {
        let boot = self.clocks.now().boot.0;
        let listeners = &self.oracle.listeners;
        let Some(index) = listeners.iter().rposition(|l| l.known && l.id == id) else {
            return self.oracle.violated("I4", "something was sent to nobody".into());
        };
        self.oracle.sent_to(index, &event, &bytes, boot);
        let Some(client) = self.clients.iter().position(|c| c.listener == Some(index)) else {
            return;
        };
        let now = self.clocks.passed;
        let known = &mut self.clients[client];
        known.outbox.push_back(Parcel { event, bytes });
        if known.reads == Reads::Briskly {
            known.read(usize::MAX, &mut self.oracle);
        }
        if known.outbox.len() >= OUTBOX_MESSAGES {
            known.full_since.get_or_insert(now);
            known.ear.number_anew(usize::MAX);
            self.oracle.listeners[index].paused = true;
            if let Some(hub) = &mut self.hub {
                hub.pause(id);
            }
        }
    }

    /// Those who read slowly read a little; those who do not read at all are cut off in the end.
    pub(crate) fn connections_move(&mut self) {
        for client in 0..self.clients.len() {
            if self.clients[client].reads == Reads::Slowly {
                let few = self.random.below(4);
                self.clients[client].read(few, &mut self.oracle);
            }
            let Some(since) = self.clients[client].full_since else { continue };
            if self.clients[client].outbox.len() <= OUTBOX_MESSAGES / 2 {
                self.go_on(client);
            } else if self.clocks.passed >= since + STALLED_MILLIS && self.up_to_date() {
                self.note(|| format!("client {client} does not read; its connection is closed"));
                self.detach(client);
            }
        }
    }

    /// A connection takes more again.
    fn go_on(&mut self, client: usize) {
        self.clients[client].full_since = None;
        let Some(id) = self.id(client).filter(|_| self.line(client) == Line::Live) else { return };
        if !self.up_to_date() {
            return;
        }
        if let Some(listener) = self.listener(client) {
            listener.go_on();
        }
        if let Some(picture) = &mut self.clients[client].picture {
            picture.goes_on();
        }
        self.call(Cause::Other, |hub, _| hub.go_on(id), |_, ()| {});
        if self.clients[client].full_since.is_none() {
            self.clients[client].ear.number_anew(self.outputs);
        }
    }

    /// The hub ends a subscription that holds too much, and says why.
    pub(crate) fn ended(&mut self, id: SubscriptionId, reason: &str) {
        let now = self.clocks.passed;
        self.note(|| format!("{id} is ended: {reason}"));
        self.oracle.demand(!reason.is_empty(), "I4", || "ended without a reason".into());
        let found = self.oracle.listeners.iter_mut().rfind(|l| l.known && l.id == id);
        if let Some(listener) = found {
            listener.close(now);
        }
        if let Some(client) = (0..self.clients.len()).find(|client| self.id(*client) == Some(id))
            && let Some(picture) = &mut self.clients[client].picture
        {
            picture.lost(now);
        }
    }

    /// Whatever was due is due before somebody comes or goes; false if the hub went down over it.
    pub(crate) fn up_to_date(&mut self) -> bool {
        self.handle(Input::Tick, Cause::Other).is_some()
    }
}
