//! The terminal: one key at a time, or whole lines, and always as it was found when we leave.
//!
//! The cursor is the terminal's own and stays behind what was printed last. Nothing is echoed by us
//! and nothing is drawn: a braille display and a review cursor see what was printed.

use std::io::IsTerminal;
#[cfg(unix)]
use std::sync::Mutex;

#[cfg(unix)]
use rustix::termios::{
    self, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios,
};

/// The terminal as it was found, to be restored.
#[cfg(unix)]
static FOUND: Mutex<Option<Termios>> = Mutex::new(None);

/// Standard input, if it is a terminal.
pub(super) struct Terminal {
    terminal: bool,
    /// Keys come one by one now.
    by_key: bool,
}

impl Terminal {
    pub(super) fn new() -> Self {
        Self { terminal: std::io::stdin().is_terminal(), by_key: false }
    }

    /// Whether somebody sits there.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// How many columns what is printed has, if it is printed in a terminal.
    pub(super) fn columns(&self) -> Option<usize> {
        columns()
    }

    /// Whether single keys can be had.
    pub(super) fn has_keys(&self) -> bool {
        cfg!(unix) && self.terminal
    }
}

#[cfg(unix)]
impl Terminal {
    /// Takes keys one by one, or whole lines.
    pub(super) fn by_key(&mut self, by_key: bool) {
        if !self.terminal || by_key == self.by_key {
            return;
        }
        self.by_key = by_key;
        self.apply();
    }

    /// Sets the terminal as it is wanted; again after the process was stopped and goes on.
    pub(super) fn apply(&self) {
        let stdin = rustix::stdio::stdin();
        let mut found = FOUND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if found.is_none() {
            *found = termios::tcgetattr(stdin).ok();
        }
        let Some(found) = found.as_ref() else { return };
        let mut wanted = found.clone();
        if self.by_key {
            // Signals and output stay as they are; only lines and echo are turned off.
            wanted.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            wanted.special_codes[SpecialCodeIndex::VMIN] = 1;
            wanted.special_codes[SpecialCodeIndex::VTIME] = 0;
        } else {
            wanted.local_modes.insert(LocalModes::ICANON | LocalModes::ECHO);
        }
        let _ = termios::tcsetattr(stdin, OptionalActions::Now, &wanted);
    }

    /// Forgets what was typed and not read.
    pub(super) fn discard(&self) {
        if self.terminal {
            let _ = termios::tcflush(rustix::stdio::stdin(), QueueSelector::IFlush);
        }
    }
}

#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Puts the terminal back as it was found.
#[cfg(unix)]
pub(super) fn restore() {
    let found = FOUND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(found) = found.as_ref() {
        let _ = termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, found);
    }
}

/// Restores the terminal before a panic says anything.
pub(super) fn restore_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        restore();
        usual(info);
    }));
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

#[cfg(not(unix))]
impl Terminal {
    pub(super) fn by_key(&mut self, _by_key: bool) {}
    pub(super) fn apply(&self) {}
    pub(super) fn discard(&self) {}
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}

#[cfg(not(unix))]
pub(super) fn restore() {}
