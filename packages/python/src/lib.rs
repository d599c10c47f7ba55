//! The native half of the Python package `aaep`: the Rust agent library behind Python objects.
//!
//! Every call that waits is given a `concurrent.futures.Future` of Python's. The work runs on one Tokio
//! runtime of this process, so signs of life go to the hub while Python blocks, and the future is settled
//! from there: synchronous code waits for it, asyncio wraps it.

mod agent;
mod error;
mod output;
mod runtime;
mod session;
mod subscriber;

use pyo3::prelude::*;

/// Judges an event by the rules of the protocol: a list of `(rule, pointer, text)`, empty if it is valid.
#[pyfunction]
fn problems(event: &[u8]) -> Vec<(String, String, String)> {
    match aaep_types::Event::parse(event) {
        Ok(_) => Vec::new(),
        Err(invalid) => invalid
            .problems
            .iter()
            .map(|problem| (problem.rule.id.into(), problem.pointer.clone(), problem.text.clone()))
            .collect(),
    }
}

/// A text without what looks like a secret.
#[pyfunction]
fn redact(text: &str) -> String {
    aaep_types::secret::redact(text).into_owned()
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<agent::Agent>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<session::Call>()?;
    module.add_class::<output::Output>()?;
    module.add_class::<runtime::Task>()?;
    module.add_class::<subscriber::Inbox>()?;
    module.add_class::<subscriber::Notification>()?;
    module.add_class::<subscriber::Words>()?;
    let before_exit = wrap_pyfunction!(runtime::before_exit, module)?;
    module.py().import("atexit")?.call_method1("register", (before_exit,))?;
    module.add_function(wrap_pyfunction!(problems, module)?)?;
    module.add_function(wrap_pyfunction!(redact, module)?)
}
