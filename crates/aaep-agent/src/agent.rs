//! The agent: a connection to a hub, and what goes on behind its author's back.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aaep_transport::client::SessionSecret;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::{Error, HubRefusal, Source};
use crate::inputs::Inputs;
use crate::producer::Producer;
use crate::remote::Remote;
use crate::session::Opening;
use crate::wire::{Lost, Wire};
use crate::words::Words;

/// How long a call is tried again before it counts as failed, unless the author says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long a hub is waited for that has never answered: one that is started together with its agents
/// is there by then.
pub const NOBODY_YET: Duration = Duration::from_secs(2);

/// The pause before a call is tried again: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// An agent: speaks with one hub, as one producer. Cheap to clone.
#[derive(Clone)]
pub struct Agent(pub(crate) Arc<Inner>);

impl Agent {
    /// An agent of this user's hub on this machine: see [`Remote::local`].
    pub fn local(producer: impl Into<Producer>) -> Result<Self, Error> {
        Self::connect(Remote::local(), producer)
    }

    /// An agent of a hub somewhere else: `Agent::connect("https://hub.example", "my-agent")`.
    ///
    /// Nothing is sent before the first session is opened, so the hub may start later. If nobody has
    /// ever answered there by then, that is an error after [`NOBODY_YET`], unless another
    /// [patience](Self::patience) is set. To be called inside a Tokio runtime.
    pub fn connect(hub: impl Into<Remote>, producer: impl Into<Producer>) -> Result<Self, Error> {
        let remote = hub.into();
        // The hub knows an agent without a token by this.
        let secret = match remote.has_token() {
            true => None,
            false => Some(SessionSecret::generate().map_err(Error::unavailable)?),
        };
        let client = remote.client()?;
        Self::over(Wire::Remote(Box::new(client)), secret, &producer.into())
    }

    /// An agent of a hub in this process, on behalf of the user `local`: anyone who listens on this
    /// machine hears it.
    #[cfg(feature = "embedded")]
    pub fn embed(hub: &aaep_hub::Hub, producer: impl Into<Producer>) -> Result<Self, Error> {
        Self::embed_for(hub, producer, aaep_hub::access::LOCAL_USER)
    }

    /// An agent of a hub in this process, on behalf of this user.
    #[cfg(feature = "embedded")]
    pub fn embed_for(
        hub: &aaep_hub::Hub,
        producer: impl Into<Producer>,
        user: &str,
    ) -> Result<Self, Error> {
        use aaep_engine::{Principal, Role};
        let producer = producer.into();
        let principal = Principal::new(producer.agent_id(), Role::Agent, user);
        Self::over(Wire::Embedded(hub.agent(&principal)), None, &producer)
    }

    fn over(wire: Wire, secret: Option<SessionSecret>, producer: &Producer) -> Result<Self, Error> {
        let no_runtime = |_| Error::unavailable("there is no Tokio runtime here");
        let mut prefix = [0; 16];
        getrandom::fill(&mut prefix).map_err(Error::unavailable)?;
        Ok(Self(Arc::new(Inner {
            wire,
            secret,
            producer: producer.json(),
            patience_millis: AtomicU64::new(millis(PATIENCE)),
            runtime: Handle::try_current().map_err(no_runtime)?,
            tasks: Mutex::new(JoinSet::new()),
            key_prefix: format!("{:032x}", u128::from_be_bytes(prefix)),
            next_key: AtomicU64::new(0),
            was_reached: AtomicBool::new(false),
        })))
    }

    /// How long each call is tried again while the hub cannot be reached or cannot keep anything.
    /// Waiting for people is not bounded by this.
    pub fn patience(self, patience: Duration) -> Self {
        self.0.patience_millis.store(millis(patience), Ordering::Relaxed);
        self
    }

    /// A session to open: one for each thing that the user asked for (T34). The summary says what it
    /// is about.
    pub fn session(&self, summary: impl Into<Words>) -> Opening {
        Opening::new(self.0.clone(), summary.into())
    }

    /// What people say to this agent from now on. One reader at a time.
    pub fn inputs(&self) -> Inputs {
        Inputs::new(self.0.clone())
    }

    /// Waits until everything that dropped things had to say is said, or cannot be said in time. To
    /// be called before the process ends; what is left then ends with its lease.
    pub async fn close(&self) {
        loop {
            let mut tasks = std::mem::take(&mut *self.0.tasks());
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("producer", &self.0.producer).finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) wire: Wire,
    /// What sessions are opened with where there is no token.
    pub(crate) secret: Option<SessionSecret>,
    pub(crate) producer: String,
    patience_millis: AtomicU64,
    pub(crate) runtime: Handle,
    /// What dropped things still have to say.
    tasks: Mutex<JoinSet<()>>,
    key_prefix: String,
    next_key: AtomicU64,
    /// Whether the hub has ever answered.
    was_reached: AtomicBool,
}

impl Inner {
    /// A key that no other call of anybody has.
    pub(crate) fn new_key(&self) -> String {
        format!("{}-{}", self.key_prefix, self.next_key.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_millis.load(Ordering::Relaxed))
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something behind the author's back; [`Agent::close`] waits for it.
    pub(crate) fn behind(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.runtime);
    }

    /// When a call that is made now counts as failed.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.patience()
    }

    // enforces: I11
    /// Changes something at the hub, once: it is sent again, with the same key, until there is an
    /// answer or the deadline has come.
    pub(crate) async fn change<T, F>(
        &self,
        sent: &AtomicBool,
        deadline: Instant,
        call: impl Fn() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Lost>>,
    {
        self.reach(Some(deadline), call).await.map_err(|why| match why {
            NoAnswer::Refused(refused) => Error::Refused(refused),
            // Doubt is only where the hub may have been told to change something.
            NoAnswer::Lost(why) if sent.load(Ordering::Relaxed) => Error::InDoubt(why),
            NoAnswer::Lost(why) => Error::Unavailable(why),
        })
    }

    /// Asks the hub for something. A wait that it grants is not its silence: time runs from the
    /// first failure on.
    pub(crate) async fn look<T, F>(&self, call: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Lost>>,
    {
        self.reach(None, call).await.map_err(|why| match why {
            NoAnswer::Refused(refused) => Error::Refused(refused),
            NoAnswer::Lost(why) => Error::Unavailable(why),
        })
    }

    /// Whether this says that nobody listens where the hub should be, and nobody ever did. With a
    /// patience of its own, an agent waits that long all the same.
    fn has_no_hub(&self, why: &Source) -> bool {
        use aaep_transport::client::ClientError;
        !self.was_reached.load(Ordering::Relaxed)
            && self.patience() == PATIENCE
            && matches!(why.downcast_ref(), Some(ClientError::Unreachable(_)))
    }

    /// The hub's answer, whatever it is, once it gives one.
    async fn reach<T, F>(
        &self,
        mut deadline: Option<Instant>,
        call: impl Fn() -> F,
    ) -> Result<T, NoAnswer>
    where
        F: Future<Output = Result<T, Lost>>,
    {
        let (mut pause, begun) = (PAUSES.0, Instant::now());
        // An agent that resumes earlier work knows that there was a hub.
        let begins = deadline.is_some();
        loop {
            let until = deadline.unwrap_or_else(|| self.deadline() + LONGEST_WAIT);
            let why: Source = match timeout_at(until, call()).await {
                Ok(Ok(answer)) => {
                    self.was_reached.store(true, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(Err(Lost::Refused(refused))) => {
                    self.was_reached.store(true, Ordering::Relaxed);
                    return Err(NoAnswer::Refused(refused));
                }
                Ok(Err(Lost::Never(why))) => return Err(NoAnswer::Lost(why)),
                Ok(Err(Lost::Later(why))) => why,
                Err(_) => {
                    Box::<dyn std::error::Error + Send + Sync>::from("no answer in time").into()
                }
            };
            if begins && self.has_no_hub(&why) && begun.elapsed() + pause >= NOBODY_YET {
                let text = format!(
                    "{why}. Nobody has answered there yet: start a hub with `aaep hub`, or name another address."
                );
                return Err(NoAnswer::Lost(
                    Box::<dyn std::error::Error + Send + Sync>::from(text).into(),
                ));
            }
            if Instant::now() + pause >= *deadline.get_or_insert_with(|| self.deadline()) {
                return Err(NoAnswer::Lost(why));
            }
            tracing::debug!(%why, "the hub is tried again");
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

/// Why there is no answer.
enum NoAnswer {
    Refused(HubRefusal),
    Lost(Source),
}

/// The longest wait that is asked of the hub.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30);

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Does something when it is dropped, unless it was disarmed: for callers who may go away while
/// they wait.
pub(crate) struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    pub(crate) fn new(work: F) -> Self {
        Self(Some(work))
    }

    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}
