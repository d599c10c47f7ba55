//! One connection that is made when it is needed, and made again after it was lost.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Error, Row};

use super::tls::Tls;
use crate::log::remote::{Asked, refused_within_a_runtime};
use crate::log::storage::Unavailable;

pub(super) const TEXT: Type = Type::TEXT;
pub(super) const NUMBER: Type = Type::INT8;
pub(super) const BYTES: Type = Type::BYTEA;

struct Live {
    client: Client,
    /// The server warned of something since this was last looked at.
    warned: Arc<AtomicBool>,
}

pub(super) struct Connection {
    config: Config,
    tls: Tls,
    limit: Duration,
    live: Option<Live>,
    runtime: Option<Runtime>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.live = None;
        // This may be dropped in another runtime, which must not be kept waiting.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("live", &self.live.is_some()).finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(config: Config, tls: Tls, limit: Duration) -> Self {
        Self { config, tls, limit, live: None, runtime: None }
    }

    /// Asks one statement, which is a transaction of its own.
    pub(super) fn query(
        &mut self,
        statement: &str,
        with: &[(&(dyn ToSql + Sync), Type)],
    ) -> Asked<Vec<Row>> {
        self.ask(async |client| client.query_typed(statement, with).await)
    }

    /// Several statements without values.
    pub(super) fn batch(&mut self, statements: &str) -> Asked<()> {
        self.ask(async |client| client.batch_execute(statements).await)
    }

    /// Whether the server warned during the last question, as it does when a wait for a standby was
    /// interrupted.
    pub(super) fn warned(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.warned.load(Ordering::Acquire))
    }

    fn ask<T>(&mut self, act: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> Asked<T> {
        if let Some(why) = refused_within_a_runtime() {
            return Asked::Refused(why);
        }
        if let Err(why) = self.connect() {
            return Asked::Refused(why);
        }
        let (Some(runtime), Some(live)) = (&self.runtime, &self.live) else {
            return Asked::Refused(Unavailable::Away("there is no connection".into()));
        };
        live.warned.store(false, Ordering::Release);
        let answer =
            runtime.block_on(async { tokio::time::timeout(self.limit, act(&live.client)).await });
        match answer {
            Ok(Ok(answer)) => Asked::Answer(answer),
            Ok(Err(error)) => match refusal(&error) {
                Some(why) => Asked::Refused(why),
                None => self.lost(),
            },
            Err(_) => self.lost(),
        }
    }

    fn lost<T>(&mut self) -> Asked<T> {
        self.live = None;
        Asked::Lost
    }

    fn connect(&mut self) -> Result<(), Unavailable> {
        if self.live.as_ref().is_some_and(|live| !live.client.is_closed()) {
            return Ok(());
        }
        self.live = None;
        let away = |why: String| Unavailable::Away(why);
        if self.runtime.is_none() {
            let runtime = Builder::new_current_thread().enable_all().build();
            self.runtime = Some(runtime.map_err(|why| away(why.to_string()))?);
        }
        let Some(runtime) = &self.runtime else { return Err(away("no runtime".into())) };
        let connecting = self.config.connect(self.tls.clone());
        let connected =
            runtime.block_on(async { tokio::time::timeout(self.limit, connecting).await });
        let (client, mut connection) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(away(said(&error))),
            Err(_) => return Err(away("connecting took too long".into())),
        };
        let warned = Arc::new(AtomicBool::new(false));
        let flag = warned.clone();
        runtime.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                // "Already exists, skipping" is a notice and no warning.
                if matches!(message, AsyncMessage::Notice(notice) if notice.severity() == "WARNING")
                {
                    flag.store(true, Ordering::Release);
                }
            }
        });
        self.live = Some(Live { client, warned });
        Ok(())
    }
}

/// What the server says when it did nothing. `None` where it may have done it all the same.
fn refusal(error: &Error) -> Option<Unavailable> {
    let database = error.as_db_error()?;
    let code = database.code();
    if *code == SqlState::DISK_FULL {
        return Some(Unavailable::Full);
    }
    // The server, or the connection, ended under the statement; or the server is out of order.
    let class = code.code().get(..2).unwrap_or_default();
    if matches!(class, "08" | "57" | "58" | "XX") || database.severity() != "ERROR" {
        return None;
    }
    Some(Unavailable::Away(said(error)))
}

/// The error in words, with what the server said.
fn said(error: &Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(database), _) => {
            format!("the server says {}: {}", database.code().code(), database.message())
        }
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}
