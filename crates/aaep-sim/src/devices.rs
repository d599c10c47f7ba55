//! Devices that come, go, come back, ask for other terms, read slowly or not at all; and those that
//! try to listen where they may not.

use aaep_engine::Rules;

use crate::cast::{ACTORS, LISTENERS};
use crate::client::Reads;
use crate::mutants;
use crate::oracle::{Cause, Line};
use crate::picture::{Picture, Way};
use crate::random::Random;
use crate::wants::Wants;
use crate::witness::Witness;
use crate::world::World;

/// In one of so many schedules somebody has a picture of what goes on.
const PICTURED: usize = 4;
/// The first of those who listen are people, or hear what people hear.
const PEOPLE: usize = 4;
/// Bob's device among them; those before it are Ann's.
const BOB: usize = 2;

impl<R: Rules> World<'_, R> {
    /// Who listens, on which terms, and who judges what they hear.
    pub(crate) fn devices_are_made(&mut self) {
        for client in 0..LISTENERS.len() {
            if self.motley {
                self.clients[client].wants = Wants::anything(&mut self.random);
                self.clients[client].reads = match self.random.below(8) {
                    0 | 1 => Reads::Slowly,
                    2 => Reads::Never,
                    _ => Reads::Briskly,
                };
            }
        }
        let client = self.random.below(LISTENERS.len());
        match self.random.below(4) {
            _ if self.motley => self.clients[client].ear.witness = Some(Witness::new(false)),
            0 => self.clients[client].ear.witness = Some(Witness::new(false)),
            1 => self.witness = Some(Witness::new(self.random.one_in(2))),
            _ => {}
        }
        self.somebody_has_a_picture();
    }

    /// I32: in some schedules, one device has the program that people have.
    fn somebody_has_a_picture(&mut self) {
        // Drawn apart, so that what happens is the same with and without it.
        let mut random = self.random.clone();
        if self.sleeper.is_some() || !random.one_in(PICTURED) {
            return;
        }
        let client = random.below(PEOPLE);
        let way = if random.one_in(2) { Way::Link } else { Way::Stream };
        let known = &mut self.clients[client];
        known.wants = if way == Way::Link { Wants::PLAIN } else { known.wants.unfiltered() };
        known.picture = Some(Box::new(Picture::new(way, mutants::flaw())));
    }

    /// Somebody connects, or comes back.
    pub(crate) fn join(&mut self, client: usize) {
        if !self.up_to_date() {
            return;
        }
        let afresh = self.random.one_in(4) && self.line(client) != Line::Live;
        let resumes = !self.random.one_in(4);
        self.connect(client, afresh, resumes);
    }

    /// Subscribes if need be, or if a new beginning is wanted, and attaches.
    pub(crate) fn connect(&mut self, client: usize, afresh: bool, resumes: bool) {
        if self.clients[client].is_link() {
            self.detach(client);
        }
        let link = self.clients[client].is_link();
        let afresh = afresh || link || matches!(self.line(client), Line::Closed(_));
        if afresh {
            self.clients[client].listener = None;
            self.negotiate(client);
        }
        self.attach(client, resumes || link, afresh);
    }

    pub(crate) fn person_joins(&mut self) {
        let client = self.random.below(LISTENERS.len());
        // A second connection takes the stream over.
        if self.line(client) != Line::Live || self.motley && self.random.one_in(4) {
            self.join(client);
        }
    }

    pub(crate) fn join_if_away(&mut self, client: usize) {
        if self.line(client) != Line::Live {
            self.join(client);
        }
    }

    /// The line breaks, or somebody closes it.
    pub(crate) fn person_goes(&mut self) {
        let client = self.random.below(LISTENERS.len());
        let leaves = self.random.one_in(3);
        if self.line(client) != Line::Live || !self.up_to_date() {
            return;
        }
        if leaves { self.leave(client) } else { self.detach(client) }
    }

    /// I16, H18: somebody asks for other terms, mostly to give up the right to answer, or to get it.
    pub(crate) fn person_renegotiates(&mut self) {
        let client = self.random.below(LISTENERS.len());
        if self.clients[client].listener.is_some() && self.up_to_date() {
            let wants = self.clients[client].wants.changed(&mut self.random);
            self.renegotiate(client, wants);
        }
    }

    /// Somebody tries to listen where they may not, or to fill the hub's memory.
    pub(crate) fn attacker_listens(&mut self) {
        if !self.up_to_date() {
            return;
        }
        match self.random.below(5) {
            0 => self.attacker_attaches(),
            4 => self.tenant_subscribes(),
            1 => self.attacker_shakes_hands(r#"{"type":"subscription.close","subscription_id":"ID"}"#),
            2 => self.attacker_shakes_hands(
                r#"{"type":"subscription.renegotiate","subscription_id":"ID","capabilities":{"supports_confirmation_reply":false}}"#,
            ),
            _ => self.attacker_asks_for_much(),
        }
    }

    /// I29: one tenant asks for subscriptions that nobody attaches to; another one still has its share.
    /// It is never Ann's, of whose share the sleeper has a part.
    fn tenant_subscribes(&mut self) {
        let (hostile, other) = (BOB, self.random.below(BOB));
        if self.line(hostile) == Line::Live || self.clients[hostile].picture.is_some() {
            return;
        }
        for _ in 0..self.limits.subscriptions {
            self.negotiate(hostile);
        }
        self.detach(other);
        self.connect(other, true, true);
    }

    /// A stolen subscription id looks like an unknown one.
    fn attacker_attaches(&mut self) {
        let (id, thief) = (self.any_id(), self.random.below(ACTORS));
        let owner = self.oracle.listener(id).map(|listener| listener.principal);
        if owner == Some(thief) {
            return;
        }
        let peer = &self.cast.everybody[thief];
        let opened = self.call(Cause::Other, |hub, now| hub.attach(id, peer, None, now), |_, _| {});
        if matches!(opened, Some(Some(_))) {
            self.oracle.violated("S4", "a stolen subscription was opened".into());
        }
    }

    fn attacker_shakes_hands(&mut self, message: &str) {
        let (id, thief) = (self.any_id(), self.random.below(ACTORS));
        if self.oracle.listener(id).is_some_and(|listener| listener.principal == thief) {
            return;
        }
        let message = message.replace("ID", id.as_str());
        self.note(|| format!("principal {thief}: {message}"));
        let peer = &self.cast.everybody[thief];
        let act =
            |hub: &mut crate::world::Hub<R>, now| hub.handshake(peer, message.as_bytes(), now);
        if matches!(self.call(Cause::Other, act, |_, _| {}), Some(Ok(Some(_)))) {
            self.oracle.violated("S4", "somebody else's terms were changed".into());
        }
    }

    /// A device asks for ever more things that mean nothing; its own terms stay as they are.
    fn attacker_asks_for_much(&mut self) {
        let client = self.random.below(LISTENERS.len());
        let Some(id) = self.id(client).filter(|_| !matches!(self.line(client), Line::Closed(_)))
        else {
            return;
        };
        let peer = &self.cast.everybody[LISTENERS[client]];
        let junk = junk(&mut self.random);
        let message = format!(
            r#"{{"type":"subscription.renegotiate","subscription_id":"{id}","capabilities":{junk}}}"#
        );
        let wants = self.clients[client].wants;
        let act =
            |hub: &mut crate::world::Hub<R>, now| hub.handshake(peer, message.as_bytes(), now);
        self.call(Cause::Other, act, |world, answer| {
            world.oracle.demand(matches!(answer, Ok(Some(_))), "H18", || format!("{answer:?}"));
            let ends = matches!(answer, Ok(Some(json)) if json.contains(".rejected"));
            world.new_terms(client, wants, ends);
        });
    }
}

/// Capabilities of extensions that nobody knows.
fn junk(random: &mut Random) -> String {
    let padding = "x".repeat(1 << random.below(14));
    let names: Vec<String> =
        (0..3).map(|_| format!(r#""x{}":{{"a":"{padding}"}}"#, random.draw())).collect();
    format!("{{{}}}", names.join(","))
}
