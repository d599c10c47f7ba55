//! Spending an approval: the hub says `tool.invoked`, and the action comes back, once.

use std::sync::Arc;

use aaep_types::agent_api::{Granted, InvokeAction};
use aaep_types::{ToolStatus, rule};
use tokio::time::Instant;

use crate::agent::OnDrop;
use crate::call::{Call, completed};
use crate::error::Error;
use crate::line::Line;
use crate::parked::{Approval, Parked};
use crate::session::Session;
use crate::words::Words;

impl Session {
    // enforces: T11, T12, C1
    /// Spends an approval: `tool.invoked` goes out, then the action comes back, with the call that
    /// must be completed. Run it now.
    ///
    /// On an error the action is gone, and surely has not run. If it is
    /// [in doubt](Error::InDoubt), nobody knows whether the approval was spent: ask again, or [park it again](Self::park_again) with its
    /// ticket.
    pub async fn invoke<A>(
        &self,
        parked: Parked<A>,
        approval: Approval<A>,
    ) -> Result<(A, Call), Error> {
        let Parked { action, claim } = parked;
        if !approval.fits(&claim) {
            let text = "This approval is for another action; each fits the one it was given for.";
            return Err(Error::misuse(rule::T12, text));
        }
        let line = &claim.line;
        if line.session != self.line.session {
            let text = "This action was parked in another session; invoke it there.";
            return Err(Error::misuse(rule::C26, text));
        }
        let tool = claim.wanted.tool.clone();
        // Consent is bound to these bytes; the hub compares them.
        let wanted = InvokeAction { arguments: claim.wanted.arguments.clone() };
        // A caller dropped here will not run it: the call that was begun completes as not run.
        let abandoned = OnDrop::new({
            let (line, tool, request) = (line.clone(), tool.clone(), claim.request.clone());
            let (key, wanted) = (claim.key.clone(), wanted.clone());
            move || not_run(line, tool, request, key, wanted)
        });
        let deadline = line.agent.deadline();
        let granted = match line.take_turn(deadline).await {
            Ok(_turn) => grant(line, &claim.request, &claim.key, &wanted, deadline).await,
            Err(error) => Err(error),
        };
        match granted {
            Ok(grant) => {
                claim.is_over();
                abandoned.disarm();
                let call = Call::new(line.clone(), tool, grant.tool_call_id.to_string())
                    .with_key(claim.key.clone())
                    .with_arguments(grant.arguments.as_deref().map(str::to_owned));
                Ok((action, call))
            }
            Err(error) => {
                if !error.is_in_doubt() {
                    abandoned.disarm();
                } else {
                    claim.is_over();
                }
                Err(error)
            }
        }
    }
}

async fn grant(
    line: &Line,
    request: &str,
    key: &str,
    action: &InvokeAction,
    deadline: Instant,
) -> Result<Granted, Error> {
    let granted = line.invoke(request, action, key, deadline).await;
    granted.map_err(|error| line.noticed(error))
}

// enforces: T15
/// The action was dropped while nobody knew whether its invocation had begun.
fn not_run(line: Arc<Line>, tool: String, request: Arc<str>, key: String, action: InvokeAction) {
    let agent = line.agent.clone();
    agent.behind(async move {
        let deadline = line.agent.deadline();
        if let Ok(grant) = grant(&line, &request, &key, &action, deadline).await {
            let words = Words::ours("This was not run: the agent gave it up before it began.");
            let call = grant.tool_call_id.to_string();
            let event = completed(&tool, &call, ToolStatus::Error, &words, None);
            let _ = line.emit(event).await;
        }
    });
}
