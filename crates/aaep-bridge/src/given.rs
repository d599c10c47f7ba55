//! One question for one call: a yes that was given to the hook counts for a proxy before the same call.
//!
//! The hook runs first. What it leaves is only the name of its request, under the program's own name of
//! the call and its arguments. The hub decides: a proxy asks it whether that request was approved for
//! this tool with exactly these arguments, and whether the call still runs. So a file that somebody
//! writes allows nothing that a person did not just say yes to. Each yes counts once, and whatever is
//! not as it should be is asked.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aaep_agent::{Agent, Confirmation, Error, Session, Ticket};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::memory::{Memory, digest};

/// How long the hub may take to say how things stand.
const LOOK: Duration = Duration::from_secs(1);

/// How many yeses one proxy remembers; when there are more, it asks.
const REMEMBERED: usize = 10_000;

/// What the hook was told, for a proxy.
#[derive(Clone, Debug)]
pub struct Given {
    memory: Memory,
    /// Requests whose yes was used here.
    used: Arc<Mutex<BTreeSet<String>>>,
}

/// By which a proxy finds what the hook left.
fn key(call: &str, arguments: &Value) -> String {
    digest(&[call, &arguments.to_string()])
}

impl Given {
    /// What hooks with this memory leave.
    pub fn new(memory: Memory) -> Self {
        Self { memory, used: Arc::default() }
    }

    /// Whether the person has just said yes to this call in the program's hook. From then on they have
    /// not. `fits` tells whether the tool that the hook was asked about is this one.
    pub(crate) async fn take(
        &self,
        agent: &Agent,
        call: &str,
        arguments: &Value,
        fits: impl Fn(&str) -> bool,
    ) -> bool {
        if call.is_empty() {
            return false;
        }
        let Some((ticket, tool)) = self.memory.take_yes(&key(call, arguments)) else {
            return false;
        };
        if !fits(&tool) || !self.first(&ticket) {
            return false;
        }
        let Ok(resumed) = agent.resume(&ticket).await else { return false };
        let is_approved = approved(&resumed.session, &ticket, &tool, arguments).await;
        resumed.session.leave();
        is_approved.unwrap_or(false)
    }

    fn first(&self, ticket: &Ticket) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.len() < REMEMBERED && used.insert(ticket.request().to_owned())
    }
}

/// Whether the hub says that this runs, because somebody said yes to it.
async fn approved(
    session: &Session,
    ticket: &Ticket,
    tool: &str,
    arguments: &Value,
) -> Result<bool, Error> {
    // What is asked again is never heard: tool and arguments are what the yes is bound to.
    let request = Confirmation::irreversible(tool, "The same.", "The same.");
    let request = request.arguments_json(arguments.to_string());
    let parked = session.park_again(ticket, (), request).await?.rerun_if_begun();
    let Ok(decided) = timeout(LOOK, parked.decision()).await else {
        drop(parked.leave());
        return Ok(false);
    };
    let approval = match decided {
        Ok(approval) => approval,
        Err(error) => {
            drop(parked.leave());
            return Err(error);
        }
    };
    // The hub compares the arguments, and finds the call that runs. The hook says how it ends.
    let ((), call) = session.invoke(parked, approval).await?;
    call.leave();
    Ok(true)
}

impl Memory {
    /// Leaves a yes for a proxy before the same call.
    pub(crate) fn keep_yes(&self, call: &str, tool: &str, arguments: &Value, ticket: &Ticket) {
        let note = json!({ "ticket": ticket.to_string(), "tool": tool });
        // What cannot be left is asked again; that is all.
        let _ = self.write_yes(&key(call, arguments), &note.to_string());
    }

    /// The call is over.
    pub(crate) fn forget_yes(&self, call: &str, arguments: &Value) {
        self.remove_yes(&key(call, arguments));
    }

    /// Takes a yes: nobody else gets it.
    fn take_yes(&self, key: &str) -> Option<(Ticket, String)> {
        let note: Value = serde_json::from_str(&self.read_yes(key)?).ok()?;
        if !self.remove_yes(key) {
            return None;
        }
        let text = |name: &str| note.get(name).and_then(Value::as_str);
        Some((text("ticket")?.parse().ok()?, text("tool")?.to_owned()))
    }
}
