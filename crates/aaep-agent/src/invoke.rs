//! Spending an approval: the hub says `tool.invoked`, and the action comes back, once.

use std::sync::Arc;

use aaep_types::{ToolStatus, rule};
use bytes::Bytes;
use tokio::time::Instant;

use crate::agent::OnDrop;
use crate::body::{Body, raw_json, with_members};
use crate::call::{Call, completed};
use crate::error::Error;
use crate::line::Line;
use crate::parked::{Approval, Parked};
use crate::session::Session;

/// What the hub gave back.
struct Grant {
    call: String,
    arguments: Option<String>,
}

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
        let (path, body) = (
            format!("agent/requests/{}/invoke", claim.request),
            body(claim.wanted.arguments.as_deref()),
        );
        // Whoever goes away now will not run it: what was begun is completed as not run.
        let abandoned = OnDrop::new({
            let (line, tool, path) = (line.clone(), tool.clone(), path.clone());
            let (key, body) = (claim.key.clone(), body.clone());
            move || not_run(line, tool, path, key, body)
        });
        let deadline = line.agent.deadline();
        let granted = match line.take_turn(deadline).await {
            Ok(_turn) => grant(line, &path, &claim.key, body, deadline).await,
            Err(error) => Err(error),
        };
        match granted {
            Ok(grant) => {
                claim.is_over();
                abandoned.disarm();
                let call = Call::new(line.clone(), tool, grant.call)
                    .with_key(claim.key.clone())
                    .with_arguments(grant.arguments);
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

/// Consent is bound to these bytes; the hub compares them.
fn body(arguments: Option<&str>) -> Bytes {
    match arguments {
        Some(arguments) => Body::new().json("arguments", arguments).finish(),
        None => Bytes::from_static(b"{}"),
    }
}

async fn grant(
    line: &Line,
    path: &str,
    key: &str,
    body: Bytes,
    deadline: Instant,
) -> Result<Grant, Error> {
    let answer = line.post(path, key, body, deadline).await;
    let answer = answer.map_err(|error| line.noticed(error))?;
    let read = with_members(&answer, |members| {
        let arguments = members.find("arguments").map(raw_json);
        let arguments = arguments.filter(|json| json != "null");
        Some(Grant { call: members.text("tool_call_id")?.into_owned(), arguments })
    });
    read.ok_or_else(Error::odd_answer)
}

// enforces: T15
/// The action was dropped while nobody knew whether its invocation had begun.
fn not_run(line: Arc<Line>, tool: String, path: String, key: String, body: Bytes) {
    let agent = line.agent.clone();
    agent.behind(async move {
        let deadline = line.agent.deadline();
        if let Ok(grant) = grant(&line, &path, &key, body, deadline).await {
            let words = "This was not run: the agent gave it up before it began.".into();
            let body = completed(&tool, &grant.call, ToolStatus::Error, &words, None);
            let _ = line.emit(body).await;
        }
    });
}
