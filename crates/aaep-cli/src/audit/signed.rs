//! Yeses that were signed with a passkey, judged again from the record alone.

use std::collections::BTreeMap;

use aaep_engine::{Record, RequestId};
use aaep_hub::passkey::SignedYes;
use aaep_store::audit::Bad;
use aaep_types::Presence;

/// Looks at every signature in a journal, record by record.
#[derive(Default)]
pub(super) struct SignatureCheck {
    /// What consent is bound to, of what is asked and not resolved yet.
    open: BTreeMap<RequestId, String>,
    good: u64,
    bad: Option<Bad>,
}

impl SignatureCheck {
    // enforces: I34
    /// Looks at the next record.
    pub(super) fn look(&mut self, number: u64, record: &Record) {
        match record {
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
                    Ok(()) => self.good += 1,
                    Err(why) => {
                        let what = format!("It says that a passkey signed the answer. {why}");
                        self.bad.get_or_insert(Bad { number, what });
                    }
                }
            }
            _ => {}
        }
    }

    /// How many were signed; or the first that was not.
    pub(super) fn finish(self) -> Result<u64, Bad> {
        self.bad.map_or(Ok(self.good), Err)
    }
}

fn judge(assertion: &[u8], request: &str, digest: &str) -> Result<(), String> {
    let signed: SignedYes = serde_json::from_slice(assertion)
        .map_err(|_| "What is kept of it is no signature.".to_owned())?;
    signed.verify(request, digest).map_err(|error| error.to_string())
}
