//! What still has to follow in a session, by the profile in force (§7.10): a session is not completed
//! while something is owed.

use std::collections::{BTreeMap, BTreeSet};

use aaep_engine::{Blame, Refusal};
use aaep_types::profile::Profile;
use aaep_types::{EventKind, SessionId, rule};

/// Places of a profile's rules, by session. A profile has a bounded number of rules.
#[derive(Default)]
pub(super) struct Owed(BTreeMap<SessionId, BTreeSet<usize>>);

impl Owed {
    // enforces: X9
    /// Whether a session may be completed. It may fail or be cancelled whatever is owed.
    pub(super) fn admits(
        &self,
        profile: &Profile,
        session: SessionId,
        kind: EventKind,
    ) -> Result<(), Refusal> {
        if kind != EventKind::SessionCompleted {
            return Ok(());
        }
        let mut owed = self.0.get(&session).into_iter().flatten();
        let missing = owed.find_map(|&place| {
            let rule = profile.rules.get(place)?;
            rule.followed_by.as_deref().filter(|name| *name != kind.as_str()).map(|it| (rule, it))
        });
        let Some((rule, name)) = missing else { return Ok(()) };
        let text = format!(
            "{} Send `{name}` before you complete the session ({}, {}).",
            rule.text, rule.id, profile.name
        );
        Err(Refusal { blame: Blame::OutOfOrder, rule: rule::X9, text })
    }

    /// An event of this type was said, and these rules ask for something to follow it.
    pub(super) fn said(
        &mut self,
        profile: &Profile,
        session: SessionId,
        type_name: &str,
        asks: &[usize],
    ) {
        if let Some(owed) = self.0.get_mut(&session) {
            owed.retain(|&place| profile.rules[place].followed_by.as_deref() != Some(type_name));
        }
        if !asks.is_empty() {
            self.0.entry(session).or_default().extend(asks);
        }
    }

    /// A session ended.
    pub(super) fn ended(&mut self, session: SessionId) {
        self.0.remove(&session);
    }
}
