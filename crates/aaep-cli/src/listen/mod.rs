//! `aaep listen`: hear agents and answer them, from a terminal.

mod keyboard;
mod options;
mod sound;
mod standing;
mod talk;
mod terminal;
mod transcript;

pub(crate) use options::ListenOptions;
