//! A file that still grows.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::signals::Signals;

/// How often it is looked whether there is more.
const LOOK: Duration = Duration::from_millis(200);

/// Reads what is there, and waits for more until it is stopped.
pub(super) struct Following<R> {
    input: R,
    stopped: Arc<AtomicBool>,
}

impl<R: Read> Following<R> {
    /// Follows until Ctrl-C or SIGTERM.
    pub(super) fn new(input: R) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut signals = runtime.block_on(async { Signals::new() }).map_err(io::Error::other)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stopped);
        thread::spawn(move || {
            runtime.block_on(signals.stop());
            told.store(true, Ordering::Relaxed);
        });
        Ok(Self { input, stopped })
    }
}

impl<R: Read> Read for Following<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.input.read(space)?;
            if count > 0 || self.stopped.load(Ordering::Relaxed) {
                return Ok(count);
            }
            thread::sleep(LOOK);
        }
    }
}
