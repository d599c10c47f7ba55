//! What is known of one session: its order, what the agent does, its text on the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep_types::json::{Members, Raw};
use aaep_types::{EventKind, LenientEvent};

use super::backlog::BacklogIndex;
use super::bounds::Bounds;
use super::order::Order;
use super::settings::cut;
use super::text::Collector;
use crate::notification::Agent;

/// An event that waits for its turn.
#[derive(Debug)]
pub(super) struct Early {
    pub(super) json: Arc<str>,
}

/// One session of a connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) agent: Agent,
    pub(super) order: Order<Early>,
    pub(super) outputs: BTreeMap<Arc<str>, Collector>,
    pub(super) doing: Doing,
    /// It was not known when the connection began, so holes before this moment mean nothing.
    pub(super) joining_until: u64,
    /// Unless something is heard of it by then, it is over.
    pub(super) confirm_by: Option<u64>,
    /// Nothing was heard of it since the hub began to tell how things stand.
    pub(super) doubted: bool,
    pub(super) waiting_state: Option<BacklogIndex>,
    pub(super) waiting_progress: Option<BacklogIndex>,
    /// When it was last heard of, in the order of all events.
    pub(super) touched: u64,
}

/// What an agent does, for a user who asks. Texts are the agent's own, cut where they are long.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Doing {
    /// Who.
    pub agent: Agent,
    /// In which session.
    pub session_id: Arc<str>,
    /// The name of its state, such as `thinking`.
    pub state: Option<Arc<str>>,
    /// What it says about it.
    pub summary: Option<Arc<str>>,
    /// How far it is.
    pub progress: Option<Progress>,
    /// The tool that runs.
    pub tool: Option<Arc<str>>,
    /// What it says about that.
    pub tool_summary: Option<Arc<str>>,
    /// How many of its requests wait for the user.
    pub waiting: usize,
    /// When anything was last heard of it, in milliseconds of the inbox's clock.
    pub heard_ms: u64,
}

/// How far an agent is.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How much is done, from 0 to 100.
    pub percent: Option<f64>,
    /// Which step this is.
    pub step: Option<u64>,
    /// How many there are.
    pub total_steps: Option<u64>,
    /// What is being done.
    pub description: Option<Arc<str>>,
}

impl Session {
    pub(super) fn new(agent: Agent, session_id: Arc<str>, joining_until: u64) -> Self {
        let doing = Doing {
            agent: agent.clone(),
            session_id,
            state: None,
            summary: None,
            progress: None,
            tool: None,
            tool_summary: None,
            waiting: 0,
            heard_ms: 0,
        };
        Self {
            agent,
            order: Order::default(),
            outputs: BTreeMap::new(),
            doing,
            joining_until,
            confirm_by: None,
            doubted: false,
            waiting_state: None,
            waiting_progress: None,
            touched: 0,
        }
    }
}

impl Doing {
    /// Takes note of an event.
    pub(super) fn note(&mut self, heard: &LenientEvent<'_>, now: u64, bounds: &Bounds) {
        self.heard_ms = now;
        let chars = bounds.kept_chars;
        let kept = |name: &str| {
            let text = heard.text(name).filter(|text| !text.is_empty());
            text.map(|text| Arc::<str>::from(cut(&text, chars)))
        };
        let summary = || kept("summary_normal").or_else(|| kept("summary_terse"));
        match heard.kind() {
            Some(EventKind::SessionStarted) => self.summary = summary(),
            Some(EventKind::StateChanged) => {
                self.state = kept("to_state");
                self.summary = summary();
                self.progress = None;
            }
            Some(EventKind::ProgressUpdated) => {
                self.progress = heard.object("progress").map(|progress| read(&progress, chars));
            }
            Some(EventKind::ToolInvoked) => {
                self.tool = kept("tool");
                self.tool_summary = summary();
            }
            Some(EventKind::ToolCompleted) => (self.tool, self.tool_summary) = (None, None),
            _ => {}
        }
    }
}

fn read(progress: &Members<'_>, chars: usize) -> Progress {
    let number = |name: &str| match progress.find(name)? {
        Raw::Number(text) => text.parse::<f64>().ok().filter(|number| number.is_finite()),
        _ => None,
    };
    let whole =
        |name: &str| number(name).filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64);
    let description = progress.text("description").filter(|text| !text.is_empty());
    Progress {
        percent: number("percent").filter(|percent| (0.0..=100.0).contains(percent)),
        step: whole("step"),
        total_steps: whole("total_steps"),
        description: description.map(|text| cut(&text, chars).into()),
    }
}
