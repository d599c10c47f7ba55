//! Those who may come in. Every test takes a user of its own, so that tests can share a hub without
//! hearing each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aaep_hub::access;
use aaep_transport::client::{HttpClient, Options, SessionSecret, Token};

use super::process::Hub;
use super::{Agent, Ear};

/// Users that a hub knows; more than any one hub meets.
pub const USERS: usize = 64;

/// What each user has: names of principals, and their roles.
pub const DEVICES: [(&str, &str); 4] = [
    ("reader", "accessibility_consumer"),
    ("phone", "accessibility_consumer"),
    ("agent", "agent"),
    ("helper", "agent"),
];

/// Those who hear everything; they belong to nobody who has sessions.
pub const OTHERS: [(&str, &str); 2] = [("auditor", "auditor"), ("admin", "admin")];

/// A token that says whose it is; real ones are random.
pub fn token(name: &str) -> String {
    format!("aaep_{name:x<43}")
}

/// The principals of every test hub, as TOML.
pub fn principals() -> String {
    let mut toml = String::new();
    let mut add = |name: &str, role: &str, user: &str| {
        let hash = access::Token::parse(&token(name)).unwrap().hash().to_hex();
        toml += &format!(
            "[[principals]]\nname = \"{name}\"\nrole = \"{role}\"\nuser = \"{user}\"\ntoken_sha256 = \"{hash}\"\n"
        );
    };
    for user in 0..USERS {
        for (device, role) in DEVICES {
            add(&format!("{device}{user}"), role, &format!("user{user}"));
        }
    }
    for (name, role) in OTHERS {
        add(name, role, "office");
    }
    toml
}

/// One user of a hub, with devices and agents.
#[derive(Clone)]
pub struct Person {
    pub hub: Arc<Hub>,
    number: usize,
}

impl Person {
    /// Somebody whom no other test knows.
    pub fn new(hub: &Arc<Hub>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self { hub: hub.clone(), number: NEXT.fetch_add(1, Ordering::Relaxed) % USERS }
    }

    /// The same person at another hub, or after a restart.
    pub fn at(&self, hub: &Arc<Hub>) -> Self {
        Self { hub: hub.clone(), number: self.number }
    }

    /// The name of one of their principals.
    pub fn name(&self, device: &str) -> String {
        format!("{device}{}", self.number)
    }

    /// Its token.
    pub fn token(&self, device: &str) -> String {
        token(&self.name(device))
    }

    /// A client that shows it.
    pub fn client(&self, device: &str) -> HttpClient {
        client(&self.hub.base(), Some(&self.token(device)))
    }

    /// Their agent.
    pub fn agent(&self) -> Agent {
        Agent::new(self.client("agent"), &self.name("agent"))
    }

    /// Another agent of theirs.
    pub fn helper(&self) -> Agent {
        Agent::new(self.client("helper"), &self.name("helper"))
    }

    /// A subscription of their reader over HTTP that can answer everything.
    pub async fn reader(&self) -> Ear {
        Ear::subscribe(self.client("reader")).await
    }

    /// The same of their phone.
    pub async fn phone(&self) -> Ear {
        Ear::subscribe(self.client("phone")).await
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.hub.show_if_failed();
    }
}

/// A client for this base.
pub fn client(base: &str, token: Option<&str>) -> HttpClient {
    HttpClient::new(base, options(token)).unwrap()
}

/// How test clients connect. Without a token, agents have a session secret of their own.
pub fn options(token: Option<&str>) -> Options {
    let session_secret = token.is_none().then(|| SessionSecret::generate().unwrap());
    let token = token.map(|token| Token::parse(token).unwrap());
    Options { token, session_secret, ..Options::default() }
}
