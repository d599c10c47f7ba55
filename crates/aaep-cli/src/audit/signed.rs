//! Yeses that were signed with a passkey, judged again from the record alone.

use std::collections::{BTreeMap, BTreeSet};

use aaep_engine::{Record, RequestId};
use aaep_hub::passkey::SignedYes;
use aaep_store::audit::Bad;
use aaep_types::Presence;

/// Looks at every signature in a journal, record by record.
#[derive(Default)]
pub(super) struct SignatureCheck {
    /// What consent is bound to, of what is asked and not resolved yet.
    open: BTreeMap<RequestId, String>,
    /// The SHA-256 of the keys that were registered, and not removed.
    keys: BTreeSet<String>,
    /// Records from before the first one that is here, or of a hub that did not name the keys, may have
    /// registered others.
    others_may_be: bool,
    /// A key was named here.
    are_named: bool,
    seen: bool,
    good: u64,
    /// Of these, those whose keys nothing is known of.
    unknown: u64,
    bad: Option<Bad>,
}

/// What was found of the yeses that passkeys signed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signed {
    /// How many there are.
    pub(super) all: u64,
    /// Of these, those whose keys nothing is known of: they were registered before the audit named keys.
    pub(super) unknown: u64,
}

impl SignatureCheck {
    // enforces: I34
    /// Looks at the next record.
    pub(super) fn look(&mut self, number: u64, record: &Record) {
        self.others_may_be |= !self.seen && number > 1;
        self.seen = true;
        match record {
            Record::Administered { act, to, .. } => self.note(act, to),
            Record::Asked(asked) if asked.confirmation => {
                self.open.insert(asked.request, asked.digest().to_string());
            }
            Record::Resolved { request, presence, assertion, .. } => {
                // What was asked may have been erased; then nothing can be said of the answer.
                let Some(digest) = self.open.remove(request) else { return };
                if *presence != Presence::Passkey {
                    return;
                }
                match judge(assertion, &request.to_string(), &digest) {
                    Ok(key) if self.keys.contains(&key) => self.good += 1,
                    Ok(_) if self.others_may_be || !self.are_named => {
                        self.good += 1;
                        self.unknown += 1;
                    }
                    Ok(_) => {
                        let what = "It says that a passkey signed the answer. Its key was not registered then.";
                        self.bad.get_or_insert(Bad { number, what: what.into() });
                    }
                    Err(why) => {
                        let what = format!("It says that a passkey signed the answer. {why}");
                        self.bad.get_or_insert(Bad { number, what });
                    }
                }
            }
            _ => {}
        }
    }

    /// A passkey came or went.
    fn note(&mut self, act: &str, to: &str) {
        let key = to.strip_prefix("key ");
        self.are_named |= act == "passkey_added" && key.is_some();
        match (act, key) {
            ("passkey_added", Some(key)) => drop(self.keys.insert(key.to_owned())),
            ("passkey_removed", Some(key)) => drop(self.keys.remove(key)),
            ("passkey_added", None) => self.others_may_be = true,
            _ => {}
        }
    }

    /// What was found; or the first that was not signed.
    pub(super) fn finish(self) -> Result<Signed, Bad> {
        let signed = Signed { all: self.good, unknown: self.unknown };
        self.bad.map_or(Ok(signed), Err)
    }
}

/// Names the key that signed.
fn judge(assertion: &[u8], request: &str, digest: &str) -> Result<String, String> {
    let signed: SignedYes = serde_json::from_slice(assertion)
        .map_err(|_| "What is kept of it is no signature.".to_owned())?;
    signed.verify(request, digest).map_err(|error| error.to_string())?;
    Ok(signed.key.sha256())
}
