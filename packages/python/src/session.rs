//! A session, and the calls of tools in it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aaep_agent::{
    Confirmation, Error, ErrorCategory, Kind, Progress, Question, RiskLevel, ToolStatus, Words,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tokio::sync::watch;

use crate::error::{CallError, raise};
use crate::output::Output;
use crate::runtime::{Here, Task, spawn};

/// An open session. What is under way when it ends is given up.
#[pyclass]
pub(crate) struct Session {
    open: Here<Mutex<Option<Arc<aaep_agent::Session>>>>,
    id: String,
    closing: watch::Sender<bool>,
}

/// A call that was announced or approved, and must be completed.
#[pyclass]
pub(crate) struct Call {
    call: Here<Mutex<Option<aaep_agent::Call>>>,
    #[pyo3(get)]
    id: String,
    #[pyo3(get)]
    key: Option<String>,
    #[pyo3(get)]
    arguments: Option<String>,
    #[pyo3(get)]
    by: Option<String>,
}

impl Call {
    fn new(call: aaep_agent::Call, by: Option<String>) -> Self {
        let (key, arguments) = (call.key().map(Into::into), call.arguments().map(Into::into));
        Self { id: call.id().into(), key, arguments, by, call: Here::new(Mutex::new(Some(call))) }
    }
}

#[pymethods]
impl Call {
    /// Says how it ended. What the tool did is done, whether or not the hub could be told: if it is away,
    /// it is told once it is back.
    fn complete(
        &self,
        future: Py<PyAny>,
        status: &str,
        summary: String,
        ours: bool,
    ) -> PyResult<Task> {
        let summary = words(summary, ours);
        let status = word(ToolStatus::parse(status), "status")?;
        let call = self.call.get()?.lock().unwrap_or_else(PoisonError::into_inner).take();
        spawn(future, async move {
            match call {
                Some(call) => call.complete(status, summary).await.map_err(CallError::from),
                None => Ok(()),
            }
        })
    }
}

impl Session {
    pub(crate) fn new(session: aaep_agent::Session) -> Self {
        let id = session.id().to_string();
        let open = Here::new(Mutex::new(Some(Arc::new(session))));
        Self { open, id, closing: watch::Sender::new(false) }
    }

    fn held(&self) -> PyResult<Option<Arc<aaep_agent::Session>>> {
        Ok(self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Does something in the session, as long as it is open.
    fn work<T, F>(
        &self,
        future: Py<PyAny>,
        work: impl FnOnce(Arc<aaep_agent::Session>) -> F,
    ) -> PyResult<Task>
    where
        T: for<'py> IntoPyObject<'py> + Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let Some(session) = self.held()? else {
            return spawn(future, async { Err::<T, _>(Error::SessionOver.into()) });
        };
        let (work, mut closing) = (work(session.clone()), self.closing.subscribe());
        spawn(future, async move {
            let result = tokio::select! {
                result = work => result,
                _ = closing.wait_for(|closing| *closing) => return Err(Error::SessionOver.into()),
            };
            match result {
                Err(Error::SessionOver) => Err(how_it_ended(&session).await),
                other => other.map_err(CallError::from),
            }
        })
    }

    /// Ends it, once nothing is under way any more.
    fn end<F>(
        &self,
        future: Py<PyAny>,
        end: impl FnOnce(aaep_agent::Session) -> F + Send + 'static,
    ) -> PyResult<Task>
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let session = self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.closing.send_replace(true);
        spawn(future, async move {
            let Some(mut shared) = session else { return Ok(()) };
            loop {
                match Arc::try_unwrap(shared) {
                    Ok(session) => return end(session).await.map_err(CallError::from),
                    Err(still) => shared = still,
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    }
}

#[pymethods]
impl Session {
    #[getter]
    fn id(&self) -> &str {
        &self.id
    }

    /// Whether somebody else ended it.
    fn is_stopped(&self) -> PyResult<bool> {
        Ok(self.held()?.is_some_and(|session| session.is_stopped()))
    }

    /// Whether its user ended it.
    fn was_stopped(&self, future: Py<PyAny>) -> PyResult<Task> {
        let session = self.held()?;
        spawn(future, async move {
            match session {
                Some(session) => Ok(session.was_stopped_by_user().await),
                None => Ok(false),
            }
        })
    }

    /// Waits until somebody else ended it.
    fn stopped(&self, future: Py<PyAny>) -> PyResult<Task> {
        self.work(future, |session| async move {
            session.stopped().await;
            Ok(())
        })
    }

    fn thinking(&self, future: Py<PyAny>, about: String) -> PyResult<Task> {
        self.work(future, |session| async move { session.thinking(about).await })
    }

    fn progress(
        &self,
        future: Py<PyAny>,
        percent: Option<u8>,
        step: Option<(u32, u32)>,
        description: Option<String>,
        eta_seconds: Option<u32>,
    ) -> PyResult<Task> {
        let mut progress = match (percent, step) {
            (Some(percent), _) => Progress::percent(percent),
            (None, Some((step, total))) => Progress::step(step, total),
            (None, None) => Progress::default(),
        };
        if let Some(text) = description {
            progress = progress.description(text);
        }
        if let Some(seconds) = eta_seconds {
            progress = progress.eta_seconds(seconds);
        }
        self.work(future, |session| async move { session.progress(progress).await })
    }

    fn output(&self) -> PyResult<Output> {
        let session = self.held()?.ok_or_else(|| raise(&Error::SessionOver))?;
        session.output().map(Output::new).map_err(|why| raise(&why))
    }

    /// Announces a tool that needs no consent.
    fn tool(
        &self,
        future: Py<PyAny>,
        name: String,
        summary: Option<String>,
        arguments: Option<String>,
        risk: Option<&str>,
    ) -> PyResult<Task> {
        let risk = risk.map(|risk| word(RiskLevel::parse(risk), "risk")).transpose()?;
        self.work(future, |session| async move {
            let mut tool = session.tool(name);
            if let Some(summary) = summary {
                tool = tool.summary(summary);
            }
            if let Some(json) = arguments {
                tool = tool.arguments_json(json);
            }
            if let Some(risk) = risk {
                tool = tool.risk(risk);
            }
            Ok(Call::new(tool.begin().await?, None))
        })
    }

    /// Asks for consent, waits for the yes, and has the hub say that the tool runs.
    #[allow(clippy::too_many_arguments)]
    fn confirm(
        &self,
        future: Py<PyAny>,
        tool: String,
        action: String,
        consequence: String,
        arguments: String,
        undo: &str,
        risk: Option<&str>,
        timeout_seconds: Option<u32>,
        accept_on_silence: bool,
    ) -> PyResult<Task> {
        let rest = Rest {
            arguments,
            risk: risk.map(|risk| word(RiskLevel::parse(risk), "risk")).transpose()?,
            timeout_seconds,
        };
        match undo {
            "easily" => {
                let mut request = Confirmation::reversible(tool, action, consequence);
                if accept_on_silence {
                    request = request.accept_on_silence();
                }
                self.ask_first(future, rest.on(request))
            }
            _ if accept_on_silence => {
                let why =
                    "Silence can mean yes only to what is easily undone; say undo=\"easily\".";
                Err(PyValueError::new_err(why))
            }
            "with_effort" => {
                let request = Confirmation::with_effort(tool, action, consequence);
                self.ask_first(future, rest.on(request))
            }
            "never" => {
                let request = Confirmation::irreversible(tool, action, consequence);
                self.ask_first(future, rest.on(request))
            }
            _ => Err(PyValueError::new_err("undo is one of never, with_effort, easily")),
        }
    }

    /// Asks a question; the answer is a text, true or false, a number, or the place of a choice.
    fn ask(
        &self,
        future: Py<PyAny>,
        question: String,
        kind: &str,
        choices: Vec<String>,
        context: Option<String>,
        timeout_seconds: Option<u32>,
    ) -> PyResult<Task> {
        fn more<T>(
            question: Question<T>,
            context: Option<String>,
            timeout_seconds: Option<u32>,
        ) -> Question<T> {
            let question = match context {
                Some(context) => question.context(context),
                None => question,
            };
            match timeout_seconds {
                Some(seconds) => question.timeout_seconds(seconds),
                None => question,
            }
        }
        match kind {
            "text" => {
                let question = more(Question::text(question), context, timeout_seconds);
                self.work(future, |session| async move { session.ask(question).await })
            }
            "yes_no" => {
                let question = more(Question::yes_no(question), context, timeout_seconds);
                self.work(future, |session| async move { session.ask(question).await })
            }
            "number" => {
                let question = more(Question::number(question), context, timeout_seconds);
                self.work(future, |session| async move { session.ask(question).await })
            }
            _ => {
                let question = (0_usize..)
                    .zip(choices)
                    .fold(Question::choice(question), |it, (at, label)| it.or(label, at));
                let question = more(question, context, timeout_seconds);
                self.work(future, |session| async move { session.ask(question).await })
            }
        }
    }

    fn complete(&self, future: Py<PyAny>, summary: String, ours: bool) -> PyResult<Task> {
        let summary = words(summary, ours);
        self.end(future, |session| async move { session.complete(summary).await })
    }

    fn cancel(&self, future: Py<PyAny>, why: String, ours: bool) -> PyResult<Task> {
        let why = words(why, ours);
        self.end(future, |session| async move { session.cancel(why).await })
    }

    fn fail(&self, future: Py<PyAny>, what: String, ours: bool) -> PyResult<Task> {
        let what = words(what, ours);
        self.end(future, |session| async move { session.fail(ErrorCategory::Unknown, what).await })
    }
}

/// What every request for consent may say.
struct Rest {
    arguments: String,
    risk: Option<RiskLevel>,
    timeout_seconds: Option<u32>,
}

impl Rest {
    fn on<K: Kind>(self, request: Confirmation<K>) -> Confirmation<K> {
        let mut request = request.arguments_json(self.arguments);
        if let Some(risk) = self.risk {
            request = request.risk(risk);
        }
        if let Some(seconds) = self.timeout_seconds {
            request = request.timeout_seconds(seconds);
        }
        request
    }
}

impl Session {
    fn ask_first<K: Kind + Send + 'static>(
        &self,
        future: Py<PyAny>,
        request: Confirmation<K>,
    ) -> PyResult<Task> {
        self.work(future, |session| async move {
            // What runs is Python's; what is parked here is the right to begin.
            let parked = session.park((), request).await?;
            let approval = parked.decision().await?;
            let by = approval.by().to_owned();
            let ((), call) = session.invoke(parked, approval).await?;
            Ok(Call::new(call, Some(by)))
        })
    }
}

/// A sentence of the package is English, whatever the session speaks, and labelled so.
fn words(sentence: String, ours: bool) -> Words {
    let words = Words::new(sentence);
    if ours { words.language("en") } else { words }
}

fn word<T, E>(word: Result<T, E>, name: &str) -> PyResult<T> {
    word.map_err(|_| {
        PyValueError::new_err(format!("{name} has a value that the protocol does not know"))
    })
}

/// Why a session is over that its agent did not end.
async fn how_it_ended(session: &aaep_agent::Session) -> CallError {
    if session.was_stopped_by_user().await { CallError::Stopped } else { Error::SessionOver.into() }
}
