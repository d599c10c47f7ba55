//! Counters, as Prometheus reads them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use aaep_engine::Outcome;

use crate::vitals::Vitals;

/// Something that is counted.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Everything that is counted. Nothing here names a person, a session or an action (S8).
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) sessions: Counter,
    pub(crate) events: Counter,
    pub(crate) requests: Counter,
    pub(crate) replies: Counter,
    pub(crate) delivered: Counter,
    pub(crate) ended: Counter,
    pub(crate) refused: Counter,
    outcomes: [Counter; 5],
}

/// What the core holds at the moment of asking.
pub(crate) struct Counts {
    pub(crate) open_sessions: usize,
    pub(crate) pending_requests: usize,
    pub(crate) streams: usize,
    /// Whether the journal takes no records, so that nothing is asked and no answer counts.
    pub(crate) is_stuck: bool,
}

/// What is measured at the moment of asking.
pub(crate) struct Gauges {
    /// Of calls and of links.
    pub(crate) waits: [u64; 2],
    pub(crate) counts: Counts,
    pub(crate) vitals: Vitals,
}

const OUTCOMES: [Outcome; 5] = [
    Outcome::Accepted,
    Outcome::Rejected,
    Outcome::TimedOut,
    Outcome::Cancelled,
    Outcome::Superseded,
];

impl Metrics {
    pub(crate) fn resolved(&self, outcome: Outcome) -> &Counter {
        &self.outcomes[outcome as usize]
    }

    /// In the text format of Prometheus.
    pub(crate) fn to_text(&self, gauges: &Gauges) -> String {
        let mut out = String::new();
        let mut put = |name: &str, kind: &str, help: &str, values: &[(String, u64)]| {
            let _ = writeln!(out, "# HELP aaep_{name} {help}\n# TYPE aaep_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(out, "aaep_{name}{labels} {value}");
            }
        };
        let one = |value: u64| [(String::new(), value)];
        put("sessions_total", "counter", "Sessions that began.", &one(self.sessions.get()));
        put("events_total", "counter", "Events that agents sent.", &one(self.events.get()));
        put("requests_total", "counter", "Requests that were asked.", &one(self.requests.get()));
        let outcomes = OUTCOMES.map(|outcome| {
            (format!("{{outcome=\"{}\"}}", outcome.as_str()), self.resolved(outcome).get())
        });
        put("resolutions_total", "counter", "Requests by what became of them.", &outcomes);
        put("replies_total", "counter", "Messages of subscribers.", &one(self.replies.get()));
        put(
            "deliveries_total",
            "counter",
            "Events handed to connections.",
            &one(self.delivered.get()),
        );
        put(
            "subscriptions_ended_total",
            "counter",
            "Subscriptions given up because they could not keep up.",
            &one(self.ended.get()),
        );
        put(
            "refused_total",
            "counter",
            "Requests refused before anybody looked at them.",
            &one(self.refused.get()),
        );
        let [calls, links] = gauges.waits;
        put(
            "waits_for_others_total",
            "counter",
            "Waits of those who had taken their part of the processor's time.",
            &[("{of=\"calls\"}".to_owned(), calls), ("{of=\"links\"}".to_owned(), links)],
        );
        let Counts { open_sessions, pending_requests, streams, is_stuck } = gauges.counts;
        put("open_sessions", "gauge", "Sessions that are open.", &one(open_sessions as u64));
        put(
            "pending_requests",
            "gauge",
            "Requests that wait for an answer.",
            &one(pending_requests as u64),
        );
        put("streams", "gauge", "Connections that hear a subscription.", &one(streams as u64));
        put(
            "journal_stuck",
            "gauge",
            "1 while the journal takes no records (a full disk, say): nothing is asked, and no answer counts.",
            &one(u64::from(is_stuck)),
        );
        let vitals = &gauges.vitals;
        // What cannot be found out is left out: a zero would be taken for a measurement.
        let found = |value: Option<u64>| value.map(|value| (String::new(), value));
        put_found(
            &mut put,
            "journal_bytes",
            "Bytes of the journal on disk.",
            found(vitals.journal),
        );
        put_found(
            &mut put,
            "disk_free_bytes",
            "Bytes that the hub may still write where its journal is.",
            found(vitals.disk_free),
        );
        put_found(
            &mut put,
            "certificate_expiry_timestamp_seconds",
            "When the certificate in use is over, in seconds of Unix time.",
            found(vitals.certificate_expires),
        );
        put_found(
            &mut put,
            "resident_memory_bytes",
            "Bytes of memory that are the hub's own.",
            found(vitals.memory),
        );
        put_found(
            &mut put,
            "open_files",
            "Files and connections that are open.",
            found(vitals.open_files),
        );
        put_found(
            &mut put,
            "max_files",
            "Files and connections that the system lets it open.",
            found(vitals.max_files),
        );
        put(
            "build_info",
            "gauge",
            "Always 1; the version is in the label.",
            &[(format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), 1)],
        );
        out
    }
}

/// Puts a gauge, if it could be measured.
fn put_found(
    put: &mut impl FnMut(&str, &str, &str, &[(String, u64)]),
    name: &str,
    help: &str,
    value: Option<(String, u64)>,
) {
    if let Some(value) = value {
        put(name, "gauge", help, &[value]);
    }
}
