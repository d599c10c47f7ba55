//! Polls a future again at once if it wakes itself while it is polled.
//!
//! hyper does that for every request with a body: the reader of the body wakes its writer, which is the
//! connection being polled. tokio would move the task to the end of its queue and unpark another worker,
//! and both cost more than the request itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// After this many immediate polls the future yields to other tasks.
const TIMES: usize = 4;

/// Not being polled.
const IDLE: u8 = 0;
/// Being polled.
const POLLED: u8 = 1;
/// Being polled, and woken meanwhile.
const WOKEN: u8 = 2;

/// Wakes the task, unless it is being polled: then it is polled again.
#[derive(Default)]
struct RepollWaker {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for RepollWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let (order, retry) = (Ordering::AcqRel, Ordering::Acquire);
        if self.state.compare_exchange(POLLED, WOKEN, order, retry) == Err(IDLE) {
            self.task.wake();
        }
    }
}

/// Polls a future again if it woke itself.
pub(super) struct Repoll {
    shared: Arc<RepollWaker>,
    waker: Waker,
}

impl Repoll {
    pub(super) fn new() -> Self {
        let shared = Arc::<RepollWaker>::default();
        Self { waker: Waker::from(Arc::clone(&shared)), shared }
    }

    /// `poll` is called again as long as it wakes itself.
    pub(super) fn poll<T>(
        &self,
        context: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let shared = &*self.shared;
        shared.task.register(context.waker());
        let mut own = Context::from_waker(&self.waker);
        for _ in 0..TIMES {
            shared.state.store(POLLED, Ordering::Release);
            if let Poll::Ready(output) = poll(&mut own) {
                shared.state.store(IDLE, Ordering::Release);
                return Poll::Ready(output);
            }
            let (order, retry) = (Ordering::AcqRel, Ordering::Acquire);
            if shared.state.compare_exchange(POLLED, IDLE, order, retry).is_ok() {
                return Poll::Pending;
            }
        }
        shared.state.store(IDLE, Ordering::Release);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls a future that wakes itself so many times; how often it was polled, and its task woken.
    fn polled(times: usize) -> (usize, usize) {
        let count = Arc::new(Count::default());
        let task = Waker::from(Arc::clone(&count));
        let mut polls = 0;
        let polled = Repoll::new().poll(&mut Context::from_waker(&task), |context| {
            polls += 1;
            if polls <= times {
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        (polls, count.0.load(Ordering::Relaxed))
    }

    #[test]
    fn what_wakes_itself_is_polled_again_and_its_task_is_not_woken() {
        assert_eq!(polled(0), (1, 0));
        assert_eq!(polled(1), (2, 0));
        assert_eq!(polled(TIMES - 1), (TIMES, 0));
        // It does not take every turn.
        assert_eq!(polled(TIMES), (TIMES, 1));
        assert_eq!(polled(1000), (TIMES, 1));
    }

    /// A task on a thread of its own that parks.
    struct Parked(thread::Thread);

    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    #[test]
    fn no_wake_of_another_thread_is_lost() {
        const MANY: usize = 20_000;
        let (count, waker) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicWaker::new()));
        let (theirs, wakes) = (Arc::clone(&count), Arc::clone(&waker));
        let other = thread::spawn(move || {
            for number in 1..=MANY {
                // The next one only when this one was seen.
                while theirs.load(Ordering::SeqCst) != 2 * number - 2 {
                    std::hint::spin_loop();
                }
                theirs.store(2 * number - 1, Ordering::SeqCst);
                wakes.wake();
            }
        });
        let again = Repoll::new();
        let task = Waker::from(Arc::new(Parked(thread::current())));
        let look = |context: &mut Context<'_>| {
            waker.register(context.waker());
            let seen = count.load(Ordering::SeqCst);
            if seen % 2 == 1 {
                count.store(seen + 1, Ordering::SeqCst);
            }
            if seen + 1 >= 2 * MANY { Poll::Ready(()) } else { Poll::Pending }
        };
        // If a wake were lost, both would wait for ever.
        while again.poll(&mut Context::from_waker(&task), look).is_pending() {
            thread::park();
        }
        other.join().unwrap();
    }
}
