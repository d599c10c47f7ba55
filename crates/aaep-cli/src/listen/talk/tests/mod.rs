//! The conversation as a listener hears it. `>` is what is typed; what is in brackets is not said.

mod answers;
mod chance;
mod directions;
mod one_key;
mod policy;
mod reading;
mod requests;
mod ways;
