//! What still has to follow in a session, by the profile in force (§7.10): a session is not completed
//! while something is owed. Every change is recorded, so a restart forgets nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep_engine::{Blame, Refusal};
use aaep_types::profile::{Profile, ProfileRule};
use aaep_types::{EventKind, SessionId, rule};

/// Ids of a profile's rules, by session. A profile has a bounded number of rules.
#[derive(Default)]
pub(super) struct Owed(BTreeMap<SessionId, BTreeSet<Arc<str>>>);

impl Owed {
    // enforces: X9
    /// Whether a session may be completed. It may fail or be cancelled whatever is owed.
    pub(super) fn admits(
        &self,
        profile: &Profile,
        session: SessionId,
        type_name: &str,
    ) -> Result<(), Refusal> {
        if type_name != EventKind::SessionCompleted.as_str() {
            return Ok(());
        }
        let owed = self.0.get(&session);
        // A rule that is not in the profile any more asks for nothing.
        let missing = profile.rules.iter().find_map(|rule| {
            owed?.get(&*rule.id)?;
            rule.followed_by.as_deref().filter(|name| *name != type_name).map(|it| (rule, it))
        });
        let Some((rule, name)) = missing else { return Ok(()) };
        let text = format!(
            "{} Send `{name}` before you complete the session ({}, {}).",
            rule.text, rule.id, profile.name
        );
        Err(Refusal { blame: Blame::OutOfOrder, rule: rule::X9, text })
    }

    /// What a session owes once an event of this type is said after which these rules ask for
    /// something; nothing if that is what it owes already.
    pub(super) fn changed_by(
        &self,
        profile: &Profile,
        session: SessionId,
        type_name: &str,
        asks: &[usize],
    ) -> Option<BTreeSet<Arc<str>>> {
        let before = self.0.get(&session);
        let settles = |rule: &ProfileRule| rule.followed_by.as_deref() == Some(type_name);
        let settled = |id: &str| profile.rules.iter().any(|rule| rule.id == id && settles(rule));
        let still = before.into_iter().flatten().filter(|id| !settled(id)).cloned();
        let asked = asks.iter().filter_map(|&place| profile.rules.get(place));
        let after: BTreeSet<_> = still.chain(asked.map(|rule| rule.id.as_str().into())).collect();
        let same = before.map_or(after.is_empty(), |before| *before == after);
        (!same).then_some(after)
    }

    /// From now on a session owes this.
    pub(super) fn set(&mut self, session: SessionId, rules: BTreeSet<Arc<str>>) {
        if rules.is_empty() {
            self.0.remove(&session);
        } else {
            self.0.insert(session, rules);
        }
    }

    /// A session ended.
    pub(super) fn ended(&mut self, session: SessionId) {
        self.0.remove(&session);
    }
}
