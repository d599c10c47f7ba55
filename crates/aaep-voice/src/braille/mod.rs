//! Braille: what stands on the cells, a small BrlAPI client, and the thread that drives a display.

pub mod brlapi;
mod display;
mod layout;

pub use display::{BrailleDisplay, Event, Settings};
pub use layout::{Board, Key, Label, Pressed, Question, Reply, View};
