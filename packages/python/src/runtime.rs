//! The one Tokio runtime, and how its results reach Python.

use std::future::Future;
use std::sync::OnceLock;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use crate::error::CallError;

/// The runtime of this process.
pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(2).thread_name("aaep").enable_all().build()
    });
    made.as_ref().map_err(|why| PyRuntimeError::new_err(format!("no threads to be had: {why}")))
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
