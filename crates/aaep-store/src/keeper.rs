//! The thread that makes things durable, so that nobody else waits for the disk.
#![allow(clippy::disallowed_methods)] // it is a thread

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::head::{Head, Noted};
use crate::journal::Fault;
use crate::sqlite::{Sqlite, Unit};

/// Units that are made durable in one transaction at most.
const UNITS_AT_ONCE: usize = 4096;

/// How long a journal without room is left alone before it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What became of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// These units are durable, and all before them.
    Durable {
        /// How many units are, since the keeper was started.
        units: u64,
        /// The number of the last record.
        number: u64,
    },
    /// Nothing can be kept now. It is tried again every second, without being told to.
    Stuck(Fault),
    /// It can be kept again; what waited is durable now, as the next report says.
    Works,
    /// Nobody knows what was kept, and nothing more will be: start again from what is there.
    Broken(Fault),
}

/// Takes units without making anybody wait, and reports when they are durable. Everything that waits
/// is kept in one transaction (group commit).
///
/// What waits is bounded by those who wait for it: they are not answered before it is durable.
#[derive(Debug)]
pub struct Keeper {
    units: Option<Sender<Unit>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread. `report` is called on it.
    pub fn start(
        journal: Sqlite,
        head: Option<Head>,
        report: impl FnMut(Report) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let mut work = Work { journal, head, waiting: Vec::new(), units: 0, stuck: false, report };
        let thread = thread::Builder::new()
            .name("aaep-journal".into())
            .spawn(move || work.until_over(&receiver))?;
        Ok(Self { units: Some(sender), thread: Some(thread) })
    }

    /// Hands a unit over. The order is kept.
    pub fn keep(&self, unit: Unit) {
        // The thread ends before its sender only if it is broken, and it said so.
        if let Some(units) = &self.units {
            let _ = units.send(unit);
        }
    }

    /// Waits until everything that was handed over is durable, or cannot be, and closes the journal.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.units = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

struct Work<F> {
    journal: Sqlite,
    head: Option<Head>,
    waiting: Vec<Unit>,
    /// How many are durable.
    units: u64,
    stuck: bool,
    report: F,
}

impl<F: FnMut(Report)> Work<F> {
    fn until_over(&mut self, units: &Receiver<Unit>) {
        loop {
            let over = self.wait(units);
            while self.waiting.len() < UNITS_AT_ONCE
                && let Ok(unit) = units.try_recv()
            {
                self.waiting.push(unit);
            }
            let going_on = self.keep();
            if !going_on || over && (self.stuck || self.waiting.is_empty()) {
                return;
            }
        }
    }

    /// Waits for something to do; true if nothing more can come.
    fn wait(&mut self, units: &Receiver<Unit>) -> bool {
        let next = if self.stuck {
            match units.recv_timeout(RETRY) {
                Err(RecvTimeoutError::Timeout) => return false,
                next => next.ok(),
            }
        } else {
            units.recv().ok()
        };
        let over = next.is_none();
        self.waiting.extend(next);
        over
    }

    /// Keeps what waits; false if that is the end of it.
    fn keep(&mut self) -> bool {
        if self.waiting.is_empty() {
            return true;
        }
        match self.try_keep() {
            Ok(number) => {
                self.units += self.waiting.len() as u64;
                self.waiting.clear();
                if std::mem::take(&mut self.stuck) {
                    (self.report)(Report::Works);
                }
                (self.report)(Report::Durable { units: self.units, number });
            }
            Err(fault) if fault.may_pass() => {
                if !std::mem::replace(&mut self.stuck, true) {
                    (self.report)(Report::Stuck(fault));
                }
                return true;
            }
            Err(fault) => {
                (self.report)(Report::Broken(fault));
                return false;
            }
        }
        // Nobody waits for this.
        match self.journal.tidy() {
            Ok(()) => true,
            Err(fault) => {
                (self.report)(Report::Broken(fault));
                false
            }
        }
    }

    fn try_keep(&mut self) -> Result<u64, Fault> {
        self.journal.keep(&self.waiting)?;
        let (number, hash) = self.journal.head();
        if let Some(head) = &mut self.head {
            // Before anybody is told: what was told must not be forgotten by an old copy.
            head.note(Noted { number, hash }).map_err(|_| Fault::Failed)?;
        }
        Ok(number)
    }
}
