//! A record as people see it in the table: the same as its bytes say, as far as views need it.

use std::sync::Arc;

use aaep_engine::Record;
use aaep_types::recorded;
use rusqlite::{Row, ToSql};

/// The columns beside a record's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) kind: Arc<str>,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) request: Option<String>,
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) user: Option<Arc<str>>,
    pub(crate) tool: Option<Arc<str>>,
    pub(crate) call: Option<Arc<str>>,
    pub(crate) text: Option<String>,
    pub(crate) irreversible: Option<bool>,
    pub(crate) deadline: Option<i64>,
    pub(crate) outcome: Option<String>,
    pub(crate) runs: Option<bool>,
    pub(crate) decided_by: Option<Arc<str>>,
    pub(crate) reason: Option<u8>,
}

/// Their names, in the order in which [`Columns::values`] and [`Columns::read`] have them.
pub(crate) const NAMES: [&str; 14] = [
    "kind",
    "session",
    "request",
    "agent",
    "user",
    "tool",
    "call",
    "text",
    "irreversible",
    "deadline",
    "outcome",
    "runs",
    "decided_by",
    "reason",
];

/// What a kind of record is called.
pub(crate) fn kind_of(record: &Record) -> &'static str {
    match record {
        Record::Opened(_) => "opened",
        Record::Ended { .. } => "ended",
        Record::Asked(_) => "asked",
        Record::Resolved { .. } => "resolved",
        Record::Expired { .. } => "expired",
        Record::Invoked { .. } => "invoked",
        Record::Called { .. } => "called",
        Record::Completed { .. } => "completed",
        Record::Extended { .. } => "extended",
        Record::Restarted { .. } => "restarted",
        Record::Ignored { .. } => "ignored",
        Record::Flooded { .. } => "flooded",
        Record::Claimed { .. } => "claimed",
        Record::Administered { .. } => "administered",
        Record::Owed { .. } => "owed",
        Record::Erased { .. } => "erased",
        _ => "other",
    }
}

/// Every kind that `kind_of` can say.
pub const KINDS: [&str; 16] = [
    "opened",
    "asked",
    "extended",
    "resolved",
    "expired",
    "invoked",
    "called",
    "completed",
    "ended",
    "ignored",
    "flooded",
    "claimed",
    "administered",
    "owed",
    "restarted",
    "erased",
];

impl Columns {
    pub(crate) fn of(record: &Record) -> Self {
        let columns = Self { kind: kind_of(record).into(), ..Self::default() };
        match record {
            Record::Opened(opened) => Self {
                session: Some(opened.session.clone()),
                agent: Some(opened.agent.clone()),
                user: Some(opened.user.clone()),
                ..columns
            },
            Record::Ended { session, .. } => Self { session: Some(session.clone()), ..columns },
            Record::Asked(asked) => Self {
                session: Some(asked.session.clone()),
                request: Some(asked.request.to_string()),
                tool: Some(asked.tool.clone()).filter(|tool| !tool.is_empty()),
                text: shown(&asked.event),
                irreversible: Some(asked.irreversible),
                deadline: Some(deadline(asked.stamp, asked.timeout_seconds)),
                ..columns
            },
            Record::Resolved { request, outcome, runs, by, .. } => Self {
                request: Some(request.to_string()),
                outcome: Some(outcome.as_str().into()),
                runs: Some(*runs),
                decided_by: Some(by.clone()),
                ..columns
            },
            Record::Invoked { request, call, .. } => {
                Self { request: Some(request.to_string()), call: Some(call.clone()), ..columns }
            }
            Record::Called { session, call, tool, .. } => Self {
                session: Some(session.clone()),
                call: Some(call.clone()),
                tool: Some(tool.clone()),
                ..columns
            },
            Record::Completed { session, call, .. } => {
                Self { session: Some(session.clone()), call: Some(call.clone()), ..columns }
            }
            Record::Extended { request, timeout_seconds, said, .. } => Self {
                request: Some(request.to_string()),
                deadline: Some(deadline(said.stamp, *timeout_seconds)),
                ..columns
            },
            Record::Ignored { by, reason } => {
                Self { decided_by: Some(by.clone()), reason: Some(*reason), ..columns }
            }
            Record::Expired { request, .. } => {
                Self { request: Some(request.to_string()), ..columns }
            }
            Record::Claimed { agent, user, .. } => {
                Self { agent: Some(agent.clone()), user: Some(user.clone()), ..columns }
            }
            Record::Administered { by, act, .. } => {
                Self { decided_by: Some(by.clone()), outcome: Some(act.to_string()), ..columns }
            }
            Record::Owed { session, .. } => Self { session: Some(session.clone()), ..columns },
            Record::Flooded { by, .. } => Self { decided_by: Some(by.clone()), ..columns },
            _ => columns,
        }
    }

    pub(crate) fn values(&self) -> [&dyn ToSql; 14] {
        [
            &self.kind,
            &self.session,
            &self.request,
            &self.agent,
            &self.user,
            &self.tool,
            &self.call,
            &self.text,
            &self.irreversible,
            &self.deadline,
            &self.outcome,
            &self.runs,
            &self.decided_by,
            &self.reason,
        ]
    }

    /// Reads them from a row that holds them from this place on.
    pub(crate) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            kind: row.get(at)?,
            session: row.get(at + 1)?,
            request: row.get(at + 2)?,
            agent: row.get(at + 3)?,
            user: row.get(at + 4)?,
            tool: row.get(at + 5)?,
            call: row.get(at + 6)?,
            text: row.get(at + 7)?,
            irreversible: row.get(at + 8)?,
            deadline: row.get(at + 9)?,
            outcome: row.get(at + 10)?,
            runs: row.get(at + 11)?,
            decided_by: row.get(at + 12)?,
            reason: row.get(at + 13)?,
        })
    }
}

/// What a person was shown: the action, or the question.
pub(crate) fn shown(payload: &str) -> Option<String> {
    let object = format!("{{{payload}}}");
    recorded::action(&object).or_else(|| recorded::question(&object))
}

fn deadline(stamp: i64, timeout_seconds: u64) -> i64 {
    let wait = i64::try_from(timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    stamp.saturating_add(wait)
}
