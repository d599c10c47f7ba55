//! How a subscription is agreed on (§5).

mod accepted;
mod capabilities;
mod close;
mod rejected;
mod renegotiate;
mod request;

pub use accepted::{AcceptedType, SubscriptionAccepted};
pub use capabilities::{Capabilities, EventFilters};
pub use close::{CloseType, SubscriptionClose};
pub use rejected::{RejectedType, SubscriptionRejected};
pub use renegotiate::{RenegotiateType, SubscriptionRenegotiate};
pub use request::{RequestType, SubscriptionRequest};
