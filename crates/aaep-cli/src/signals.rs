//! When somebody wants a command to stop, or to read its configuration again.

use aaep_hub::Fault;

/// What somebody wants.
pub(crate) enum Signal {
    Stop,
    Reload,
}

#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> Result<Self, Fault> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind).map_err(|error| Fault::System {
                what: format!("Cannot listen for signals: {error}."),
            })
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.hang_up.recv() => Signal::Reload,
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn new() -> Result<Self, Fault> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) -> Signal {
        let _ = tokio::signal::ctrl_c().await;
        Signal::Stop
    }
}

impl Signals {
    /// Waits until somebody wants the command to stop; a terminal that is gone is one reason.
    pub(crate) async fn stop(&mut self) {
        match self.next().await {
            Signal::Stop | Signal::Reload => {}
        }
    }
}
