//! Processor time, divided between users (I29).
//!
//! Bounds on what is held do not keep one user's calls from filling every worker. So the work of each
//! call is measured, and while somebody else uses the hub too, a user who has taken its part of the
//! time, and more than they, waits at the door until it has some left: before anything of a call is
//! read, and in small steps. A hub with one user divides nothing. Replies are measured and never wait, since they may
//! have a deadline.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// In what steps time is divided. Short, so that nobody notices that others take turns.
const STEP: Duration = Duration::from_millis(4);

/// How long somebody counts as present after a call.
const PRESENT: Duration = Duration::from_secs(1);

/// What a call is charged when it begins, so that many that begin at once do not all go first.
const USUAL: Duration = Duration::from_micros(50);

/// The longest that a call waits, however much its user has taken.
const LONGEST: Duration = Duration::from_millis(200);

/// Users that owe nothing are forgotten when more than this many are known.
const KNOWN: usize = 64;

thread_local! {
    /// Nanoseconds of work for the call that this thread is at: done elsewhere, less what was done here
    /// for others.
    static ELSEWHERE: Cell<i64> = const { Cell::new(0) };
}

/// Does something that is not the work of the call that this thread is at.
pub(crate) fn for_others<T>(act: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = act();
    ELSEWHERE.set(ELSEWHERE.get() - nanos(begun.elapsed()));
    done
}

/// Work of the call that this thread is at was done elsewhere.
pub(crate) fn done_elsewhere(took: Duration) {
    ELSEWHERE.set(ELSEWHERE.get() + nanos(took));
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// How much each user takes.
pub(crate) struct Pace {
    /// What one user gets of each step.
    part: Duration,
    users: Mutex<Users>,
}

#[derive(Default)]
struct Users {
    taken: BTreeMap<Arc<str>, Taken>,
    /// Who called last, and who did before that; two different ones.
    latest: [Option<(Arc<str>, Instant)>; 2],
}

/// What a user has taken and was not given yet.
struct Taken {
    owes: Duration,
    /// Up to when it was given its part.
    since: Instant,
}

impl Taken {
    /// Gives a user its part of the steps that have passed.
    fn give(&mut self, part: Duration, now: Instant) {
        let steps = now.saturating_duration_since(self.since).as_nanos() / STEP.as_nanos();
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.owes = self.owes.saturating_sub(part.saturating_mul(steps));
        self.since = if self.owes.is_zero() { now } else { self.since + STEP * steps };
    }
}

impl Users {
    fn came(&mut self, user: &Arc<str>, now: Instant) {
        let [last, before] = &mut self.latest;
        if last.as_ref().is_some_and(|(last, _)| last != user) {
            *before = last.take();
        }
        *last = Some((user.clone(), now));
    }

    /// What somebody else owes who has called lately.
    fn other_owes(
        &mut self,
        user: Option<&Arc<str>>,
        part: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let mut latest = self.latest.iter().flatten();
        let (other, _) = latest.find(|(other, when)| {
            user != Some(other) && now.saturating_duration_since(*when) < PRESENT
        })?;
        let taken = self.taken.get_mut(other);
        Some(taken.map_or(Duration::ZERO, |taken| {
            taken.give(part, now);
            taken.owes
        }))
    }
}

impl Pace {
    pub(crate) fn new(percent: usize) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let all = STEP.saturating_mul(u32::try_from(processors).unwrap_or(1));
        let percent = u32::try_from(percent.min(100)).unwrap_or(100);
        Self { part: all * percent / 100, users: Mutex::default() }
    }

    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // enforces: I29
    /// A call of this user is about to begin: how long it has to wait first. Those without a name are one
    /// user, for whom nobody else has to wait.
    fn begin(&self, user: Option<&Arc<str>>, now: Instant) -> Duration {
        let mut users = self.users();
        if let Some(user) = user {
            users.came(user, now);
        }
        let theirs = users.other_owes(user, self.part, now);
        if users.taken.len() >= KNOWN {
            let part = self.part;
            users.taken.retain(|_, taken| {
                taken.give(part, now);
                !taken.owes.is_zero()
            });
        }
        let name = user.cloned().unwrap_or_default();
        let taken = users.taken.entry(name);
        let taken = taken.or_insert(Taken { owes: Duration::ZERO, since: now });
        taken.give(self.part, now);
        // Who has taken less than the other does not wait for them.
        let more = theirs.is_some_and(|theirs| theirs < taken.owes);
        if more && taken.owes >= self.part {
            let steps = (taken.owes - self.part).as_nanos() / self.part.as_nanos().max(1) + 1;
            let wait = STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX));
            return wait.min(LONGEST);
        }
        taken.owes += USUAL;
        Duration::ZERO
    }

    /// Work was done for this user.
    fn charge(&self, user: Option<&Arc<str>>, took: Duration, now: Instant) {
        let mut users = self.users();
        let name = user.cloned().unwrap_or_default();
        let taken = users.taken.entry(name);
        let taken = taken.or_insert(Taken { owes: Duration::ZERO, since: now });
        taken.give(self.part, now);
        // What is beyond the longest wait is forgiven.
        let steps = (LONGEST.as_nanos() / STEP.as_nanos()) as u32;
        taken.owes = (taken.owes + took).min(self.part.saturating_mul(steps));
    }

    /// Does the work of a call of this user, in its turn; with `waits` unset at once.
    pub(crate) async fn work<T>(
        &self,
        user: Option<Arc<str>>,
        waits: bool,
        bytes: u64,
        work: impl Future<Output = T>,
    ) -> T {
        let user = user.as_ref();
        // After the longest wait it goes on, whatever others of its user have taken meanwhile.
        let until = Instant::now() + LONGEST;
        loop {
            let now = Instant::now();
            let wait = self.begin(user, now);
            if wait.is_zero() || !waits || now >= until {
                break;
            }
            tokio::time::sleep(wait.min(until - now)).await;
        }
        // Moving a byte from the kernel takes about a nanosecond, and is done before this is asked.
        let mut work = pin!(work);
        let mut bill = Bill { pace: self, user, took: Duration::from_nanos(bytes) };
        poll_fn(|context| {
            ELSEWHERE.set(0);
            let begun = Instant::now();
            let polled = work.as_mut().poll(context);
            let took = nanos(begun.elapsed()).saturating_add(ELSEWHERE.get());
            bill.took += Duration::from_nanos(u64::try_from(took).unwrap_or_default());
            polled
        })
        .await
    }
}

/// What a call costs; charged when it is over, also if its client goes away.
struct Bill<'p> {
    pace: &'p Pace,
    user: Option<&'p Arc<str>>,
    took: Duration,
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        self.pace.charge(self.user, self.took.saturating_sub(USUAL), Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Arc<str> {
        name.into()
    }

    /// A pace of which one user gets a millisecond of each step.
    fn pace() -> Pace {
        Pace { part: Duration::from_millis(1), users: Mutex::default() }
    }

    // covers: I29
    #[test]
    fn who_took_its_part_waits_while_somebody_else_is_there_and_not_alone() {
        let (pace, eve, ann) = (pace(), user("eve"), user("ann"));
        let now = Instant::now();
        assert!(pace.begin(Some(&eve), now).is_zero());
        pace.charge(Some(&eve), Duration::from_millis(5), now);
        assert!(pace.begin(Some(&eve), now).is_zero(), "nobody else is there");
        assert!(pace.begin(Some(&ann), now).is_zero(), "she took nothing");
        let wait = pace.begin(Some(&eve), now);
        assert!(wait >= 4 * STEP && wait <= LONGEST, "{wait:?}");
        pace.charge(Some(&ann), Duration::from_millis(3), now);
        assert!(pace.begin(Some(&ann), now).is_zero(), "she has taken less");
        assert!(!pace.begin(Some(&eve), now).is_zero());
        assert!(pace.begin(Some(&eve), now + wait).is_zero(), "then it has some left");
        // Those without a name wait for others, and nobody for them.
        pace.charge(None, Duration::from_millis(5), now);
        assert!(!pace.begin(None, now).is_zero());
        let later = now + PRESENT;
        assert!(pace.begin(Some(&eve), later).is_zero());
        pace.charge(Some(&eve), Duration::from_secs(9), later);
        assert!(pace.begin(None, later).is_zero());
        assert!(pace.begin(Some(&eve), later).is_zero(), "ann has left");
        assert!(pace.begin(Some(&ann), later).is_zero());
        assert_eq!(pace.begin(Some(&eve), later), LONGEST, "and no longer than that");
    }

    // covers: I29
    #[test]
    fn many_calls_at_once_do_not_all_go_first() {
        let (pace, eve, ann, now) = (pace(), user("eve"), user("ann"), Instant::now());
        assert!(pace.begin(Some(&ann), now).is_zero());
        let first = (0..100).filter(|_| pace.begin(Some(&eve), now).is_zero()).count();
        assert_eq!(first, 20);
    }

    // covers: I22
    #[test]
    fn who_owes_nothing_is_forgotten() {
        let (pace, now) = (pace(), Instant::now());
        for number in 0..10_000 {
            let _ = pace.begin(Some(&user(&number.to_string())), now + number * STEP);
        }
        assert!(pace.users().taken.len() <= KNOWN, "{}", pace.users().taken.len());
    }

    // covers: I29
    #[tokio::test]
    async fn only_the_work_of_the_call_itself_is_charged() {
        let (pace, eve) = (pace(), user("eve"));
        let slow = Duration::from_millis(300);
        pace.work(Some(eve.clone()), true, 0, async {
            for_others(|| thread::sleep(slow));
            tokio::time::sleep(slow).await;
        })
        .await;
        assert!(pace.users().taken[&eve].owes < pace.part * 25);
        pace.work(Some(eve.clone()), true, 0, async { done_elsewhere(slow) }).await;
        assert!(pace.users().taken[&eve].owes > pace.part * 25);
    }
}
