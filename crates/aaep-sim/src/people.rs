//! What comes from the other side: people who answer, and others who try to.

use aaep_engine::{Evidence, Input, Rules, SubscriberMessage};
use aaep_types::{Presence, SubscriptionId, Timestamp};

use crate::cast::{ACTORS, LISTENERS, may_answer};
use crate::oracle::{Cause, Line, Reply, ReplyKind, Verdict};
use crate::world::World;

/// How much time somebody may ask for, in seconds; sometimes less than there is.
const MORE_SECONDS: [u64; 5] = [5, 30, 100, 500, 86_400];

/// What people show: mostly that they are there.
const SHOWN: [Presence; 6] = [
    Presence::Pin,
    Presence::Pin,
    Presence::Pin,
    Presence::Passkey,
    Presence::Listener,
    Presence::None,
];

impl<R: Rules> World<'_, R> {
    /// A person answers something that was asked; it may take a while to arrive, or never do.
    pub(crate) fn person_answers(&mut self) {
        let Some(&prompt) = self.random.pick(&self.prompts) else { return };
        let mut able = (0..LISTENERS.len()).filter(|c| may_answer(LISTENERS[*c], prompt.user));
        let Some(client) = (if self.random.one_in(3) { able.nth(1) } else { able.next() }) else {
            return;
        };
        let said = match (prompt.confirmation, self.random.below(10)) {
            (_, 0) => ReplyKind::MoreTime(MORE_SECONDS[self.random.below(MORE_SECONDS.len())]),
            (false, _) => ReplyKind::Answer,
            (true, 1) => ReplyKind::AcceptModified,
            (true, 2 | 3) => ReplyKind::Reject,
            (true, _) => ReplyKind::Accept,
        };
        let (peer, subscription) = (self.clients[client].principal, self.id_or_any(client));
        let stamp = self.clocks.now().wall;
        let shown = *self.random.pick(&SHOWN).unwrap_or(&Presence::None);
        let own_tree = false;
        let reply = Reply { peer, subscription, token: prompt.token, said, stamp, shown, own_tree };
        match self.random.below(12) {
            0 => self.note(|| "a reply is lost".into()),
            1 | 2 => self.fly(reply, 60_000),
            3 => self.fly(reply, 400_000),
            4 => {
                self.send(reply);
                self.fly(reply, 30_000);
            }
            _ => self.send(reply),
        }
        if self.captured.len() < 16 {
            self.captured.push(reply);
        }
    }

    /// The id of a client's subscription; who never had one makes one up.
    pub(crate) fn id_or_any(&self, client: usize) -> SubscriptionId {
        self.id(client).unwrap_or_else(|| SubscriptionId::from_bits(1))
    }

    fn fly(&mut self, reply: Reply, at_most: usize) {
        let arrives = self.clocks.passed + self.random.below(at_most) as u64;
        self.flying.push((arrives, reply));
    }

    /// Replies that have been on their way arrive, in any order.
    pub(crate) fn land(&mut self) {
        let now = self.clocks.passed;
        while let Some(index) = self.flying.iter().position(|(at, _)| *at <= now) {
            let (_, reply) = self.flying.swap_remove(index);
            self.send(reply);
        }
    }

    /// A reply that must not count, or one that was heard before.
    pub(crate) fn attacker_answers(&mut self) {
        let Some(&prompt) = self.random.pick(&self.prompts) else { return };
        let client = self.random.below(LISTENERS.len());
        let mut reply = Reply {
            peer: LISTENERS[client],
            subscription: self.id_or_any(client),
            token: prompt.token,
            said: ReplyKind::Accept,
            stamp: self.clocks.now().wall,
            shown: Presence::None,
            own_tree: false,
        };
        match self.random.below(10) {
            0 => reply.token = self.random.bits(),
            1 => reply.subscription = self.any_id(),
            2 => reply.peer = self.random.below(ACTORS),
            3 => {
                reply.said = if prompt.confirmation { ReplyKind::Answer } else { ReplyKind::Accept }
            }
            4 => {
                let off_by = (self.random.below(2_000_000) as i64 - 1_000_000) * 1000;
                let stamp = Timestamp::from_millis(reply.stamp.as_millis() + off_by);
                reply.stamp = stamp.unwrap_or(reply.stamp);
                reply.said =
                    if self.random.one_in(2) { ReplyKind::Reject } else { ReplyKind::Accept };
            }
            5 | 6 => reply = self.random.pick(&self.captured).copied().unwrap_or(reply),
            7 => {
                reply.said =
                    ReplyKind::MoreTime(MORE_SECONDS[self.random.below(MORE_SECONDS.len())])
            }
            // The agent listens itself, and may even know the PIN.
            8 => {
                reply.own_tree = true;
                reply.shown = Presence::Pin;
                reply.said =
                    if prompt.confirmation { ReplyKind::Accept } else { ReplyKind::Answer };
            }
            _ => {}
        }
        self.send(reply);
    }

    /// The id of any subscription that there ever was.
    pub(crate) fn any_id(&mut self) -> SubscriptionId {
        let any = self.random.pick(&self.oracle.listeners).map(|listener| listener.id);
        any.unwrap_or_else(|| SubscriptionId::from_bits(1))
    }

    /// Bytes that are no reply are refused, and nothing happens.
    pub(crate) fn attacker_babbles(&mut self) {
        let junk: &[u8] = [
            &b"{"[..],
            br#"{"type":"confirmation.reply","decision":"reject","decision":"accept"}"#,
            b"\xff\xfe",
            br#"{"type":"confirmation.reply"}"#,
            br#"{"type":"timing:extend","seconds":1000000}"#,
        ][self.random.below(5)];
        if SubscriberMessage::parse(junk).is_ok() {
            self.oracle.violated("I6", "bytes that are no message were taken".into());
        }
    }

    /// Somebody stops an agent; it counts if the agent works for them.
    pub(crate) fn person_stops(&mut self) {
        let index = self.random.below(self.errands.len());
        let Some(session) = self.errands.get(index).map(|errand| errand.session) else { return };
        let client = self.random.below(LISTENERS.len());
        let (peer, subscription, line) =
            (LISTENERS[client], self.id_or_any(client), self.line(client));
        let open = self.oracle.sessions.get(&session).filter(|known| known.ended.is_none());
        let counts = open.is_some_and(|known| may_answer(peer, known.user))
            && !matches!(line, Line::Closed(_))
            && !self.oracle.journal_down;
        let ignored =
            Verdict { request: None, outcome: None, more: None, surely: true, otherwise: "I15" };
        let cause = if counts { Cause::End(session) } else { Cause::Reply(ignored) };
        let stamp = self.clocks.now().wall;
        let message = format!(
            r#"{{"type":"control:cancel","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{stamp}"}}"#
        );
        self.deliver_message((peer, subscription), &message, Evidence::none(), cause);
        let ended = self.oracle.sessions.get(&session).is_none_or(|known| known.ended.is_some());
        if counts && line == Line::Live && self.hub.is_some() && !ended {
            self.oracle.violated("I13", "a person could not stop the agent".into());
        }
    }

    pub(crate) fn send(&mut self, reply: Reply) {
        let verdict = self.oracle.judge(&reply, self.clocks.passed);
        self.note(|| format!("{reply:?} is worth {verdict:?}"));
        let from = (reply.peer, reply.subscription);
        let evidence = Evidence { own_tree: reply.own_tree, ..Evidence::of(reply.shown) };
        self.deliver_message(from, &reply.message(), evidence, Cause::Reply(verdict));
    }

    /// D40: junk without end, from a device of the same person or from anybody else, and in the
    /// middle of it an answer that counts.
    pub(crate) fn attacker_floods(&mut self) {
        let client = self.random.below(LISTENERS.len());
        let most = self.limits.replies_per_second as usize;
        for _ in 0..most + self.random.below(4 * most) {
            let reply = Reply {
                peer: LISTENERS[client],
                subscription: if self.random.one_in(3) {
                    self.any_id()
                } else {
                    self.id_or_any(client)
                },
                token: self.random.bits(),
                said: if self.random.one_in(2) { ReplyKind::Accept } else { ReplyKind::Reject },
                stamp: self.clocks.now().wall,
                shown: Presence::None,
                own_tree: false,
            };
            self.send(reply);
        }
        self.person_answers();
    }

    fn deliver_message(
        &mut self,
        (peer, subscription): (usize, SubscriptionId),
        message: &str,
        evidence: Evidence,
        cause: Cause,
    ) {
        if self.hub.is_none() {
            return;
        }
        self.calls += 1;
        let call = self.calls;
        self.oracle.sent(call);
        self.oracle.now = self.clocks.passed;
        self.oracle.arrives(peer, subscription, call, cause);
        let peer = &self.cast.everybody[peer];
        let Ok(message) = SubscriberMessage::parse(message.as_bytes()) else {
            return self.oracle.violated("I6", "a well-formed reply was refused".into());
        };
        let message = message.with_evidence(evidence);
        let input = Input::Message { peer, message: &message, call };
        let answer = self.handle_and(input, cause, |world, _| {
            world.drain();
            world.oracle.taken(call);
        });
        if matches!(answer, Some(Err(_))) {
            self.oracle.violated("I6", "a well-formed reply was refused".into());
        }
    }
}
