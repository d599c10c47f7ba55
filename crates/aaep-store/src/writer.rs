//! The thread that makes things durable, so that nobody else waits for the disk. Whoever brings
//! something while nothing else waits may do it on the spot, and is spared the way to the thread and
//! back.
#![allow(clippy::disallowed_methods)] // it is a thread

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::head::Head;
use crate::journal::Fault;
use crate::sqlite::{Sqlite, Unit};

/// Units that are made durable in one transaction at most.
const UNITS_AT_ONCE: usize = 4096;

/// A disk that takes longer than this is left to the thread.
const QUICK: Duration = Duration::from_millis(2);

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
pub struct JournalWriter {
    helper: InlineCommit,
    thread: Option<JoinHandle<()>>,
}

/// Somebody beside the keeper's thread who can do its work.
#[derive(Clone)]
pub struct InlineCommit(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    called: Condvar,
    /// The queue is emptied by whoever has this, so that its order is kept. `None` once nothing more
    /// is kept: a helper may live on.
    work: Mutex<Option<Work>>,
}

#[derive(Default)]
struct Queue {
    units: Vec<Unit>,
    /// The thread has to look.
    called: bool,
    /// Nothing more comes.
    over: bool,
}

type Reporting = Box<dyn FnMut(Report) + Send>;

struct Work {
    journal: Sqlite,
    head: Option<Head>,
    waiting: Vec<Unit>,
    /// How many are durable.
    units: u64,
    stuck: bool,
    /// Whether the disk was quick the last time.
    quick: bool,
    /// Nobody knows what was kept.
    broken: bool,
    report: Reporting,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl JournalWriter {
    /// Starts the thread. `report` is called on it, or by a [`InlineCommit`].
    pub fn start(
        journal: Sqlite,
        head: Option<Head>,
        report: impl FnMut(Report) + Send + 'static,
    ) -> io::Result<Self> {
        let work = Work {
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
            work: Mutex::new(Some(work)),
        };
        let helper = InlineCommit(Arc::new(shared));
        let shared = helper.0.clone();
        let thread = thread::Builder::new()
            .name("aaep-journal".into())
            .spawn(move || shared.guarded(|| shared.run()))?;
        Ok(Self { helper, thread: Some(thread) })
    }

    /// Hands a unit over. The order is kept.
    pub fn keep(&self, unit: Unit) {
        let mut queue = lock(&self.helper.0.queue);
        queue.units.push(unit);
        queue.called = true;
        drop(queue);
        self.helper.0.called.notify_one();
    }

    /// Hands a unit over, of which somebody takes care with [`InlineCommit::help`].
    pub fn leave(&self, unit: Unit) {
        lock(&self.helper.0.queue).units.push(unit);
    }

    /// Somebody who can help.
    pub fn helper(&self) -> InlineCommit {
        self.helper.clone()
    }

    /// Waits until everything that was handed over is durable, or cannot be, and closes the journal.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        lock(&self.helper.0.queue).over = true;
        self.helper.call();
        if let Some(thread) = self.thread.take() {
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
    /// Keeps what was left, here and now, if nobody is at it and the disk is quick. Otherwise the
    /// thread does.
    pub fn help(&self) {
        self.0.guarded(|| {
            if !self.0.keep_here() {
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
        f.write_str("Helper")
    }
}

impl Shared {
    // enforces: I28
    /// Nobody knows what was kept if something panics here, so that is the end of it.
    fn guarded(&self, act: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(act)).is_err()
            && let Some(mut work) = lock(&self.work).take()
        {
            work.end(Fault::Failed);
        }
    }

    /// Keeps what waits, if nobody is at it and the disk is quick; false if the thread has to look.
    fn keep_here(&self) -> bool {
        let Ok(mut place) = self.work.try_lock() else { return false };
        let Some(work) = place.as_mut().filter(|work| work.quick && !work.stuck) else {
            return false;
        };
        work.take(&self.queue);
        work.keep();
        let works = !work.broken && !work.stuck && work.journal.is_tidy();
        works && lock(&self.queue).units.is_empty()
    }

    /// The thread.
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
            work.keep();
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

    /// Waits for something to do; true if nothing more can come.
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

impl Work {
    /// Takes what waits to be kept together.
    fn take(&mut self, queue: &Mutex<Queue>) {
        let mut queue = lock(queue);
        let room = UNITS_AT_ONCE.saturating_sub(self.waiting.len());
        let some = queue.units.len().min(room);
        self.waiting.extend(queue.units.drain(..some));
        queue.called = !queue.units.is_empty();
    }

    /// Keeps what waits.
    fn keep(&mut self) {
        if self.waiting.is_empty() || self.broken {
            return;
        }
        let start = Instant::now();
        match self.try_keep() {
            Ok(number) => {
                self.quick = start.elapsed() < QUICK;
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
            }
            Err(fault) => self.end(fault),
        }
    }

    fn try_keep(&mut self) -> Result<u64, Fault> {
        self.journal.keep(&self.waiting)?;
        let position = self.journal.position();
        if let Some(head) = &mut self.head {
            // Before anybody is told: what was told must not be forgotten by an old copy.
            head.note(position).map_err(|_| Fault::Failed)?;
        }
        Ok(position.number)
    }

    /// What nobody waits for.
    fn tidy(&mut self) {
        if !self.broken
            && let Err(fault) = self.journal.tidy()
        {
            self.end(fault);
        }
    }

    // enforces: I33
    /// Notes the exact end, durably: whatever is behind it at the next start, somebody else wrote. If
    /// this fails, the note stays as it was, as after a kill.
    fn close(&mut self) {
        if self.broken || self.stuck {
            return;
        }
        if let (Some(head), Ok(position)) = (&mut self.head, self.journal.final_position()) {
            let _ = head.note(position);
        }
    }

    fn end(&mut self, fault: Fault) {
        self.broken = true;
        (self.report)(Report::Broken(fault));
    }
}
