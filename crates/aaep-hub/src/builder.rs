//! How a hub is started: no way leads around the checks.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::{Config, Development};
use crate::start::Prepared;
use crate::{Fault, Hub, Running};

/// A hub that is about to be started: see [`Hub::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "no hub runs before `start`"]
pub struct Builder {
    config: Config,
    trace_parent: Option<fn(&tracing::Span, &http::HeaderMap)>,
    config_file: Option<PathBuf>,
}

impl Hub {
    /// A hub to start in this process. Without further settings it is the one that `aaep hub` starts
    /// without a configuration file, and keeps nothing.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), aaep_hub::Fault> {
    /// # let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    /// let hub = aaep_hub::Hub::builder().listen([address]).unix_socket(false).start().await?;
    /// println!("Listening on {}", hub.url(hub.addresses()[0]));
    /// hub.stop().await
    /// # }
    /// ```
    pub fn builder() -> Builder {
        let config = Config { ephemeral: true, ..Config::default() };
        Builder { config, trace_parent: None, config_file: None }
    }
}

impl Builder {
    /// Everything that a configuration file can say; replaces what was set before.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Where to listen, instead of `127.0.0.1:8707`. Port 0 is any free one.
    pub fn listen(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.config.listen = addresses.into_iter().collect();
        self
    }

    /// Keeps the journal here, and goes on from it.
    pub fn data(mut self, directory: impl Into<PathBuf>) -> Self {
        self.config.data = Some(directory.into());
        self.config.ephemeral = false;
        self
    }

    /// Whether to listen on a Unix socket too; it does unless told otherwise.
    pub fn unix_socket(mut self, enabled: bool) -> Self {
        self.config.unix_socket.enabled = enabled;
        self
    }

    /// For trying out: answers from this machine count without credentials, so any local process can
    /// approve anything.
    pub fn development_replies(mut self) -> Self {
        self.config.development = Development { local_replies: true, ..Development::default() };
        self
    }

    /// Where the configuration was read from. Administrators may then shut principals out over HTTP: it
    /// is written there, and [`Running::asked_to_reload`] tells that it is to be read again.
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.config_file = Some(file.into());
        self
    }

    /// How a request's span is told from which trace it comes (`traceparent`), by the headers of the
    /// request. It is asked about those who were let in.
    pub fn trace_parent(mut self, tell: fn(&tracing::Span, &http::HeaderMap)) -> Self {
        self.trace_parent = Some(tell);
        self
    }

    /// Looks at everything and opens what must be open, or says why the hub cannot start; needs no
    /// runtime. [`Prepared::start`] opens the doors.
    pub fn prepare(self) -> Result<Prepared, Fault> {
        let prepared = Prepared::new(self.config.clone())?;
        let Self { trace_parent, config_file, .. } = self;
        Ok(Prepared { trace_parent, config_file, ..prepared })
    }

    /// Looks at everything, opens every door and begins to work. A hub that would not be safe does
    /// not start, and says what to do. To be called inside a Tokio runtime.
    pub async fn start(self) -> Result<Running, Fault> {
        self.prepare()?.start().await
    }
}
