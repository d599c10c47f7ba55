//! What is neither an event nor a request: streamed text, silence, connections, lengths of time.

use super::speech::Speech;
use super::{Argument, SpokenLine, Words};
use crate::notification::{Identity, Silence};

impl Speech<'_> {
    /// Text of the agent's answer: its lines, as they are.
    pub(super) fn text(&mut self, text: &str, after_gap: bool) {
        if after_gap {
            self.say("text.gap", &[]);
        }
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            self.line_of_text(line);
        }
    }

    pub(super) fn silence(&mut self, why: Silence, count: u64) {
        let key = match why {
            Silence::Missing => "silence.missing",
            Silence::TooMuch => "silence.too_much",
            Silence::Unreadable => "silence.unreadable",
        };
        match count {
            0 => self.say(&format!("{key}.some"), &[]),
            _ => self.say(key, &[("count", Argument::Count(count))]),
        }
    }

    pub(super) fn connected(&mut self, hub: &str, again: bool, may_reply: bool) {
        let key = if again { "connected.again" } else { "connected" };
        self.say(key, &[("hub", Argument::Ours(hub))]);
        if !may_reply {
            self.say("connected.listen_only", &[]);
        }
    }

    /// Who is known is not named again at every comeback.
    pub(super) fn identity(&mut self, identity: &Identity, again: bool) {
        match identity {
            Identity::Unsigned if !again => self.say("identity.unsigned", &[]),
            Identity::Verified { agent_id, .. } if !again => {
                self.say("identity.verified", &[("agent", Argument::Theirs(agent_id))]);
            }
            Identity::New { agent_id, key } => {
                let agent = ("agent", Argument::Theirs(agent_id));
                self.say("identity.new", &[agent, ("key", Argument::Ours(key))]);
            }
            Identity::Unsigned | Identity::Verified { .. } => {}
        }
    }

    pub(super) fn lost(&mut self, hub: &str, why: &str) {
        let hub = ("hub", Argument::Ours(hub));
        match why.trim() {
            "" => self.say("lost.bare", &[hub]),
            why => self.say("lost", &[hub, ("why", Argument::Ours(why))]),
        }
        self.say("lost.retrying", &[]);
    }
}

impl Words {
    /// A length of time: "90 seconds", "5 minutes", "2 hours 30 minutes".
    pub fn duration(&self, seconds: u64) -> SpokenLine {
        let of = |key, count| self.phrase(key, &[("count", Argument::Count(count))]);
        let two = |first: SpokenLine, second: SpokenLine| {
            let both = [("first", Argument::Phrase(&first)), ("second", Argument::Phrase(&second))];
            self.phrase("time.and", &both)
        };
        // Up to here seconds are easier to grasp than minutes and a rest.
        const PLAIN_SECONDS: u64 = 90;
        let (minutes, rest) = (seconds / 60, seconds % 60);
        let (hours, rest_minutes) = (minutes / 60, minutes % 60);
        match (hours, minutes, rest) {
            (_, 1, 0) => of("time.minutes", 1),
            _ if seconds <= PLAIN_SECONDS => of("time.seconds", seconds),
            (0, _, 0) => of("time.minutes", minutes),
            (0, _, _) => two(of("time.minutes", minutes), of("time.seconds", rest)),
            _ if rest_minutes == 0 => of("time.hours", hours),
            _ => two(of("time.hours", hours), of("time.minutes", rest_minutes)),
        }
    }
}
