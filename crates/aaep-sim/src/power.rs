//! Crashes, and what the disk makes of them.

use aaep_engine::{ClockTrust, Engine, Input, Limits, Producer, Rules, Secrets};

use crate::disk::Fate;
use crate::mutation;
use crate::oracle::Cause;
use crate::world::World;

/// Bounds that are small enough to be reached.
pub(crate) fn limits(motley: bool) -> Limits {
    let most = Limits {
        subscriptions: 24,
        subscriptions_per_user: 12,
        subscriptions_per_principal: 12,
        recent_events: 16,
        ended_sessions: 2,
        resent_deliveries: 4,
        replies_per_second: 4,
        approval_seconds: 100,
        settled_per_session: 3,
        ended_requests_per_user: 4,
        completed_outputs: 2,
        critical_per_window: 1,
        sessions: 8,
        sessions_per_user: 4,
        sessions_per_principal: 4,
        pending_requests: 16,
        pending_requests_per_user: 8,
        pending_requests_per_principal: 8,
        known_calls: 64,
        known_calls_per_user: 32,
        known_calls_per_principal: 32,
        ..Limits::default()
    };
    // Near the bound even plain streams are merged; with plain subscribers only, nothing is.
    if !motley {
        return most;
    }
    // Here requests are bounded by their bytes: sooner than by their number.
    Limits {
        held_events: 8,
        held_bytes: 16 * 1024,
        pending_requests: 64,
        pending_requests_per_user: 32,
        pending_requests_per_principal: 32,
        pending_bytes: 4000,
        pending_bytes_per_user: 2000,
        pending_bytes_per_principal: 2000,
        ..most
    }
}

/// Decides about a write that was not synced, given its place among them and its length.
pub(crate) type Decide = fn(usize, usize) -> Fate;

/// A crash that is not left to chance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    /// What becomes of the writes that were not synced, given their place; `None` if only the
    /// program is killed.
    pub(crate) fate: Option<Decide>,
    pub(crate) trusted: bool,
    /// Crash again before this output of the recovery.
    pub(crate) again: Option<usize>,
}

impl<R: Rules> World<'_, R> {
    /// The hub goes down. Half of the time the power goes too; then what was not synced is at the
    /// mercy of the disk.
    pub(crate) fn crash(&mut self) {
        if let Some(script) = self.script {
            return self.crash_as_written(script);
        }
        let power = self.disk.failing || self.random.one_in(2);
        self.note(|| if power { "power loss" } else { "killed" }.into());
        self.stop();
        if power {
            let random = &mut self.random;
            self.disk.lose_power(|_, length| match random.below(6) {
                0 | 1 => Fate::Kept,
                2 => Fate::Flipped(random.below(length * 8)),
                3 => Fate::Torn(random.below(length + 1)),
                _ => Fate::Lost,
            });
            self.clocks.reboot();
        }
    }

    fn crash_as_written(&mut self, script: Script) {
        self.note(|| "crash".into());
        self.stop();
        if let Some(fate) = script.fate {
            self.disk.lose_power(fate);
            self.clocks.reboot();
        }
    }

    /// Everything that the hub had in memory is gone.
    pub(crate) fn stop(&mut self) {
        self.hub = None;
        self.crash_in = None;
        self.unwritten.clear();
        self.disk.failing = false;
        self.disk.full = false;
        for client in 0..self.clients.len() {
            self.hang_up(client);
        }
    }

    /// The disk breaks its promise: nothing may be started from what is left.
    pub(crate) fn rot(&mut self) {
        self.stop();
        let bit = self.random.below(self.disk.synced() * 8);
        self.disk.rot(bit);
        if self.disk.synced() > 0 && self.disk.open().is_ok() {
            self.oracle.violated("I3", "a damaged journal was believed".into());
        }
    }

    /// The hub starts again from what the disk kept.
    pub(crate) fn restart(&mut self) {
        let Ok(tail) = self.disk.open() else {
            // Only a disk that broke its promise gets here: nothing is started from it.
            return self.note(|| "the journal is damaged; nothing was started".into());
        };
        let file = self.disk.contents().to_vec();
        if !self.believes(&tail.records(&file).collect::<Vec<_>>()) {
            return;
        }
        // What is about to be believed must be durable first.
        if self.disk.sync().is_err() {
            return self.crash();
        }
        let trusted = match self.script {
            Some(script) => script.trusted,
            None => !self.clocks.jumped && !self.random.one_in(6),
        };
        let trust = if trusted { ClockTrust::Trusted } else { ClockTrust::Doubtful };
        self.note(|| format!("starts with {} records, clock {trust:?}", tail.ends.len()));
        let secrets = Secrets { seed: self.random.bytes(), token_key: self.token_key };
        let now = self.clocks.now();
        let held_to = mutation::lifted(self.limits);
        let records = tail.records(self.disk.contents());
        let recovered = Engine::recover(secrets.clone(), held_to, records, trust, now);
        let Ok(engine) = recovered else {
            return self.oracle.violated("I3", "records that are whole were refused".into());
        };
        for witness in self.witnesses() {
            witness.clock_may_step_back |= !trusted;
        }
        self.ends = tail.ends;
        self.oracle.begin(Cause::Recovery { trusted }, self.clocks.passed, false);
        self.oracle.restarted(self.ends.len() as u64, trusted);
        self.oracle.compare(&engine, trusted);
        self.hub = Some(Producer::new(engine, secrets, held_to, self.cast.offer.clone(), now));
        for client in &mut self.clients {
            // Text leaves no record, and numbers skip ahead.
            client.ear.begin_anew(self.outputs);
        }
        match &mut self.script {
            Some(script) => self.crash_in = script.again.take(),
            None if self.random.one_in(8) => self.crash_in = Some(self.random.below(4)),
            None => {}
        }
        self.drain();
        self.handle(Input::Tick, Cause::Other);
    }
}
