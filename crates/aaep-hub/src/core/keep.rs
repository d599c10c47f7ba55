//! What is made durable, and what waits for it.
//!
//! A step is one job with all that it leads to. Its records and notes are handed to the journal's
//! thread as one unit, so they are durable together or not at all; the caller that waits for the step is
//! answered when they are.

use std::sync::Arc;

use aaep_engine::{Input, Refusal};
use aaep_store::audit::Plan;
use aaep_store::{InlineCommit, JournalWriter, Note, Report};
use tokio::runtime::RuntimeFlavor;
use tracing::{error, info, warn};

use super::Core;
use crate::start::journal::{JUMP, clock_difference};

impl Core {
    /// Notes something with the records of this step.
    pub(super) fn note(&mut self, note: Note) {
        if self.writer.is_some() {
            self.unit.notes.push(note);
        }
    }

    // enforces: I10, I11
    /// Hands over what this step recorded.
    pub(crate) fn hand_over(&mut self) {
        while !self.unit.entries.is_empty() || !self.unit.notes.is_empty() {
            let unit = std::mem::take(&mut self.unit);
            self.handed += 1;
            match &self.writer {
                Some(writer) => writer.submit(unit),
                None => self.durable_up_to(self.handed, self.last_record),
            }
        }
    }

    /// The same, unless this step is the only one that is not durable: then the caller commits it with
    /// [`InlineCommit`], which avoids a thread hop. That blocks a thread while the disk writes, which only a
    /// multi-threaded runtime can make up for.
    pub(super) fn commit_inline_or_hand_over(&mut self) -> Option<InlineCommit> {
        let threads = tokio::runtime::Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        let writer = self.writer.as_ref().filter(|_| threads && self.handed == self.kept);
        let Some(writer) = writer.filter(|_| !self.unit.entries.is_empty()) else {
            self.hand_over();
            return None;
        };
        self.handed += 1;
        writer.submit_inline(std::mem::take(&mut self.unit));
        Some(writer.inline())
    }

    /// Does this once everything that was recorded so far is durable. While nothing can be made
    /// durable, it is not done: the waiting caller learns that it could not be kept.
    pub(super) fn when_durable(&mut self, after: Box<dyn FnOnce() + Send>) {
        if self.handed <= self.kept {
            after();
        } else if self.stuck.is_none() && self.broken.is_none() {
            self.afters.push_back((self.handed, after));
        }
    }

    /// Whether there is nothing left to wait for: all is durable, or will not be. What is not was
    /// told to nobody.
    pub(super) fn has_kept(&self) -> bool {
        self.handed <= self.kept || self.stuck.is_some()
    }

    /// What the journal's thread says.
    pub(crate) fn reported(&mut self, report: Report) {
        match report {
            Report::Durable { units, number } => self.durable_up_to(units, number),
            Report::Stuck(fault) => {
                warn!("{fault} Until then nothing new is asked, and no answer counts.");
                self.stuck = Some(fault);
                self.afters.clear();
                let _ = self.producer.handle(Input::JournalFailed, self.now);
            }
            Report::Recovered => {
                info!("The journal takes records again.");
                self.stuck = None;
                let _ = self.producer.handle(Input::JournalWorks, self.now);
            }
            Report::Broken(fault) => {
                error!("{fault}");
                self.broken = Some(fault);
                self.afters.clear();
            }
            Report::Compacted { before, after } => {
                info!(before, after, "the journal was written anew without what was erased");
            }
            Report::NotCompacted(fault) => {
                warn!(
                    "The journal could not be written anew without what was erased, and is tried again later: {fault}"
                );
            }
        }
    }

    // enforces: S13
    /// Erases what was found to be no longer needed; false if the clock jumped, since nobody knows how
    /// old anything is then. What is known of agents' ids goes on: it is written again.
    pub(crate) fn erase(&mut self, plan: Plan, note: Arc<str>) -> Result<bool, Refusal> {
        if self.clock.is_none() {
            return Ok(false);
        }
        let Plan { why, runs, records, with_calls, .. } = plan;
        info!(records, why = why.as_str(), "records are erased");
        self.handle(Input::Erase { why, note, runs })?;
        for (agent, id) in self.producers.unused() {
            self.handle(Input::Claim { agent: &agent, id: &id })?;
        }
        for session in with_calls {
            self.note(Note::ForgetCalls { session: session.to_string() });
        }
        Ok(true)
    }

    /// Takes away the bytes of what was erased, while everything goes on.
    pub(crate) fn compact(&self) {
        if let Some(Err(error)) = self.writer.as_ref().map(JournalWriter::compact) {
            warn!("The journal cannot be written anew: {error}");
        }
    }

    fn durable_up_to(&mut self, units: u64, number: u64) {
        self.kept = units;
        let _ = self.producer.handle(Input::Persisted { number }, self.now);
        self.drain();
        while let Some((_, after)) = self.afters.pop_front_if(|(at, _)| *at <= units) {
            after();
        }
    }

    // enforces: I8
    /// Notes, once, that the clock on the wall jumped: then no deadline in the journal is to be
    /// believed after a restart. The engine itself waits by the boot clock and does not care.
    pub(super) fn watch_the_clock(&mut self) {
        let difference = clock_difference(self.now);
        if self.clock.is_some_and(|clock| (clock - difference).abs() > JUMP) {
            warn!(
                "The clock jumped. If the hub is started again before it is ended, what waits is withdrawn."
            );
            self.clock = None;
            self.note(Note::ClockJumped);
        }
    }
}

#[cfg(test)]
impl Core {
    /// Whether this step has something for the journal.
    pub(crate) fn stages_something(&mut self) -> bool {
        self.drain();
        !self.unit.entries.is_empty()
    }

    /// The clock on the wall is set an hour ahead.
    pub(crate) fn clock_jumps(&mut self) {
        let wall = aaep_types::Timestamp::from_millis(self.now.wall.as_millis() + 3_600_000);
        self.set_time(aaep_engine::Now { wall: wall.unwrap_or(self.now.wall), ..self.now });
    }

    /// Notes something that changes nothing.
    pub(crate) fn note_for_test(&mut self) {
        self.note(Note::ForgetCalls { session: "sess_none".into() });
    }
}
