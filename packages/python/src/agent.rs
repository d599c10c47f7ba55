//! The agent: a connection to a hub.

use std::time::Duration;

use aaep_agent::Remote;
use pyo3::prelude::*;

use crate::error::raise;
use crate::runtime::{Here, Task, runtime, spawn};
use crate::session::Session;

/// One producer of one hub.
#[pyclass]
pub(crate) struct Agent(Here<aaep_agent::Agent>);

#[pymethods]
impl Agent {
    #[new]
    fn new(
        id: String,
        url: Option<String>,
        token: Option<String>,
        trust_pem: Option<Vec<u8>>,
        trust_loopback: bool,
        patience: f64,
    ) -> PyResult<Self> {
        let mut remote = url.map_or_else(Remote::local, Remote::at);
        if let Some(token) = token {
            remote = remote.token(token);
        }
        if let Some(pem) = trust_pem {
            remote = remote.trust_pem(pem);
        }
        if trust_loopback {
            remote = remote.trust_loopback();
        }
        let _inside = runtime()?.enter();
        let agent = aaep_agent::Agent::connect(remote, id.as_str()).map_err(|why| raise(&why))?;
        let patience = Duration::try_from_secs_f64(patience).unwrap_or(aaep_agent::PATIENCE);
        Ok(Self(Here::new(agent.patience(patience))))
    }

    fn open(
        &self,
        future: Py<PyAny>,
        summary: String,
        language: Option<String>,
        lease_seconds: Option<u32>,
    ) -> PyResult<Task> {
        let mut opening = self.0.get()?.session(summary);
        if let Some(tag) = language {
            opening = opening.language(tag);
        }
        if let Some(seconds) = lease_seconds {
            opening = opening.lease_seconds(seconds);
        }
        spawn(future, async move { Ok(Session::new(opening.open().await?)) })
    }

    fn close(&self, future: Py<PyAny>) -> PyResult<Task> {
        let agent = self.0.get()?.clone();
        spawn(future, async move {
            agent.close().await;
            Ok(())
        })
    }
}
