//! The agent API over HTTP and the Unix socket: paths, statuses and bodies around [`AgentDoor`]. Any
//! program with HTTP can be an agent.

use std::time::Duration;

use aaep_types::agent_api::{ApiError, inputs_json};
use bytes::Bytes;
use http::StatusCode;

use super::route::Route;
use super::{Call, HttpResponse, Problem, empty, json, query};
use crate::agent::{AgentDoor, bad_key, bad_wait};
use crate::hub::Hub;

/// Answers a call. What is rare is boxed, so that what is common stays small.
pub(crate) async fn answer(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    let door = AgentDoor::new(hub, call.known.clone());
    Ok(match call.route {
        Route::OpenSession => {
            let opened = Box::pin(door.open_bytes(bytes, key(call)?)).await?;
            json(StatusCode::CREATED, opened.to_json())
        }
        Route::Emit(session) => {
            let posted = door.emit_bytes(session, bytes, key(call)?).await?;
            json(StatusCode::CREATED, posted.to_json())
        }
        Route::Ask(session) => {
            let asked = door.ask_bytes(session, bytes, key(call)?).await?;
            let status = if asked.again { StatusCode::OK } else { StatusCode::CREATED };
            json(status, asked.state.to_json())
        }
        Route::Session(session) => {
            let state = Box::pin(door.session(session, wait(call)?)).await?;
            json(StatusCode::OK, state.to_json())
        }
        Route::Request(request) => {
            let state = Box::pin(door.request(request, wait(call)?)).await?;
            json(StatusCode::OK, state.to_json())
        }
        Route::Withdraw(request) => {
            Box::pin(door.withdraw(request)).await?;
            empty(StatusCode::NO_CONTENT)
        }
        Route::Invoke(request) => {
            let granted = Box::pin(door.invoke_bytes(request, bytes, key(call)?)).await?;
            json(StatusCode::OK, granted.to_json())
        }
        _ => {
            let inputs = Box::pin(door.inputs(wait(call)?)).await?;
            json(StatusCode::OK, inputs_json(&inputs))
        }
    })
}

fn key(call: &Call) -> Result<Option<&str>, ApiError> {
    let key = call.parts.headers.get("idempotency-key");
    key.map(|key| key.to_str().map_err(|_| bad_key())).transpose()
}

fn wait(call: &Call) -> Result<Duration, ApiError> {
    let Some(wait) = query(&call.parts, "wait") else { return Ok(Duration::ZERO) };
    wait.parse().map(Duration::from_secs).map_err(|_| bad_wait())
}
