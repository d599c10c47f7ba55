//! Text that a model streams.

use std::sync::Arc;

use aaep_agent::Error;
use pyo3::prelude::*;
use tokio::sync::Mutex;

use crate::error::CallError;
use crate::runtime::{Here, Task, spawn};

/// An output; writes are in order, from any thread.
#[pyclass]
pub(crate) struct Output(Here<Arc<Mutex<Option<aaep_agent::Output>>>>);

impl Output {
    pub(crate) fn new(output: aaep_agent::Output) -> Self {
        Self(Here::new(Arc::new(Mutex::new(Some(output)))))
    }
}

#[pymethods]
impl Output {
    fn write(&self, future: Py<PyAny>, text: String) -> PyResult<Task> {
        let output = self.0.get()?.clone();
        spawn(future, async move {
            match output.lock().await.as_mut() {
                Some(output) => output.write(&text).await.map_err(CallError::from),
                None => Err(Error::SessionOver.into()),
            }
        })
    }

    fn flush(&self, future: Py<PyAny>) -> PyResult<Task> {
        let output = self.0.get()?.clone();
        spawn(future, async move {
            match output.lock().await.as_mut() {
                Some(output) => output.flush().await.map_err(CallError::from),
                None => Ok(()),
            }
        })
    }

    fn finish(&self, future: Py<PyAny>) -> PyResult<Task> {
        let output = self.0.get()?.clone();
        spawn(future, async move {
            let output = output.lock().await.take();
            match output {
                Some(output) => output.finish().await.map_err(CallError::from),
                None => Ok(0),
            }
        })
    }
}
