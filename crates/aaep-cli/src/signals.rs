//! When somebody wants a command to stop, or to read its configuration again.

use aaep_hub::Fault;

/// What somebody wants.
pub(crate) enum Signal {
    Stop,
    Reload,
    /// The process was stopped, and goes on.
    Continue,
}

#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    goes_on: Option<tokio::signal::unix::Signal>,
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
            goes_on: None,
        })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.hang_up.recv() => Signal::Reload,
        }
    }

    /// The same for a command that has set up its terminal: when it goes on after a stop, somebody
    /// else may have set it up otherwise.
    pub(crate) async fn next_of_terminal(&mut self) -> Signal {
        use tokio::signal::unix::{SignalKind, signal};
        if self.goes_on.is_none() {
            self.goes_on = signal(SignalKind::from_raw(CONTINUE)).ok();
        }
        let Some(goes_on) = &mut self.goes_on else { return self.next().await };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.hang_up.recv() => Signal::Reload,
            _ = goes_on.recv() => Signal::Continue,
        }
    }
}

/// SIGCONT, which has this number on Linux and another one on BSD and macOS.
#[cfg(unix)]
const CONTINUE: i32 = if cfg!(any(target_os = "linux", target_os = "android")) { 18 } else { 19 };

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

    pub(crate) async fn next_of_terminal(&mut self) -> Signal {
        self.next().await
    }
}

impl Signals {
    /// Waits until somebody wants the command to stop; a terminal that is gone is one reason.
    pub(crate) async fn stop(&mut self) {
        match self.next().await {
            Signal::Stop | Signal::Reload | Signal::Continue => {}
        }
    }
}
