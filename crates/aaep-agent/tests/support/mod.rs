//! A hub to test against, in this process or as the real program, and a person who listens to it.
#![allow(dead_code, unused_imports)] // each test file uses its part

mod flaky;
mod person;
mod program;

use std::net::SocketAddr;

use aaep_agent::{Agent, Producer};
use aaep_hub::Running;
use aaep_hub::config::{Config, Development, UnixSocket};

pub use flaky::Flaky;
pub use person::{Person, Reaction};
pub use program::{Program, built, built_example, built_library};

/// Longer than anything takes, also on a busy machine.
pub const LONG: std::time::Duration = std::time::Duration::from_secs(120);

/// Where the hub is.
#[allow(clippy::large_enum_variant)] // one for each test
pub enum Hub {
    Embedded(Running),
    Program(Program),
}

/// The same test, with the hub in this process and with the real program.
#[macro_export]
macro_rules! in_both_worlds {
    ($(#[test] async fn $name:ident($hub:ident: &Hub) $body:block)*) => {$(
        mod $name {
            use super::*;

            async fn scene($hub: &Hub) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn embedded() {
                let hub = Hub::embedded().await;
                tokio::time::timeout(LONG, scene(&hub)).await.expect("it takes too long");
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn program() {
                let hub = Hub::program().await;
                tokio::time::timeout(LONG, scene(&hub)).await.expect("it takes too long");
            }
        }
    )*};
}

/// A configuration for trying out: everybody on this machine may answer.
pub fn config() -> Config {
    Config {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        ephemeral: true,
        development: Development { local_replies: true, ..Development::default() },
        unix_socket: UnixSocket { enabled: false, path: None },
        ..Config::default()
    }
}

impl Hub {
    pub async fn embedded() -> Self {
        Self::embedded_with(config()).await
    }

    pub async fn embedded_with(config: Config) -> Self {
        let started = aaep_hub::Hub::builder().config(config).start().await;
        Self::Embedded(started.unwrap())
    }

    pub async fn program() -> Self {
        Self::Program(Program::start(&[]).await)
    }

    pub fn url(&self) -> String {
        match self {
            Self::Embedded(running) => running.url(running.addresses()[0]),
            Self::Program(program) => program.url.clone(),
        }
    }

    /// An agent of this hub.
    pub fn agent(&self) -> Agent {
        let producer = Producer::new("test-agent").name("Test agent").version("1.0.0");
        match self {
            Self::Embedded(running) => Agent::embed(running.hub(), producer).unwrap(),
            Self::Program(program) => Agent::connect(program.url.as_str(), producer).unwrap(),
        }
    }

    /// Somebody who hears everything, and answers confirmations and questions like this.
    pub async fn person(
        &self,
        answer: impl FnMut(&serde_json::Value) -> Reaction + Send + 'static,
    ) -> Person {
        Person::listens_to(&self.url(), answer).await
    }
}
