//! A timer that is put off again and again, and mostly never rings.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// Rings at a time that may be put off at no cost: what lies behind it is not set anew then, but when
/// it rings too early.
#[derive(Debug)]
pub struct Alarm {
    until: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl Alarm {
    /// Rings at this time.
    pub fn at(until: Instant) -> Self {
        Self { until, sleep: Box::pin(sleep_until(until)) }
    }

    /// Rings at this time instead.
    pub fn set(&mut self, until: Instant) {
        self.until = until;
        if until < self.sleep.deadline() {
            self.sleep.as_mut().reset(until);
        }
    }

    /// Ready when it is time.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(context));
            if self.sleep.deadline() >= self.until {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(self.until);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn it_rings_when_it_was_set_to_last_later_or_sooner() {
        let (soon, later) = (Duration::from_millis(50), Duration::from_millis(200));
        let start = Instant::now();
        let mut alarm = Alarm::at(start + soon);
        assert!(poll_fn(|context| Poll::Ready(alarm.poll(context))).await.is_pending());
        alarm.set(start + later);
        poll_fn(|context| alarm.poll(context)).await;
        assert!(start.elapsed() >= later);

        // It can be set again after it rang, and to something sooner.
        let start = Instant::now();
        alarm.set(start + Duration::from_secs(3600));
        assert!(poll_fn(|context| Poll::Ready(alarm.poll(context))).await.is_pending());
        alarm.set(start + soon);
        poll_fn(|context| alarm.poll(context)).await;
        assert!(start.elapsed() >= soon);
    }
}
