//! Errors of the Rust library as exceptions of `aaep`.

use aaep_agent::{Error, NotApproved, Unanswered};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What ends a call without its result.
pub(crate) enum CallError {
    /// As the library says it.
    Agent(Error),
    /// The session is over because its user stopped it.
    Stopped,
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Agent(error)
    }
}

impl CallError {
    /// The exception for it.
    pub(crate) fn to_python(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Agent(error) => to_python(py, error),
            Self::Stopped => {
                let class = py.import("aaep._errors")?.getattr("Stopped")?;
                Ok(class
                    .call1(("The user stopped this session; do nothing more for it.",))?
                    .unbind())
            }
        }
    }
}

/// The exception for an error: its class by whose fault it is, its text, and what is known besides.
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyResult<Py<PyAny>> {
    let known = PyDict::new(py);
    let class = match error {
        Error::Misuse(misuse) => {
            known.set_item("rule", misuse.rule.id)?;
            "Misuse"
        }
        Error::Refused(refused) => {
            known.set_item("status", refused.status)?;
            known.set_item("rule", refused.rule.as_deref())?;
            "Refused"
        }
        Error::NotApproved(why) => {
            known.set_item("reason", reason(why))?;
            if let NotApproved::Rejected { by, reply } = why {
                known.set_item("by", by)?;
                known.set_item("rationale", reply.rationale.as_deref())?;
            }
            "NotApproved"
        }
        Error::Unanswered(Unanswered::TimedOut) => {
            known.set_item("reason", "timed_out")?;
            "Unanswered"
        }
        Error::Unanswered(_) => {
            known.set_item("reason", "cancelled")?;
            "Unanswered"
        }
        Error::SessionOver => "SessionOver",
        Error::Unavailable(_) => "Unavailable",
        Error::InDoubt(_) => "InDoubt",
        _ => "Error",
    };
    let class = py.import("aaep._errors")?.getattr(class)?;
    Ok(class.call((error.report(),), Some(&known))?.unbind())
}

fn reason(why: &NotApproved) -> &'static str {
    match why {
        NotApproved::Rejected { .. } => "rejected",
        NotApproved::TimedOut => "timed_out",
        NotApproved::Expired => "expired",
        NotApproved::Begun => "begun",
        _ => "cancelled",
    }
}

/// Raises it at once.
pub(crate) fn raise(error: &Error) -> PyErr {
    Python::attach(|py| match to_python(py, error) {
        Ok(why) => PyErr::from_value(why.into_bound(py)),
        Err(why) => why,
    })
}

/// The exception for a misuse that the library knows nothing of.
pub(crate) fn misuse(py: Python<'_>, text: &str) -> PyErr {
    let class = py.import("aaep._errors").and_then(|errors| errors.getattr("Misuse"));
    match class.and_then(|class| class.call1((text,))) {
        Ok(why) => PyErr::from_value(why),
        Err(why) => why,
    }
}
