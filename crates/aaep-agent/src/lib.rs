//! What an agent's author imports: sessions, tools, and consent that cannot be forgotten.
//!
//! An [`Agent`] speaks with a hub of AAEP, the Agent Accessibility Event Protocol. The hub tells
//! people with assistive technology what the agent does, asks them where it matters, and brings their
//! answers back. The hub is somewhere else ([`Agent::connect`]), or in the same process
//! (`Agent::embed`, with the feature `embedded`); everything else is the same.
//!
//! # The contract
//!
//! **Nothing runs before somebody said yes.** [`Session::confirm`] asks, waits and runs in one
//! expression. Underneath, an action that matters is parked where its author cannot reach it. A decision yields an [`Approval`], which cannot be made, copied, shared or used
//! twice. Only moving both in gives the action back, once, after `tool.invoked` went out. Consent is
//! bound to the tool and the exact bytes of its arguments; the hub refuses anything else.
//!
//! **Everything has an end.** [`Session`], [`Call`], [`Parked`], [`Asked`] and [`Output`] say how they
//! ended, also when they are dropped, when their thread panics, and when the waiting caller is dropped in
//! the middle of a call. What is said by a drop is said behind the author's back, before anything that
//! the session says next; [`Agent::close`] waits for it at the end of the process. If even that is not
//! reached, the hub notices the silence and ends the session when its lease is over.
//!
//! **Nothing is done twice.** Every call that changes something carries a key, and is sent again under
//! that key while the hub cannot be reached or cannot keep it, as long as [`Agent::patience`] allows.
//! After that the error is [`Error::Unavailable`] if it surely was not done, and [`Error::InDoubt`] if
//! nobody knows.
//!
//! **No secret is said.** Card numbers, keys, tokens and passwords are taken out of every text for
//! people, also where a stream tears them (T14). It knows forms, not meanings: see
//! [`aaep_types::secret`]. Arguments reach the action as they are, and are not announced.
//!
//! **The user can stop everything.** Then [`Session::stopped`] resolves, running tools are given up,
//! and whatever else waits in the session ends with `SessionOver`.
//!
//! # Example
//!
//! A transfer that cannot be taken back. The hub runs in this process, and somebody says yes, over
//! the network, as people do.
//!
//! ```
//! # #[cfg(feature = "embedded")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use aaep_agent::{Agent, RiskLevel};
//! # let (hub, person) = people::start().await?;
//!
//! let agent = Agent::embed(hub.hub(), "bank-assistant")?;
//! let session = agent.session("Moving $500 to savings.").language("en").open().await?;
//!
//! let transfer = String::from("500.00 from checking to savings");
//! let receipt = session
//!     .confirm(
//!         "transfer_funds",
//!         "Transfer $500 from checking to savings.",
//!         "It cannot be easily reversed.",
//!     )
//!     .irreversible()
//!     .risk(RiskLevel::High)
//!     .args(&transfer)
//!     .run(|call| async move {
//!         // Somebody said yes. Here the money would move.
//!         Ok::<_, std::io::Error>(format!("{transfer}, receipt {}", call.key()))
//!     })
//!     .await?;
//!
//! assert!(receipt.starts_with("500.00 from checking to savings"));
//! session.complete("The transfer is done.").await?;
//! # person.await?; agent.close().await; hub.stop().await?;
//! # Ok(()) })
//! # }
//! # #[cfg(not(feature = "embedded"))]
//! # fn main() {}
//! # #[cfg(feature = "embedded")]
//! # mod people {
//! #     use aaep_hub::config::{Config, Development, UnixSocket};
//! #     use aaep_transport::client::{HttpClient, Options};
//! #     pub async fn start() -> Result<(aaep_hub::Running, tokio::task::JoinHandle<()>), Box<dyn std::error::Error>> {
//! #         let config = Config {
//! #             listen: vec!["127.0.0.1:0".parse()?],
//! #             ephemeral: true,
//! #             development: Development { local_replies: true, ..Development::default() },
//! #             unix_socket: UnixSocket { enabled: false, path: None },
//! #             ..Config::default()
//! #         };
//! #         let hub = aaep_hub::Hub::builder().config(config).start().await?;
//! #         let client = HttpClient::new(&hub.url(hub.addresses()[0]), Options::default())?;
//! #         let mut events = client.events("events", None).await?;
//! #         let person = tokio::spawn(async move {
//! #             while let Ok(Some(frame)) = events.next().await {
//! #                 let event: serde_json::Value = serde_json::from_str(&frame.data).unwrap();
//! #                 if let Some(token) = event.get("reply_token") {
//! #                     let reply = serde_json::json!({
//! #                         "type": "confirmation.reply", "reply_token": token, "decision": "accept",
//! #                         "timestamp": event["timestamp"],
//! #                     });
//! #                     client.post("messages", reply.to_string()).await.unwrap();
//! #                 }
//! #                 if event["type"] == "aaep:agent.session.completed" { return; }
//! #             }
//! #         });
//! #         Ok((hub, person))
//! #     }
//! # }
//! ```
//!
//! The same in steps, for what has to outlive a process or needs something done in between:
//!
//! ```no_run
//! # async fn example(session: aaep_agent::Session) -> Result<(), aaep_agent::Error> {
//! # use aaep_agent::Confirmation;
//! let transfer = String::from("500.00 from checking to savings");
//! let request = Confirmation::irreversible("transfer", "Transfer $500.", "It cannot be undone.")
//!     .arguments(&transfer);
//! let parked = session.park(transfer, request).await?;            // the action is out of reach
//! let approval = parked.decision().await?;                        // or: refused, timed out, …
//! let (transfer, call) = session.invoke(parked, approval).await?; // said, then given back, once
//! # drop(transfer);
//! call.succeed("The money was moved.").await?;
//! # Ok(()) }
//! ```
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `embedded` | off | a hub in this process: `Agent::embed` |
//! | `policy` | off | tools that run as a policy file says: `Session::run_under` |
//!
//! # What an author stores
//!
//! Nothing, if a restart of the agent may end what it was doing: the hub says so. To take things up
//! again ([`Agent::resume`]), store, before you wait:
//!
//! | what | by which it is taken up |
//! |---|---|
//! | [`Session::id`] | [`Agent::resume`] |
//! | [`Parked::ticket`], and the action itself | [`Session::park_again`] |
//! | [`Asked::request`], and the question | [`Session::pose_again`] |
//!
//! An action whose invocation was begun is never run again by itself: nobody knows how far it came
//! (I11). Only who says that it may, with [`Parked::rerun_if_begun`], gets it back, as the same call
//! under the same key; hand that key to whatever the action calls. Calls and outputs that were open
//! are listed by [`Agent::resume`].
//!
//! The principal must be the same: the same token, or the same agent id in an embedded hub.
//!
//! # What is deliberately absent
//!
//! * **A way around the hub.** The order of events, deadlines and consent are the hub's: nothing here
//!   decides whether a reply counts.
//! * **An irreversible tool without a question.** [`Session::tool`] cannot say it.
//! * **A decision without a session**, and state changes around requests: the hub makes those.
//! * **The reply token.** An agent never sees it, so it cannot answer its own question.
#![allow(clippy::disallowed_methods)] // it reads the clock, and draws keys from the system

mod agent;
mod batch;
mod body;
mod call;
mod confirm;
mod confirmation;
mod error;
mod inputs;
mod invoke;
mod line;
mod moving;
mod output;
mod parked;
#[cfg(feature = "policy")]
mod policy;
mod producer;
mod question;
mod remote;
mod reply;
mod resume;
mod session;
mod ticket;
mod tool;
mod wire;
mod words;

pub use aaep_types::{
    ErrorCategory, Level, OutputId, RiskLevel, SessionId, TargetKind, ToolStatus,
};
pub use agent::{Agent, NOBODY_YET, PATIENCE};
pub use call::{Call, TOOL_TIMEOUT};
pub use confirm::{Confirm, ConfirmedCall, Unstated};
pub use confirmation::{Confirmation, Irreversible, Kind, Reversible, WithEffort};
pub use error::{
    Error, HubRefusal, Misuse, NotApproved, Source, ToolError, Unanswered, decided_by,
};
pub use inputs::{InputEvent, Inputs};
pub use moving::{Handoff, Progress};
pub use output::Output;
pub use parked::{Approval, Parked};
pub use producer::Producer;
pub use question::{Asked, Question};
pub use remote::Remote;
pub use reply::ReplyDetails;
pub use resume::{OpenCall, Resumed};
pub use session::{Opening, Session};
pub use ticket::{NoTicket, SessionTicket, Ticket};
pub use tool::Tool;
pub use words::Words;

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the example of the page about agents.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/agents.md")]
struct Agents;
