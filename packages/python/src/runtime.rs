//! The one Tokio runtime, and how its results reach Python.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use crate::error::{CallError, misuse};

/// The runtime of this process, and its process. A forked process has none of its threads, and makes its
/// own; the old one is left alone, since taking it down would wait for them.
///
/// Both forking and everything that locks this hold Python's own lock, so no fork finds it locked.
static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, runtime)) = *known
        && process == std::process::id()
    {
        return Ok(runtime);
    }
    let mut threads = Builder::new_multi_thread();
    let made = threads.worker_threads(2).thread_name("aaep").enable_all().build();
    let made = made
        .map_err(|why| PyRuntimeError::new_err(format!("The system gives no threads: {why}.")))?;
    let runtime = &*Box::leak(Box::new(made));
    *known = Some((std::process::id(), runtime));
    Ok(runtime)
}

/// What belongs to the process that made it: in a forked one its threads are gone, and its connections
/// are still the other's.
pub(crate) struct Here<T> {
    process: u32,
    /// `None` only while it is dropped.
    value: Option<T>,
}

impl<T> Here<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: std::process::id(), value: Some(value) }
    }

    /// The value, in its own process.
    pub(crate) fn get(&self) -> PyResult<&T> {
        let forked = "This process was forked from the one that made this agent. Make a new Agent in this process.";
        let own = self.value.as_ref().filter(|_| self.process == std::process::id());
        own.ok_or_else(|| Python::attach(|py| misuse(py, forked)))
    }
}

impl<T> Drop for Here<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // Its last words are the other process's to say.
            std::mem::forget(self.value.take());
        }
    }
}

/// Work under way; cancelled, it is given up, and people are told what that means.
#[pyclass]
pub(crate) struct Task(AbortHandle);

#[pymethods]
impl Task {
    /// Gives the work up.
    fn cancel(&self) {
        self.0.abort();
    }
}

/// Runs this, and settles the future of Python's with what comes of it.
pub(crate) fn spawn<T>(
    future: Py<PyAny>,
    work: impl Future<Output = Result<T, CallError>> + Send + 'static,
) -> PyResult<Task>
where
    T: for<'py> IntoPyObject<'py> + Send + 'static,
{
    let task = runtime()?.spawn(async move {
        let result = work.await;
        Python::attach(|py| {
            let settled = match result {
                Ok(value) => future.call_method1(py, "set_result", (value,)),
                Err(fault) => fault
                    .to_python(py)
                    .and_then(|why| future.call_method1(py, "set_exception", (why,))),
            };
            // A future that was cancelled meanwhile takes nothing.
            drop(settled);
        });
    });
    Ok(Task(task.abort_handle()))
}
