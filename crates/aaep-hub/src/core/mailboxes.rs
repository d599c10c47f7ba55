//! What people say to agents, kept until those take it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep_engine::{Blame, Boot, Principal, Refusal};
use aaep_types::agent_api::AgentInput;
use aaep_types::rule;
use tokio::sync::oneshot;

use super::Inputs;
use crate::access::has_secret;
use crate::config::Limits;

/// How long such a mailbox is kept while nobody looks into it, in seconds.
const UNREAD_SECONDS: u64 = 120;

#[derive(Default)]
struct Mailbox {
    waiting: VecDeque<AgentInput>,
    /// Bytes of what waits.
    bytes: usize,
    /// Calls that wait for something to come; several programs may share a principal.
    readers: Vec<oneshot::Sender<()>>,
    /// When the agent looked last; `None` if it never did.
    read_at: Option<Boot>,
}

#[derive(Default)]
pub(super) struct Mailboxes {
    all: BTreeMap<Principal, Mailbox>,
    /// Agents that take input, by their users.
    readers: BTreeMap<Arc<str>, BTreeSet<Principal>>,
    /// Those without a token, by when they looked last.
    secrets: BTreeSet<(Boot, Principal)>,
}

impl Mailboxes {
    pub(super) fn has(&self, agent: &Principal) -> bool {
        self.all.contains_key(agent)
    }

    /// Agents of this user that take input.
    pub(super) fn readers_of(&self, user: &str) -> impl Iterator<Item = &Principal> {
        self.readers.get(user).into_iter().flatten()
    }

    /// What was said to an agent. From the first time on, what people say is kept for it.
    pub(super) fn take(
        &mut self,
        agent: &Principal,
        limits: &Limits,
        now: Boot,
    ) -> Result<Inputs, Refusal> {
        let secret = has_secret(agent);
        if secret && !self.has(agent) {
            self.forget_unread(now);
            let most = limits.tokenless_mailboxes;
            if self.secrets.len() >= most {
                let text = format!(
                    "At most {most} agents without a token take input at once (limits.tokenless_mailboxes). Use a token."
                );
                return Err(Refusal { blame: Blame::Limit, rule: rule::T1, text });
            }
        }
        let mailbox = self.all.entry(agent.clone()).or_default();
        let before = mailbox.read_at.replace(now);
        if before.is_none() {
            self.readers.entry(agent.user.clone()).or_default().insert(agent.clone());
        }
        if secret {
            before.map(|before| self.secrets.remove(&(before, agent.clone())));
            self.secrets.insert((now, agent.clone()));
        }
        if mailbox.waiting.is_empty() {
            let (sender, receiver) = oneshot::channel();
            mailbox.readers.retain(|other| !other.is_closed());
            mailbox.readers.push(sender);
            return Ok(Inputs::Later(receiver));
        }
        mailbox.bytes = 0;
        Ok(Inputs::Here(mailbox.waiting.drain(..).collect()))
    }

    // enforces: I22
    /// Forgets the mailboxes of session secrets that nobody looks into any more.
    pub(super) fn forget_unread(&mut self, now: Boot) {
        while let Some((read_at, _)) = self.secrets.first()
            && read_at.after_seconds(UNREAD_SECONDS) <= now
            && let Some((_, agent)) = self.secrets.pop_first()
        {
            let Some(mailbox) = self.all.get_mut(&agent) else { continue };
            if mailbox.readers.iter().any(|reader| !reader.is_closed()) {
                mailbox.read_at = Some(now);
                self.secrets.insert((now, agent));
                continue;
            }
            self.all.remove(&agent);
            if let Some(readers) = self.readers.get_mut(&agent.user) {
                readers.remove(&agent);
                if readers.is_empty() {
                    self.readers.remove(&agent.user);
                }
            }
        }
    }

    // enforces: I22
    /// Puts something into an agent's mailbox; there is one for each agent at most.
    pub(super) fn put(
        &mut self,
        agent: &Principal,
        input: AgentInput,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        let mailbox = self.all.entry(agent.clone()).or_default();
        let bytes = mailbox.bytes + input.to_json().len();
        if mailbox.waiting.len() >= limits.inputs || bytes > limits.input_bytes {
            let (inputs, most) = (limits.inputs, limits.input_bytes);
            return Err(Refusal {
                blame: Blame::Limit,
                rule: rule::T1,
                text: format!(
                    "At most {inputs} inputs (limits.inputs) of {most} bytes (limits.input_bytes) wait for one agent, and it does not take them; try again later."
                ),
            });
        }
        mailbox.bytes = bytes;
        mailbox.waiting.push_back(input);
        for reader in mailbox.readers.drain(..) {
            let _ = reader.send(());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_engine::Role;

    fn agent(name: &str, user: &str) -> Principal {
        Principal::new(name, Role::Agent, user)
    }

    // covers: I22
    #[test]
    fn mailboxes_of_secrets_are_forgotten_unless_somebody_waits() {
        let mut known = Mailboxes::default();
        let [waits, gone] = ["local-agent:1", "local-agent:2"].map(|name| agent(name, "local"));
        let named = agent("cook", "ann");
        let limits = Limits::default();
        let Ok(Inputs::Later(waiting)) = known.take(&waits, &limits, Boot(0)) else { panic!() };
        drop(known.take(&gone, &limits, Boot(0)));
        drop(known.take(&named, &limits, Boot(0)));
        assert_eq!(known.readers_of("local").count(), 2);
        known.forget_unread(Boot(0).after_seconds(UNREAD_SECONDS));
        assert_eq!(known.readers_of("local").collect::<Vec<_>>(), [&waits]);
        assert_eq!(known.readers_of("ann").collect::<Vec<_>>(), [&named]);
        drop(waiting);
        known.forget_unread(Boot(0).after_seconds(2 * UNREAD_SECONDS));
        assert!(known.readers.len() == 1 && known.all.len() == 1 && known.secrets.is_empty());
    }

    // covers: I22
    #[test]
    fn secrets_take_input_within_a_bound_and_looking_again_takes_no_more() {
        let mut known = Mailboxes::default();
        let limits = Limits { tokenless_mailboxes: 20, ..Limits::default() };
        for number in 0..20 {
            let agent = agent(&format!("local-agent:{number}"), "local");
            for moment in 0..2 {
                assert!(known.take(&agent, &limits, Boot(moment)).is_ok());
            }
        }
        let Err(refused) = known.take(&agent("local-agent:x", "local"), &limits, Boot(2)) else {
            panic!("it took more");
        };
        assert!(refused.text.contains("(limits.tokenless_mailboxes)"), "{refused:?}");
        assert!(known.take(&agent("cook", "ann"), &limits, Boot(2)).is_ok(), "it has a token");
    }
}
