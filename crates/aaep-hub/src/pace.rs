//! Processor time, divided between users (I29).
//!
//! Bounds on what is held do not keep one user's calls from filling every worker. So the work of each
//! call is measured, and while somebody else uses the hub too, a user who has taken its part of the
//! time, and more than they, waits at the door until it has some left: before anything of a call is
//! read, and in small steps. A hub with one user divides nothing.
//!
//! Replies are measured and never wait themselves, since they may have a deadline. What follows them on
//! the same connection does: over HTTP their answer waits, and a WebSocket or Unix connection is not read
//! meanwhile. So a connection that floods slows itself down, while a reply on a quiet one of the same user
//! is taken at once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep};

use crate::metrics::Counter;

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

/// When a call waits, if its user has taken its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Before anything of it is read.
    Before,
    /// Once it is done, before it is answered: for what may have a deadline.
    After,
    Never,
}

/// How much each user takes.
pub(crate) struct Pace {
    /// What one user gets of each step.
    part: Duration,
    users: Mutex<Users>,
    pub(crate) waits: WaitCounts,
}

/// How often somebody waited for others.
#[derive(Default)]
pub(crate) struct WaitCounts {
    pub(crate) calls: Counter,
    pub(crate) links: Counter,
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
        Self { part: all * percent / 100, users: Mutex::default(), waits: WaitCounts::default() }
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
        let wait = self.owed(&mut users, user, now);
        if wait.is_zero() {
            self.taken(&mut users, user, now).owes += USUAL;
        }
        wait
    }

    /// How long this user has to wait until it has some time left.
    fn owed(&self, users: &mut Users, user: Option<&Arc<str>>, now: Instant) -> Duration {
        let theirs = users.other_owes(user, self.part, now);
        let owes = self.taken(users, user, now).owes;
        // Who has taken less than the other does not wait for them.
        let more = theirs.is_some_and(|theirs| theirs < owes);
        if !more || owes < self.part {
            return Duration::ZERO;
        }
        let steps = (owes - self.part).as_nanos() / self.part.as_nanos().max(1) + 1;
        STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX)).min(LONGEST)
    }

    /// What this user has taken, less what it was given by now.
    fn taken<'u>(
        &self,
        users: &'u mut Users,
        user: Option<&Arc<str>>,
        now: Instant,
    ) -> &'u mut Taken {
        let name = user.cloned().unwrap_or_default();
        if users.taken.len() >= KNOWN && !users.taken.contains_key(&name) {
            users.taken.retain(|_, taken| {
                taken.give(self.part, now);
                !taken.owes.is_zero()
            });
        }
        let taken = users.taken.entry(name).or_insert(Taken { owes: Duration::ZERO, since: now });
        taken.give(self.part, now);
        taken
    }

    /// Work was done for this user.
    fn charge(&self, user: Option<&Arc<str>>, took: Duration, now: Instant) {
        let mut users = self.users();
        let taken = self.taken(&mut users, user, now);
        // What is beyond the longest wait is forgiven.
        let steps = (LONGEST.as_nanos() / STEP.as_nanos()) as u32;
        taken.owes = (taken.owes + took).min(self.part.saturating_mul(steps));
    }

    /// Does the work of a call of this user, in its turn.
    pub(crate) async fn work<T>(
        &self,
        user: Option<Arc<str>>,
        when: When,
        bytes: u64,
        work: impl Future<Output = T>,
    ) -> T {
        let user = user.as_ref();
        let waiting = self.wait_turn(user, when == When::Before);
        let charged = if waiting.await { USUAL } else { Duration::ZERO };
        // Moving a byte from the kernel takes about a nanosecond, and is done before this is asked.
        let mut work = pin!(work);
        let mut bill = Bill { pace: self, user, charged, took: Duration::from_nanos(bytes) };
        let done = poll_fn(|context| {
            let (polled, took) = timed(work.as_mut(), context);
            bill.took += took;
            polled
        })
        .await;
        drop(bill);
        if when == When::After {
            self.wait_after(user).await;
        }
        done
    }

    async fn wait_after(&self, user: Option<&Arc<str>>) {
        let wait = self.owed(&mut self.users(), user, Instant::now());
        if !wait.is_zero() {
            self.waits.calls.add(1);
            sleep(wait).await;
        }
    }

    /// Waits until a call of this user may begin; whether it was charged for that. After the longest wait
    /// it goes on, whatever others of its user have taken meanwhile.
    async fn wait_turn(&self, user: Option<&Arc<str>>, waits: bool) -> bool {
        let until = Instant::now() + LONGEST;
        loop {
            let now = Instant::now();
            let wait = self.begin(user, now);
            if wait.is_zero() {
                return true;
            }
            if !waits || now >= until {
                return false;
            }
            self.waits.calls.add(1);
            sleep(wait.min(until - now)).await;
        }
    }

    // enforces: I29
    /// Waits for what a link of this user receives. A link that took some time is left alone while the
    /// user has taken more than its part: whatever it sends, also what nobody is told of, such as pings.
    pub(crate) async fn receive<T>(
        &self,
        user: &Arc<str>,
        rest: &mut Rest,
        receive: impl Future<Output = T>,
    ) -> T {
        let mut receive = pin!(receive);
        poll_fn(|context| {
            ready!(rest.poll_over(context));
            let (polled, took) = timed(receive.as_mut(), context);
            self.charge(Some(user), took, Instant::now());
            rest.took += took;
            if polled.is_pending() && rest.took >= USUAL {
                self.rest(user, rest);
            }
            polled
        })
        .await
    }

    /// Takes a message of a link, at once; what follows on the link waits if it must.
    pub(crate) async fn take<T>(
        &self,
        user: &Arc<str>,
        rest: &mut Rest,
        bytes: u64,
        take: impl Future<Output = T>,
    ) -> T {
        let taken = self.work(Some(user.clone()), When::Never, bytes, take).await;
        self.rest(user, rest);
        taken
    }

    fn rest(&self, user: &Arc<str>, rest: &mut Rest) {
        rest.took = Duration::ZERO;
        let wait = self.owed(&mut self.users(), Some(user), Instant::now());
        if !wait.is_zero() {
            self.waits.links.add(1);
            rest.sleep = Some(Box::pin(sleep(wait)));
        }
    }
}

/// Polls a future; also how long its own work took.
fn timed<F: Future>(future: Pin<&mut F>, context: &mut Context<'_>) -> (Poll<F::Output>, Duration) {
    ELSEWHERE.set(0);
    let begun = Instant::now();
    let polled = future.poll(context);
    let took = nanos(begun.elapsed()).saturating_add(ELSEWHERE.get());
    (polled, Duration::from_nanos(u64::try_from(took).unwrap_or_default()))
}

/// How long a link is left alone.
#[derive(Default)]
pub(crate) struct Rest {
    sleep: Option<Pin<Box<Sleep>>>,
    /// What looking at it took since then.
    took: Duration,
}

impl Rest {
    fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(sleep) = &mut self.sleep {
            ready!(sleep.as_mut().poll(context));
            self.sleep = None;
        }
        Poll::Ready(())
    }
}

/// What a call costs; charged when it is over, also if its client goes away.
struct Bill<'p> {
    pace: &'p Pace,
    user: Option<&'p Arc<str>>,
    /// What it was charged when it began.
    charged: Duration,
    took: Duration,
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        self.pace.charge(self.user, self.took.saturating_sub(self.charged), Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn user(name: &str) -> Arc<str> {
        name.into()
    }

    /// A pace of which one user gets a millisecond of each step.
    fn pace() -> Pace {
        Pace { part: Duration::from_millis(1), ..Pace::new(100) }
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
        pace.work(Some(eve.clone()), When::Before, 0, async {
            for_others(|| thread::sleep(slow));
            tokio::time::sleep(slow).await;
        })
        .await;
        assert!(pace.users().taken[&eve].owes < pace.part * 25);
        pace.work(Some(eve.clone()), When::Before, 0, async { done_elsewhere(slow) }).await;
        assert!(pace.users().taken[&eve].owes > pace.part * 25);
    }

    /// Somebody else called just now, and this user has taken so much.
    fn owing(pace: &Pace, eve: &Arc<str>, owes: Duration) {
        assert!(pace.begin(Some(&user("ann")), Instant::now()).is_zero());
        pace.charge(Some(eve), owes, Instant::now());
    }

    // covers: I29
    #[tokio::test]
    async fn a_link_waits_after_what_it_sent_and_a_quiet_one_of_the_same_user_does_not() {
        let (pace, eve) = (pace(), user("eve"));
        owing(&pace, &eve, Duration::from_secs(9));
        let (mut loud, mut quiet) = (Rest::default(), Rest::default());
        let mut at_once = Context::from_waker(Waker::noop());
        let taken = pin!(pace.take(&eve, &mut loud, 0, async { 7 })).poll(&mut at_once);
        assert_eq!(taken, Poll::Ready(7), "a message is taken at once");
        let heard = pin!(pace.receive(&eve, &mut quiet, async { 8 })).poll(&mut at_once);
        assert_eq!(heard, Poll::Ready(8), "this link sent nothing yet");
        let next = pin!(pace.receive(&eve, &mut loud, async { 9 })).poll(&mut at_once);
        assert_eq!(next, Poll::Pending, "the next one on the same link waits");
        assert_eq!(pace.receive(&eve, &mut loud, async { 9 }).await, 9);
        assert_eq!(pace.waits.links.get(), 1);
        // Alone nobody waits.
        let alone = user("alone");
        let pace = Pace { part: Duration::from_millis(1), ..Pace::new(100) };
        pace.charge(Some(&alone), Duration::from_secs(9), Instant::now());
        pace.take(&alone, &mut loud, 0, async {}).await;
        assert_eq!(pace.waits.links.get(), 0);
    }

    // covers: I29
    #[tokio::test]
    async fn a_reply_is_taken_at_once_and_its_answer_waits() {
        let (pace, eve, taken) = (pace(), user("eve"), Cell::new(false));
        owing(&pace, &eve, Duration::from_secs(9));
        let mut reply = pin!(pace.work(Some(eve), When::After, 0, async { taken.set(true) }));
        let answered = reply.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(answered.is_pending() && taken.get());
        reply.await;
        assert_eq!(pace.waits.calls.get(), 1);
    }

    // covers: I29
    #[tokio::test]
    async fn what_comes_on_a_link_and_is_no_message_waits_as_well() {
        let (pace, eve) = (pace(), user("eve"));
        owing(&pace, &eve, Duration::from_secs(9));
        let (mut looked, mut rest) = (0, Rest::default());
        let pings = poll_fn(|context| {
            looked += 1;
            done_elsewhere(LONGEST);
            context.waker().wake_by_ref();
            if looked < 3 { Poll::Pending } else { Poll::Ready(()) }
        });
        pace.receive(&eve, &mut rest, pings).await;
        assert!(looked == 3 && pace.waits.links.get() >= 1);
    }
}
