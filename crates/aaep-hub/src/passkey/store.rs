//! The passkeys of everybody, and what is under way with them.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aaep_engine::Principal;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::key::ALGORITHMS;
use super::{
    Assertion, Base64, Challenge, NONCE_BYTES, Nonce, Passkey, PasskeyError, Registration,
    RelyingParty, SignedYes,
};
use crate::access::fill;
use crate::{Fault, files};

/// The file in the state directory.
const FILE: &str = "passkeys.json";

/// The longest file that is read.
const FILE_BYTES: u64 = 16 << 20;

/// Passkeys of one person.
const PER_USER: usize = 16;

/// Challenges and answers that wait, of one principal and of all; the oldest give way.
const OPEN_PER_PRINCIPAL: usize = 8;
const OPEN: usize = 1024;

/// How long a challenge waits for its answer, and a verified answer for its reply.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// The longest name of a passkey, in bytes.
const NAME_BYTES: usize = 128;

/// The passkeys of everybody whom the hub knows.
pub(crate) struct Passkeys {
    file: Option<PathBuf>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    users: BTreeMap<String, Vec<Passkey>>,
    waiting: VecDeque<Waiting>,
}

/// A challenge without its answer, or an answer without its reply.
struct Waiting {
    principal: Principal,
    until: Instant,
    what: What,
}

enum What {
    Registration {
        nonce: Nonce,
        party: RelyingParty,
    },
    Answer {
        token: TokenHash,
        nonce: Nonce,
        party: RelyingParty,
        request_id: String,
        digest: String,
    },
    Verified {
        token: TokenHash,
        yes: Arc<[u8]>,
    },
}

/// What is kept of a reply token.
type TokenHash = [u8; 32];

/// What a page hands to `navigator.credentials.create`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreationOptions {
    challenge: Base64,
    domain: String,
    /// Names the person to their authenticator, and nobody else.
    user_id: Base64,
    algorithms: [i64; 3],
    /// Those that are there already.
    exclude: Vec<Base64>,
}

/// What a page hands to `navigator.credentials.get`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestOptions {
    challenge: Base64,
    domain: String,
    allow: Vec<Base64>,
}

impl Passkeys {
    /// Reads the passkeys of a state directory; without one they last as long as the hub.
    pub(crate) fn open(state: Option<&Path>) -> Result<Self, Fault> {
        let file = state.map(|state| state.join(FILE));
        let users = match &file {
            Some(file) if file.symlink_metadata().is_ok() => {
                let bytes = files::read_private(file, FILE_BYTES)?;
                serde_json::from_slice(&bytes).map_err(|error| {
                    let what = format!("It cannot be read as a list of passkeys: {error}.");
                    Fault::file(
                        file,
                        what,
                        "Put a copy in its place, or remove it and register the passkeys again.",
                    )
                })?
            }
            _ => BTreeMap::new(),
        };
        Ok(Self { file, inner: Mutex::new(Inner { users, ..Inner::default() }) })
    }

    /// Whether anybody has a passkey.
    pub(crate) fn has_any(&self) -> bool {
        !self.lock().users.is_empty()
    }

    /// Whether somebody has a passkey.
    pub(crate) fn has(&self, user: &str) -> bool {
        self.lock().users.get(user).is_some_and(|passkeys| !passkeys.is_empty())
    }

    /// Everything that somebody registered.
    pub(crate) fn list(&self, user: &str) -> Vec<Passkey> {
        self.lock().users.get(user).cloned().unwrap_or_default()
    }

    /// Begins a registration.
    pub(crate) fn begin_registration(
        &self,
        principal: &Principal,
        party: RelyingParty,
    ) -> Result<CreationOptions, Fault> {
        let nonce = fresh_nonce()?;
        let mut inner = self.lock();
        let options = CreationOptions {
            challenge: Challenge::for_registration(&nonce).to_base64(),
            domain: party.id.clone(),
            user_id: Base64(Sha256::digest(principal.user.as_bytes()).to_vec()),
            algorithms: ALGORITHMS,
            exclude: inner.ids(&principal.user, &party.id),
        };
        inner.wait(principal, What::Registration { nonce, party });
        Ok(options)
    }

    /// Takes a new passkey. Writes to disk.
    pub(crate) fn register(
        &self,
        principal: &Principal,
        answer: &Registration,
        name: &str,
    ) -> Result<Result<Passkey, PasskeyError>, Fault> {
        let mut inner = self.lock();
        let found = inner.take(principal, |what| match what {
            What::Registration { nonce, party } => Some((nonce.clone(), party.clone())),
            _ => None,
        });
        let Some((nonce, party)) = found else { return Ok(Err(PasskeyError::NotAsked)) };
        let name = &name[..name.floor_char_boundary(NAME_BYTES)];
        let challenge = Challenge::for_registration(&nonce);
        let passkey = match answer.verify(&challenge, &party, name) {
            Ok(passkey) => passkey,
            Err(error) => return Ok(Err(error)),
        };
        // An id belongs to one person, so that nobody can answer with another's.
        if inner.users.values().flatten().any(|known| known.id == passkey.id) {
            return Ok(Err(PasskeyError::OtherCredential));
        }
        let mut users = inner.users.clone();
        let own = users.entry(principal.user.to_string()).or_default();
        if own.len() >= PER_USER {
            return Ok(Err(PasskeyError::TooMany));
        }
        own.push(passkey.clone());
        self.write(&users)?;
        inner.users = users;
        Ok(Ok(passkey))
    }

    /// Removes a passkey, and gives it if it was there. Writes to disk.
    pub(crate) fn remove(&self, user: &str, id: &Base64) -> Result<Option<Passkey>, Fault> {
        let mut inner = self.lock();
        let mut users = inner.users.clone();
        let Some(own) = users.get_mut(user) else { return Ok(None) };
        let Some(at) = own.iter().position(|passkey| passkey.id == *id) else { return Ok(None) };
        let removed = own.remove(at);
        if own.is_empty() {
            users.remove(user);
        }
        self.write(&users)?;
        inner.users = users;
        Ok(Some(removed))
    }

    /// Removes every passkey of a user, and gives them. Writes to disk.
    pub(crate) fn remove_all(&self, user: &str) -> Result<Vec<Passkey>, Fault> {
        let mut inner = self.lock();
        let mut users = inner.users.clone();
        let Some(removed) = users.remove(user) else { return Ok(Vec::new()) };
        self.write(&users)?;
        inner.users = users;
        Ok(removed)
    }

    /// Asks for a signature over one request; `None` if this person has no passkey for this domain.
    pub(crate) fn begin_answer(
        &self,
        principal: &Principal,
        party: RelyingParty,
        token: &str,
        request_id: &str,
        digest: &str,
    ) -> Result<Option<RequestOptions>, Fault> {
        let nonce = fresh_nonce()?;
        let mut inner = self.lock();
        let allow = inner.ids(&principal.user, &party.id);
        if allow.is_empty() {
            return Ok(None);
        }
        let challenge = Challenge::for_action(&nonce, request_id, digest).to_base64();
        let domain = party.id.clone();
        let token = hash_of(token);
        inner.wait(
            principal,
            What::Answer {
                token,
                nonce,
                party,
                request_id: request_id.into(),
                digest: digest.into(),
            },
        );
        Ok(Some(RequestOptions { challenge, domain, allow }))
    }

    /// Verifies a signature, and keeps it for the reply that follows. Writes to disk.
    pub(crate) fn answer(
        &self,
        principal: &Principal,
        token: &str,
        assertion: Assertion,
    ) -> Result<Result<(), PasskeyError>, Fault> {
        let token = hash_of(token);
        let mut inner = self.lock();
        let found = inner.take(principal, |what| match what {
            What::Answer { token: asked, nonce, party, request_id, digest } if *asked == token => {
                Some((nonce.clone(), party.clone(), request_id.clone(), digest.clone()))
            }
            _ => None,
        });
        let Some((nonce, party, request_id, digest)) = found else {
            return Ok(Err(PasskeyError::NotAsked));
        };
        let mut users = inner.users.clone();
        let own = users.get_mut(&*principal.user).into_iter().flatten();
        let Some(passkey) = own
            .into_iter()
            .find(|passkey| passkey.id == assertion.credential_id && passkey.domain == party.id)
        else {
            return Ok(Err(PasskeyError::OtherCredential));
        };
        let challenge = Challenge::for_action(&nonce, &request_id, &digest);
        match assertion.verify(passkey, &challenge, &party) {
            Ok(counter) => passkey.counter = counter,
            Err(error) => return Ok(Err(error)),
        }
        let yes = SignedYes {
            key: passkey.key.clone(),
            name: passkey.name.clone(),
            domain: party.id,
            // Verified: it is one of these.
            origin: assertion.origin().unwrap_or_default(),
            assertion,
            nonce,
        };
        let yes = serde_json::to_vec(&yes).map_err(|error| Fault::System {
            what: format!("A signature cannot be written down: {error}."),
        })?;
        if users != inner.users {
            self.write(&users)?;
            inner.users = users;
        }
        inner.wait(principal, What::Verified { token, yes: yes.into() });
        Ok(Ok(()))
    }

    /// The signature for a reply with this token, once.
    pub(crate) fn take(&self, principal: &Principal, token: &str) -> Option<Arc<[u8]>> {
        let token = hash_of(token);
        let mut inner = self.lock();
        inner.take(principal, |what| match what {
            What::Verified { token: verified, yes } if *verified == token => Some(yes.clone()),
            _ => None,
        })
    }

    fn write(&self, users: &BTreeMap<String, Vec<Passkey>>) -> Result<(), Fault> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut text = serde_json::to_string_pretty(users).map_err(|error| Fault::System {
            what: format!("The passkeys cannot be written down: {error}."),
        })?;
        text.push('\n');
        files::replace_private(file, text.as_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Changes are made on a copy, which takes the old one's place when all is done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn ids(&self, user: &str, domain: &str) -> Vec<Base64> {
        let own = self.users.get(user).into_iter().flatten();
        own.filter(|passkey| passkey.domain == domain).map(|passkey| passkey.id.clone()).collect()
    }

    // enforces: I22, I29
    fn wait(&mut self, principal: &Principal, what: What) {
        let now = Instant::now();
        self.waiting.retain(|waiting| now < waiting.until);
        let own = |waiting: &Waiting| waiting.principal == *principal;
        if self.waiting.iter().filter(|waiting| own(waiting)).count() >= OPEN_PER_PRINCIPAL
            && let Some(oldest) = self.waiting.iter().position(own)
        {
            self.waiting.remove(oldest);
        }
        if self.waiting.len() >= OPEN {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting {
            principal: principal.clone(),
            until: now + PATIENCE,
            what,
        });
    }

    /// Takes the newest thing of this principal that fits.
    fn take<T>(&mut self, principal: &Principal, fits: impl Fn(&What) -> Option<T>) -> Option<T> {
        let now = Instant::now();
        self.waiting.retain(|waiting| now < waiting.until);
        let at = self.waiting.iter().rposition(|waiting| {
            waiting.principal == *principal && fits(&waiting.what).is_some()
        })?;
        fits(&self.waiting.remove(at)?.what)
    }
}

fn hash_of(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

fn fresh_nonce() -> Result<Nonce, Fault> {
    let mut random = [0; NONCE_BYTES];
    fill(&mut random)?;
    Ok(Nonce::new(random))
}
