//! Standard input, for somebody who must know what was typed before a certain moment.
//!
//! A thread waits until there is something to read; the caller does the reading, so that
//! what was typed before a request was printed can be told from what was typed after it.

use tokio::sync::mpsc;

/// What is read at once, in bytes.
const READ_BYTES: usize = 4096;

#[cfg(unix)]
pub(super) struct Source {
    readable: mpsc::Receiver<()>,
    again: std::sync::mpsc::Sender<()>,
    asked: bool,
}

#[cfg(unix)]
impl Source {
    pub(super) fn start() -> Self {
        let (say, readable) = mpsc::channel(1);
        let (again, asked) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            while asked.recv().is_ok() && is_ready(true) {
                if say.blocking_send(()).is_err() {
                    return;
                }
            }
        });
        Self { readable, again, asked: false }
    }

    /// Waits until there is something to read, or the end; false if nobody can tell any more.
    pub(super) async fn readable(&mut self) -> bool {
        if !self.asked {
            self.asked = self.again.send(()).is_ok();
        }
        let ready = self.readable.recv().await.is_some();
        self.asked = false;
        ready
    }

    /// What is there now; `None` if nothing is, and no bytes at the end.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        while is_ready(false) {
            let mut buffer = vec![0; READ_BYTES];
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
                Ok(count) => {
                    buffer.truncate(count);
                    return Some(buffer);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Some(Vec::new()),
            }
        }
        None
    }
}

/// Whether there is something to read, or the end: now, or as soon as there is.
#[cfg(unix)]
fn is_ready(wait: bool) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        let stdin = rustix::stdio::stdin();
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut watched, (!wait).then_some(&now)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            // Reading will tell what is wrong.
            Err(_) => return true,
        }
    }
}

/// Where nobody can be asked whether there is something, it is read as it comes.
#[cfg(not(unix))]
pub(super) struct Source {
    bytes: mpsc::Receiver<Vec<u8>>,
    first: Option<Vec<u8>>,
}

#[cfg(not(unix))]
impl Source {
    pub(super) fn start() -> Self {
        use std::io::Read;
        let (say, bytes) = mpsc::channel(16);
        std::thread::spawn(move || {
            loop {
                let mut buffer = vec![0; READ_BYTES];
                let count = std::io::stdin().read(&mut buffer).unwrap_or(0);
                buffer.truncate(count);
                if say.blocking_send(buffer).is_err() || count == 0 {
                    return;
                }
            }
        });
        Self { bytes, first: None }
    }

    pub(super) async fn readable(&mut self) -> bool {
        self.first = self.bytes.recv().await;
        self.first.is_some()
    }

    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        self.first.take().or_else(|| self.bytes.try_recv().ok())
    }
}
