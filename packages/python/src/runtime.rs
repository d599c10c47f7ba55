//! The one Tokio runtime, and how its results reach Python.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

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
    // What threads of another process were doing when this one was forked is not done here.
    SETTLING.store(0, Ordering::SeqCst);
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

/// How many threads of the runtime settle a future of Python's now.
static SETTLING: AtomicUsize = AtomicUsize::new(0);

/// Whether Python is about to end. A thread that waits for Python's lock then is ended by Python where it
/// stands, which takes the whole process down.
static EXITING: AtomicBool = AtomicBool::new(false);

struct Settling;

impl Settling {
    /// Nothing, once Python is about to end.
    fn begin() -> Option<Self> {
        SETTLING.fetch_add(1, Ordering::SeqCst);
        let settling = Self;
        (!EXITING.load(Ordering::SeqCst)).then_some(settling)
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        SETTLING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long the end of Python waits for threads that settle futures.
const EXIT_WAIT: Duration = Duration::from_secs(5);

/// To be called before Python ends: from then on no thread of ours touches it.
#[pyfunction]
pub(crate) fn before_exit(py: Python<'_>) {
    EXITING.store(true, Ordering::SeqCst);
    py.detach(|| {
        let mut waited = Duration::ZERO;
        while SETTLING.load(Ordering::SeqCst) > 0 && waited < EXIT_WAIT {
            std::thread::sleep(Duration::from_millis(1));
            waited += Duration::from_millis(1);
        }
    });
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
    if EXITING.load(Ordering::SeqCst) {
        return Err(PyRuntimeError::new_err("Python is about to end; nothing more can be said."));
    }
    let task = runtime()?.spawn(async move {
        let result = work.await;
        let Some(_settling) = Settling::begin() else {
            // Nobody can wait for it any more, and Python is not to be touched.
            std::mem::forget(future);
            return;
        };
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
