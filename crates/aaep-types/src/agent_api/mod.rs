//! The agent API: what agents and a hub say to each other, as values. Each has one written form, made
//! and read here and nowhere else, so a hub, a client and an agent in the hub's own process agree.
//!
//! Whether a request may be granted is not judged here; a request is only read.

mod answer;
mod error;
mod request;

pub use answer::{
    AgentInput, EventPosted, Granted, OpenOutput, OpenTool, ReplyClaims, RequestState,
    RequestStatus, SessionOpened, SessionState, inputs_json, read_inputs,
};
pub use error::{ApiError, ApiErrorKind, ErrorText, error_json};
pub use request::{
    AskUser, InvokeAction, OpenSession, OutputChunk, PostEvent, agent_id_of, producer_of,
    read_object, tool_of, with_longer_wait,
};
