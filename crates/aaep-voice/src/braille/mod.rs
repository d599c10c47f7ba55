//! Braille: what stands on the cells, a small BrlAPI client, and the thread that drives a display.

#[cfg(unix)]
pub mod brlapi;
#[cfg(unix)]
mod display;
mod layout;

#[cfg(unix)]
pub use display::{Display, Event, Settings};
pub use layout::{Board, Key, Label, Pressed, Question, Reply, View};
