//! Actions that were given back to their agents, to be run once.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep_engine::RequestId;
use aaep_types::{SessionId, ToolCallId};

/// An action that was given back to its agent, to be run once.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) call: ToolCallId,
    pub(crate) arguments: Arc<str>,
}

/// What was given back and may still run, so that a repeated call gets the same answer. A grant
/// leaves with its call: its arguments may be large (I22).
#[derive(Default)]
pub(crate) struct Grants {
    by_request: BTreeMap<RequestId, Grant>,
    by_session: BTreeMap<SessionId, Vec<RequestId>>,
}

impl Grants {
    pub(super) fn insert(&mut self, session: SessionId, request: RequestId, grant: Grant) {
        if self.by_request.insert(request, grant).is_none() {
            self.by_session.entry(session).or_default().push(request);
        }
    }

    pub(super) fn get(&self, request: RequestId) -> Option<Grant> {
        self.by_request.get(&request).cloned()
    }

    /// Keeps only those of a session whose calls still run. They are no more than the calls that one
    /// session may have open.
    pub(super) fn keep(&mut self, session: SessionId, runs: impl Fn(RequestId) -> bool) {
        let Some(requests) = self.by_session.get_mut(&session) else { return };
        for over in requests.extract_if(.., |request| !runs(*request)) {
            self.by_request.remove(&over);
        }
        if requests.is_empty() {
            self.by_session.remove(&session);
        }
    }

    /// A session is over, and so are its calls.
    pub(super) fn ended(&mut self, session: SessionId) {
        for request in self.by_session.remove(&session).unwrap_or_default() {
            self.by_request.remove(&request);
        }
    }
}
