//! Where a session stands: what an agent takes up again, and how it hears that it was stopped.

use aaep_engine::SessionSnapshot;
use aaep_types::SessionId;
use aaep_types::json::Writer;
use http::StatusCode;
use tokio::time::{Instant, timeout_at};

use super::agent::{SIGN_OF_LIFE, begin_wait};
use super::{Answer, Call, Problem, json};
use crate::hub::Hub;

/// `GET agent/sessions/{id}?wait=`: waits for its end.
pub(super) async fn answer(hub: &Hub, call: &Call, session: SessionId) -> Result<Answer, Problem> {
    let (until, _wait) = begin_wait(hub, call)?;
    loop {
        let agent = call.known.principal.clone();
        let (standing, ended) = hub
            .call(move |core| {
                let standing = core.standing(&agent, session);
                let ended = standing.is_some().then(|| core.when_ended(session));
                (standing, ended)
            })
            .await?;
        let (Some(standing), Some(ended)) = (standing, ended) else { return Err(over()) };
        let slice = until.min(Instant::now() + SIGN_OF_LIFE);
        let stopped = tokio::select! {
            _ = timeout_at(slice, ended) => false,
            () = hub.stopping() => true,
        };
        if stopped || Instant::now() >= until {
            return Ok(json(StatusCode::OK, standing_json(session, &standing)));
        }
    }
}

pub(super) fn over() -> Problem {
    Problem::not_found("There is no such session of yours; it may be over.")
}

fn standing_json(session: SessionId, standing: &SessionSnapshot) -> String {
    let mut out = Writer::new();
    out.open('{');
    out.name("session_id");
    out.string(session.as_str());
    out.comma();
    out.name("state");
    out.string(&standing.state);
    out.comma();
    out.name("calls");
    out.open('[');
    for (call, tool) in &standing.calls {
        out.json(&format!(r#"{{"tool_call_id":"{call}","tool":"#));
        out.string(tool);
        out.json("},");
    }
    out.close(']');
    out.comma();
    out.name("outputs");
    out.open('[');
    for (output, position) in &standing.outputs {
        out.open('{');
        if let Some(output) = output {
            out.json(&format!(r#""output_id":"{output}","#));
        }
        out.json(&format!(r#""position":{position}}},"#));
    }
    out.close(']');
    out.close('}');
    out.finish()
}
