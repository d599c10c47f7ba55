//! A real hub to listen to, over every transport.
#![allow(dead_code)] // each test file uses its part

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep_agent::{Agent, Confirmation, Irreversible, Producer};
use aaep_hub::Running;
use aaep_hub::config::{Config, Development, HostName, UnixSocket};
use aaep_subscriber::Notification;
use aaep_subscriber::client::{Client, Hub, Notifications};
use aaep_subscriber::inbox::Settings;
use tempfile::TempDir;

/// Longer than anything takes, also on a busy machine.
pub const LONG: Duration = Duration::from_secs(120);

/// A hub that keeps everything, so that it can come back.
pub struct House {
    running: Option<Running>,
    config: Config,
    home: TempDir,
}

impl House {
    pub async fn start() -> Self {
        Self::start_with(true).await
    }

    /// `replies`: whether answers without credentials count.
    pub async fn start_with(replies: bool) -> Self {
        Self::start_as(replies, Vec::new()).await
    }

    /// One that is also known by this name.
    pub async fn start_known_as(host: HostName) -> Self {
        Self::start_as(true, vec![host]).await
    }

    async fn start_as(replies: bool, allowed_hosts: Vec<HostName>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let socket = home.path().join("run").join("hub.sock");
        let config = Config {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            data: Some(home.path().join("data")),
            state: Some(home.path().join("state")),
            allowed_hosts,
            development: Development { local_replies: replies, ..Development::default() },
            unix_socket: UnixSocket { enabled: true, path: Some(socket) },
            ..Config::default()
        };
        let mut house = Self { running: None, config, home };
        house.comes_back().await;
        house
    }

    /// The hub stops; everybody loses it.
    pub async fn goes(&mut self) {
        self.running.take().unwrap().stop().await.unwrap();
    }

    /// It starts again, at the same address.
    pub async fn comes_back(&mut self) {
        let builder = aaep_hub::Hub::builder().config(self.config.clone());
        let running = builder.start().await.unwrap();
        self.config.listen = running.addresses().to_vec();
        self.running = Some(running);
    }

    pub fn address(&self) -> SocketAddr {
        self.config.listen[0]
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.config.listen[0])
    }

    pub fn socket(&self) -> PathBuf {
        self.home.path().join("run").join("hub.sock")
    }

    /// The ways to it: HTTP, WebSocket, Unix socket.
    pub fn ways(&self) -> Vec<Hub> {
        let ws = format!("ws://{}", self.config.listen[0]);
        let mut ways = vec![Hub::parse(&self.url()).unwrap(), Hub::parse(&ws).unwrap()];
        if cfg!(unix) {
            ways.push(self.way_by_socket(&self.socket()));
        }
        ways
    }

    fn way_by_socket(&self, path: &Path) -> Hub {
        Hub::parse(&format!("unix:{}", path.display())).unwrap()
    }

    /// An agent that finds the hub again when it was away.
    pub fn agent(&self) -> Agent {
        let producer = Producer::new("test-agent").name("Test agent");
        Agent::connect(format!("{}/aaep/v1", self.url()).as_str(), producer).unwrap()
    }
}

pub fn transfer() -> Confirmation<Irreversible> {
    Confirmation::irreversible("transfer", "Transfer $500.", "It cannot be taken back.")
}

/// Somebody who listens, and remembers what was told.
pub struct Listener {
    pub client: Client,
    notifications: Notifications,
    pub told: Vec<Notification>,
}

impl Listener {
    /// Listens by this way, and is connected.
    pub async fn at(hub: Hub) -> Self {
        Self::with(vec![hub], Settings::default()).await
    }

    pub async fn with(hubs: Vec<Hub>, settings: Settings) -> Self {
        let count = hubs.len();
        let (client, notifications) = Client::connect(hubs, settings);
        let mut listener = Self { client, notifications, told: Vec::new() };
        for _ in 0..count {
            listener.until(|told| matches!(told, Notification::Connected { .. })).await;
        }
        listener
    }

    /// Hears until this happens.
    pub async fn until(&mut self, wanted: impl Fn(&Notification) -> bool) -> Notification {
        let waiting = async {
            loop {
                let told = self.notifications.next().await.expect("the client is open");
                self.told.push(told.clone());
                if wanted(&told) {
                    return told;
                }
            }
        };
        match tokio::time::timeout(LONG, waiting).await {
            Ok(told) => told,
            Err(_) => panic!("it did not happen; this did: {:#?}", self.told),
        }
    }

    pub async fn until_event(&mut self, name: &str) {
        let name = format!("aaep:agent.{name}");
        let is = |told: &Notification| matches!(told, Notification::Event { json, .. } if json.contains(&name));
        self.until(is).await;
    }

    pub async fn asked(&mut self) -> std::sync::Arc<aaep_subscriber::Request> {
        match self.until(|told| matches!(told, Notification::Asked(_))).await {
            Notification::Asked(request) => request,
            _ => unreachable!(),
        }
    }

    pub async fn settled(&mut self) -> aaep_subscriber::RequestOutcome {
        match self.until(|told| matches!(told, Notification::Settled { .. })).await {
            Notification::Settled { outcome, .. } => outcome,
            _ => unreachable!(),
        }
    }

    /// How often something was asked.
    pub fn times_asked(&self) -> usize {
        self.told.iter().filter(|told| matches!(told, Notification::Asked(_))).count()
    }

    /// Closes, and takes what was left.
    pub async fn close(mut self) -> Vec<Notification> {
        self.client.close().await;
        while let Some(told) = self.notifications.next().await {
            self.told.push(told);
        }
        self.told
    }
}
