//! What one subscription hears, and when: filters, rate, coalescing, language, verbosity, pace.
//!
//! An agent emits events as they happen. A listener wants fewer of them, in whole
//! sentences, in their language, no faster than they asked for, and whatever is critical at once.
//! This crate stands between: events go in, bytes to send come out.
//!
//! # Contract
//!
//! 1. **Prepare once.** A [`Preparer`] reads each emitted event once, in order, and finds the
//!    boundaries of streamed text. The [`Prepared`] event is shared by all subscriptions, and so
//!    are the bytes that are made of it: once for each distinct [`Shape`], not once for each
//!    subscription.
//! 2. **Offer, then drain.** Each subscription has a [`Shaper`]. Offer the event, then call
//!    [`Shaper::poll_output`] until it returns `None`. Offer only what the subscription may see:
//!    who may see what is not decided here.
//! 3. **Come back.** [`Shaper::next_deadline`] says when to poll again though nothing was offered.
//! 4. **Overflow ends it.** What is held is bounded ([`HeldLimits`]). Near the bound everything is
//!    merged; past it [`Shaper::offer`] says [`Overflow`], and the subscription has to be closed
//!    with that reason. Nothing is ever dropped in silence.
//!
//! # What to expect
//!
//! - A critical event passes filter, rate and coalescing. What is held for its session goes out
//!   before it, merged; other sessions' backlog does not delay it.
//! - Within a session order is kept. Text that waits for its boundary is pushed out when another
//!   event of its session comes; such a piece says in `coalesce_hint` what it really ends at.
//! - Of several boundaries the finest counts, under a low cognitive load the coarsest. A blank line
//!   ends a paragraph, a single newline a sentence. The end of a sentence is certain when the next
//!   begins, when the producer's `coalesce_hint` says so, or at completion; what merely seems
//!   finished waits for [`PATIENCE`]. We never cut inside a grapheme cluster.
//! - With a `pace_wpm`, text waits until the listener is nearly done with what came before
//!   ([`PACE_LEAD`]), at most for [`PACE_HOLD`], and grows meanwhile. Under a low load state changes
//!   settle for [`STATE_WAIT`], and progress is told in steps of [`PROGRESS_STEP_PERCENT`] or after
//!   [`PROGRESS_WAIT`].
//! - Over budget, state changes become one (leaving the first one's state, entering the last
//!   one's), later progress replaces earlier, and text grows until there is budget. Starts, ends
//!   and tools wait in order and are never merged.
//! - Merged text keeps its last part's id and number and its first part's position. A part's id
//!   never names two deliveries.
//! - Terms that ask for nothing change nothing: the emitted bytes go out, not a copy.
//!
//! Left out on purpose: clocks, randomness, IO, and who may hear what.
//!
//! # Example
//!
//! ```
//! use aaep_shaping::{Mono, Preparer, Shaper, Terms};
//!
//! let chunk = |number: u64, text: &str, position: u64| format!(
//!     r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0",
//!     "type":"aaep:agent.output.streaming","event_id":"evt_{number}","session_id":"sess_1",
//!     "sequence_number":{number},"timestamp":"2026-05-24T14:22:11.342Z",
//!     "producer":{{"agent_id":"tidy"}},"localization_hints":{{"primary_language":"en"}},
//!     "chunk":"{text}","position":{position},"complete":false}}"#);
//!
//! let now = Mono::START;
//! let mut preparer = Preparer::new();
//! let mut shaper = Shaper::new(Terms::default(), now); // whole sentences, among other things
//! for event in [chunk(1, "All", 0), chunk(2, " done.", 3), chunk(3, " Now", 9)] {
//!     shaper.offer(&preparer.prepare(event)?, now)?;
//! }
//! let delivery = shaper.poll_output(now).expect("the sentence is over, another has begun");
//! assert_eq!(delivery.event.event_id().as_str(), "evt_2");
//! assert!(delivery.bytes.contains(r#""chunk":"All done. ","position":0"#));
//! assert!(shaper.poll_output(now).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bucket;
mod calls;
mod cuts;
mod filter;
mod pace;
mod prepared;
mod preparer;
mod queue;
mod shaper;
mod shapes;
mod terms;
mod text;
mod time;

pub use bucket::Bucket;
pub use filter::Filter;
pub use pace::{PACE_HOLD, PACE_LEAD, PROGRESS_STEP_PERCENT};
pub use prepared::{KnownEnvelope, Prepared, ShapeInfo};
pub use preparer::{MAX_OPEN_OUTPUTS, Preparer};
pub use queue::{HeldLimits, Overflow};
pub use shaper::{Delivery, Glance, PATIENCE, PROGRESS_WAIT, STATE_WAIT, Shaper};
pub use terms::{Boundaries, Shape, Terms};
pub use text::MAX_CHUNK_SCALARS;
pub use time::Mono;
