//! What an agent's author imports.
#![allow(clippy::disallowed_methods)] // an agent's library reads the clock and talks to a hub

mod agent;
mod batch;
mod body;
mod call;
mod confirmation;
mod error;
mod inputs;
mod invoke;
mod line;
mod moving;
mod output;
mod parked;
mod producer;
mod question;
mod remote;
mod resume;
mod session;
mod ticket;
mod tool;
mod wire;
mod words;

pub use aaep_types::{
    ErrorCategory, Level, OutputId, RiskLevel, SessionId, TargetKind, ToolStatus,
};
pub use agent::{Agent, PATIENCE};
pub use call::{Call, TOOL_TIMEOUT};
pub use confirmation::{Confirmation, Irreversible, Kind, Reversible, WithEffort};
pub use error::{Error, Misuse, NotApproved, Refused, ToolError, Unanswered};
pub use inputs::{Input, Inputs};
pub use moving::{Handoff, Progress};
pub use output::Output;
pub use parked::{Approval, Parked};
pub use producer::Producer;
pub use question::{Asked, Question};
pub use remote::Remote;
pub use resume::{OpenCall, Resumed};
pub use session::{Opening, Session};
pub use ticket::{NoTicket, Ticket};
pub use tool::Tool;
pub use words::Words;
