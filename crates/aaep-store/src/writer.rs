//! The journal writer: a thread that commits units in groups, so that no caller blocks on the disk.
//!
//! A caller whose unit is the only one in the queue may commit it inline instead, which saves two
//! thread switches.
#![allow(clippy::disallowed_methods)] // it is a thread

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::head::Head;
use crate::journal::JournalFault;
use crate::log::UnitLog;
use crate::log::parts::{ROOM, size};
use crate::sqlite::{Compaction, Sqlite};
use crate::unit::Unit;

/// The most units in one transaction.
const MAX_GROUP: usize = 4096;

/// Inline commits stop while a commit takes longer than this.
const QUICK: Duration = Duration::from_millis(2);

/// The pause between attempts while the journal cannot be written.
const RETRY: Duration = Duration::from_secs(1);

/// Rows that compaction takes over at once, and how much longer than that it rests each time, so that
/// commits find the disk and a processor free.
const COMPACTED_ROWS: usize = 256;
const REST: u32 = 3;

/// How much longer it rests after a sync. A commit that comes at that moment waits for the disk behind it, so
/// there have to be many commits for each that does.
const REST_AFTER_SYNC: u32 = 50;

/// The state of submitted units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// All units up to this one are durable.
    Durable {
        /// The number of durable units since the writer started.
        units: u64,
        /// The number of the last record.
        number: u64,
    },
    /// The journal cannot be written at the moment. The writer retries every second.
    Stuck(JournalFault),
    /// The journal can be written again. [`Report::Durable`] follows for the units that waited.
    Recovered,
    /// A write failed halfway. Nothing more is written: reopen the journal and recover from it.
    Broken(JournalFault),
    /// The journal was written anew without what was erased.
    Compacted {
        /// How long its file was, in bytes.
        before: u64,
        /// How long it is now.
        after: u64,
    },
    /// It could not be, and stays as it is.
    NotCompacted(JournalFault),
}

/// Accepts units without blocking and reports when they are durable. All queued units are committed
/// in one transaction (group commit).
///
/// The queue needs no bound of its own: each caller waits for its unit to become durable before it
/// sends the next.
#[derive(Debug)]
pub struct JournalWriter {
    inline: InlineCommit,
    thread: Option<JoinHandle<()>>,
    compacting: Mutex<Option<JoinHandle<()>>>,
}

/// Commits queued units on the calling thread.
#[derive(Clone)]
pub struct InlineCommit(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    called: Condvar,
    /// Told when the writer is closing.
    ends: Condvar,
    /// Held while the queue is drained, which keeps the order. `None` once the writer has closed; an
    /// [`InlineCommit`] may outlive it.
    work: Mutex<Option<Work>>,
    /// The journal is being written anew.
    compacts: AtomicBool,
}

#[derive(Default)]
struct Queue {
    units: Vec<Unit>,
    /// The thread has work to do.
    called: bool,
    /// The writer is closing.
    over: bool,
}

type Reporting = Box<dyn FnMut(Report) + Send>;

struct Work {
    /// Where units are kept first, if the journal is one node's copy of a shard's log.
    log: Option<Box<dyn UnitLog>>,
    /// So many of the waiting units are in the log, and so many more were offered to it.
    in_log: usize,
    offered: usize,
    journal: Sqlite,
    head: Option<Head>,
    waiting: Vec<Unit>,
    /// The number of durable units.
    units: u64,
    stuck: bool,
    /// Whether the last commit was quick.
    quick: bool,
    /// A write failed halfway.
    broken: bool,
    report: Reporting,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl JournalWriter {
    /// The same for one node's copy of a shard's log: units are durable once they are in the log, and
    /// are in the copy as well when that is reported.
    pub fn start_on(
        log: Box<dyn UnitLog>,
        journal: Sqlite,
        report: impl FnMut(Report) + Send + 'static,
    ) -> io::Result<Self> {
        Self::launch(Some(log), journal, None, report)
    }

    /// Starts the thread. `report` is called on it, or on the thread of an [`InlineCommit`].
    pub fn start(
        journal: Sqlite,
        head: Option<Head>,
        report: impl FnMut(Report) + Send + 'static,
    ) -> io::Result<Self> {
        Self::launch(None, journal, head, report)
    }

    fn launch(
        log: Option<Box<dyn UnitLog>>,
        journal: Sqlite,
        head: Option<Head>,
        report: impl FnMut(Report) + Send + 'static,
    ) -> io::Result<Self> {
        let work = Work {
            log,
            in_log: 0,
            offered: 0,
            journal,
            head,
            waiting: Vec::new(),
            units: 0,
            stuck: false,
            quick: false,
            broken: false,
            report: Box::new(report),
        };
        let shared = Shared {
            queue: Mutex::default(),
            called: Condvar::new(),
            ends: Condvar::new(),
            work: Mutex::new(Some(work)),
            compacts: AtomicBool::new(false),
        };
        let inline = InlineCommit(Arc::new(shared));
        let shared = inline.0.clone();
        let thread = thread::Builder::new()
            .name("aaep-journal".into())
            .spawn(move || shared.guarded(|| shared.run()))?;
        Ok(Self { inline, thread: Some(thread), compacting: Mutex::default() })
    }

    /// Queues a unit for the thread. Units are committed in the order of submission.
    pub fn submit(&self, unit: Unit) {
        let mut queue = lock(&self.inline.0.queue);
        queue.units.push(unit);
        queue.called = true;
        drop(queue);
        self.inline.0.called.notify_one();
    }

    /// Queues a unit that the caller commits with [`InlineCommit::commit`].
    pub fn submit_inline(&self, unit: Unit) {
        lock(&self.inline.0.queue).units.push(unit);
    }

    /// A handle for inline commits.
    pub fn inline(&self) -> InlineCommit {
        self.inline.clone()
    }

    /// Writes the journal anew without what was erased, on a thread of its own. Units are committed
    /// meanwhile; only the last step, which takes over what was written since and puts the new file in
    /// place, keeps them waiting, for some milliseconds. A report says how it ended, unless the writer is
    /// closed before. While one runs, this does nothing.
    pub fn compact(&self) -> io::Result<()> {
        let shared = self.inline.0.clone();
        if shared.compacts.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let thread = thread::Builder::new().name("aaep-compact".into()).spawn(move || {
            shared.guarded(|| shared.compact());
            shared.compacts.store(false, Ordering::Release);
        })?;
        *lock(&self.compacting) = Some(thread);
        Ok(())
    }

    /// Waits until every submitted unit is durable or has failed, then closes the journal.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        lock(&self.inline.0.queue).over = true;
        self.inline.0.ends.notify_all();
        self.inline.call();
        let compacting = lock(&self.compacting).take();
        for thread in self.thread.take().into_iter().chain(compacting) {
            let _ = thread.join();
        }
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        self.end();
    }
}

impl InlineCommit {
    /// Commits the queue on this thread if no other commit is running and the disk is quick;
    /// otherwise wakes the writer's thread.
    pub fn commit(&self) {
        self.0.guarded(|| {
            if !self.0.try_commit_inline() {
                self.call();
            }
        });
    }

    fn call(&self) {
        lock(&self.0.queue).called = true;
        self.0.called.notify_one();
    }
}

impl std::fmt::Debug for InlineCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InlineCommit")
    }
}

impl Shared {
    // enforces: I28
    /// A panic in here leaves the journal in an unknown state, so the writer ends.
    fn guarded(&self, act: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(act)).is_err()
            && let Some(mut work) = lock(&self.work).take()
        {
            work.end(JournalFault::Failed);
        }
    }

    /// Commits the queue if no other commit is running and the disk is quick. Returns false if the
    /// thread has to do it.
    fn try_commit_inline(&self) -> bool {
        let Ok(mut place) = self.work.try_lock() else { return false };
        let Some(work) = place.as_mut().filter(|work| work.quick && !work.stuck) else {
            return false;
        };
        work.take(&self.queue);
        work.commit();
        let works = !work.broken && !work.stuck && work.journal.is_tidy();
        works && lock(&self.queue).units.is_empty()
    }

    /// The thread's loop.
    fn run(&self) {
        if let Some(work) = lock(&self.work).as_mut() {
            work.journal.lay_out_log();
        }
        let mut stuck = false;
        loop {
            let over = self.wait(stuck);
            let mut place = lock(&self.work);
            let Some(work) = place.as_mut() else { return };
            work.take(&self.queue);
            work.commit();
            work.tidy();
            stuck = work.stuck;
            let idle = work.waiting.is_empty() && lock(&self.queue).units.is_empty();
            if work.broken || over && (stuck || idle) {
                work.close();
                *place = None;
                return;
            }
        }
    }

    // enforces: S13
    /// The loop of the thread that compacts.
    fn compact(&self) {
        let begun = {
            let place = lock(&self.work);
            let Some(work) = place.as_ref().filter(|work| !work.broken) else { return };
            let path = work.journal.path().to_owned();
            work.journal.compaction().map(|new| (new, path))
        };
        let done = begun.and_then(|(mut new, path)| {
            let length = || std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            let before = length();
            loop {
                if !self.copy_most(&mut new)? {
                    return Ok(None);
                }
                let mut place = lock(&self.work);
                let Some(work) = place.as_mut().filter(|work| !work.broken) else {
                    return Ok(None);
                };
                match work.journal.replace_with(&mut new) {
                    Ok(true) => return Ok(Some(Report::Compacted { before, after: length() })),
                    // Somebody looks into it.
                    Ok(false) => {}
                    Err(fault) => {
                        if fault == JournalFault::Failed {
                            work.end(fault);
                        }
                        return Err(fault);
                    }
                }
                drop(place);
                if self.rests(RETRY) {
                    return Ok(None);
                }
            }
        });
        let report = match done {
            Ok(Some(report)) => report,
            Ok(None) => return,
            Err(fault) => Report::NotCompacted(fault),
        };
        if let Some(work) = lock(&self.work).as_mut().filter(|work| !work.broken) {
            (work.report)(report);
        }
    }

    /// Takes over all but what is being written; false if the writer is closing.
    fn copy_most(&self, new: &mut Compaction) -> Result<bool, JournalFault> {
        loop {
            let start = Instant::now();
            if new.step(COMPACTED_ROWS)? < COMPACTED_ROWS {
                return Ok(!lock(&self.queue).over);
            }
            let rest = if new.has_synced() { REST_AFTER_SYNC } else { REST };
            if self.rests(start.elapsed() * rest) {
                return Ok(false);
            }
        }
    }

    /// Does nothing for so long; true if the writer is closing.
    fn rests(&self, time: Duration) -> bool {
        let queue = lock(&self.queue);
        let waited = self.ends.wait_timeout_while(queue, time, |queue| !queue.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    /// Waits for work. Returns true once the writer is closing.
    fn wait(&self, stuck: bool) -> bool {
        let idle = |queue: &mut Queue| !queue.called && !queue.over;
        let queue = lock(&self.queue);
        let mut queue = if stuck {
            let waited = self.called.wait_timeout_while(queue, RETRY, |queue| !queue.over);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            self.called.wait_while(queue, idle).unwrap_or_else(PoisonError::into_inner)
        };
        queue.called = !queue.units.is_empty();
        queue.over
    }
}

/// How many of these units fit one entry of a log; at least one.
fn fitting(units: &[Unit]) -> usize {
    let mut room = ROOM;
    let fits = |unit: &&Unit| {
        let left = room.checked_sub(size(unit));
        room = left.unwrap_or_default();
        left.is_some()
    };
    units.iter().take_while(fits).count().max(1)
}

impl Work {
    /// Moves the next group out of the queue.
    fn take(&mut self, queue: &Mutex<Queue>) {
        let mut queue = lock(queue);
        let room = MAX_GROUP.saturating_sub(self.waiting.len());
        let some = queue.units.len().min(room);
        self.waiting.extend(queue.units.drain(..some));
        queue.called = !queue.units.is_empty();
    }

    /// Commits the group.
    fn commit(&mut self) {
        if self.waiting.is_empty() || self.broken {
            return;
        }
        let start = Instant::now();
        match self.try_commit() {
            Ok(number) => {
                // A log blocks for a server, which no caller's thread may do.
                self.quick = start.elapsed() < QUICK && self.log.is_none();
                self.units += self.waiting.len() as u64;
                self.waiting.clear();
                self.in_log = 0;
                if std::mem::take(&mut self.stuck) {
                    (self.report)(Report::Recovered);
                }
                (self.report)(Report::Durable { units: self.units, number });
            }
            Err(fault) if fault.may_pass() => {
                if !std::mem::replace(&mut self.stuck, true) {
                    (self.report)(Report::Stuck(fault));
                }
            }
            Err(fault) => self.end(fault),
        }
    }

    // enforces: I10, I24
    /// Keeps what waits in the log, in entries that fit. What was offered once is offered again until
    /// the log says what became of it.
    fn keep_in_log(&mut self) -> Result<(), JournalFault> {
        let Some(log) = &mut self.log else { return Ok(()) };
        while self.in_log < self.waiting.len() {
            let waiting = &self.waiting[self.in_log..];
            if self.offered == 0 {
                self.offered = fitting(waiting);
            }
            log.keep(&waiting[..self.offered])?;
            self.in_log += std::mem::take(&mut self.offered);
        }
        // Only now: what follows from an old copy may be in several entries.
        log.note()
    }

    fn try_commit(&mut self) -> Result<u64, JournalFault> {
        self.keep_in_log()?;
        match self.journal.keep(&self.waiting) {
            // Another node's disk may have room: the copy is made anew there.
            Err(JournalFault::Full) if self.log.is_some() => return Err(JournalFault::CopyFull),
            kept => kept?,
        }
        let position = self.journal.position();
        if let Some(head) = &mut self.head {
            // Before the report: an old copy must not forget what was announced as durable.
            head.note(position).map_err(|_| JournalFault::Failed)?;
        }
        Ok(position.number)
    }

    /// Housekeeping that no caller waits for.
    fn tidy(&mut self) {
        if !self.broken
            && let Err(fault) = self.journal.tidy()
        {
            self.end(fault);
        }
    }

    // enforces: I33
    /// Notes the exact end durably: records beyond it at the next start were written by someone
    /// else. If this fails, the note stays as it was, as after a kill.
    fn close(&mut self) {
        if self.broken || self.stuck {
            return;
        }
        if let Some(log) = &mut self.log {
            log.release();
        }
        if let (Some(head), Ok(position)) = (&mut self.head, self.journal.final_position()) {
            let _ = head.note(position);
        }
    }

    fn end(&mut self, fault: JournalFault) {
        self.broken = true;
        (self.report)(Report::Broken(fault));
    }
}
