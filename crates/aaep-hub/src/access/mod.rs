//! Who is there: the one place where principals come from.
//!
//! A request shows a token or a certificate, or comes from this machine, or is denied. A client that
//! shows one is its principal or nobody: a wrong one never falls back to what the same peer could do
//! without one. A token is the hub's own, or one that an identity provider signed.
//!
//! # Without a token
//!
//! | comes by | as a listener | as an agent | its replies count |
//! |---|---|---|---|
//! | loopback | `local` | `local-agent` | only with `development.local_replies` (D4) |
//! | Unix socket, same user | `socket` | `socket-agent` | yes |
//! | anything else | denied | denied | |
//!
//! All four belong to the user `local`, so that a listener on this machine hears the agents on
//! this machine. There are two faces because one principal has one role, and an agent must never
//! answer its own questions: which of them it is depends on which interface is called ([`ApiSurface`]).
//! The two ways have different principals, since any user of the machine can reach loopback but only
//! the hub's own user the socket: what one began the other cannot touch.
//!
//! Agents without a token are not one principal either. Each shows a session secret, which it made
//! itself or was given when it opened its first session, and its principal is named after the
//! secret's hash: `local-agent:HASH`. So everything that is kept for each principal (sessions,
//! requests, idempotency keys, input, and who opened what in the journal) is kept for each secret, and
//! an id alone opens nothing.

pub(crate) mod certificate;
mod issuer;
mod secret;
mod token;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use aaep_engine::{Principal, Role};
use aaep_transport::peer::Peer;
use arc_swap::ArcSwap;
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::config::{Config, IssuerEntry, PrincipalEntry};
use crate::sign_in::{KnownProvider, Offers};
use crate::{Fault, clock, files};

use self::certificate::Clients;
use self::issuer::Issuer;

pub use certificate::Chain;

pub use secret::{SESSION_SECRET_HEADER, SESSION_SECRET_PREFIX, SessionSecret};
pub use token::{TOKEN_PREFIX, Token, TokenHash};
pub(crate) use token::{base64url, fill};

/// The user of everybody who comes from this machine without a token.
pub const LOCAL_USER: &str = "local";

/// Names that the configuration may not give, because they are those of principals without a token.
pub const BUILT_IN_NAMES: [&str; 4] = ["local", "local-agent", "socket", "socket-agent"];

/// Separates the name of agents without a token from the hash of a session secret.
const SECRET_MARK: char = ':';

/// Whether a name is that of a principal without a token, or could be taken for one.
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN_NAMES.contains(&account_of(name))
}

/// Under which name something is counted that all agents without a token share: the name without the
/// hash of the session secret.
pub(crate) fn account_of(name: &str) -> &str {
    match name.split_once(SECRET_MARK) {
        Some((account, _)) if BUILT_IN_NAMES.contains(&account) => account,
        _ => name,
    }
}

/// Whether this is the principal of one session secret.
pub(crate) fn has_secret(principal: &Principal) -> bool {
    account_of(&principal.name) != &*principal.name
}

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Straight from this machine, without a proxy between.
    Loopback,
    /// From anywhere else, or through a proxy.
    Network,
    /// Through the Unix socket, from a process of this user.
    Socket {
        /// Whose process it is, as the operating system says.
        uid: u32,
    },
}

/// Which interface is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiSurface {
    /// Subscriptions, events, replies.
    Listener,
    /// `agent/…`: sessions and requests.
    Agent,
}

/// Somebody who was recognised, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticatedPeer {
    /// Who it is.
    pub principal: Principal,
    proof: Proof,
    /// The other end of the connection that it came by.
    peer: Option<Peer>,
}

impl AuthenticatedPeer {
    /// The same, with the connection that it came by.
    pub(crate) fn over(mut self, peer: &Peer) -> Self {
        self.peer = Some(peer.clone());
        self
    }

    /// The other end of the connection that it came by, if it came by one.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    /// Whether anybody has proven who it is: a token, the socket, or this very process.
    pub(crate) fn is_proven(&self) -> bool {
        !matches!(self.proof, Proof::Loopback { .. })
    }

    /// Somebody in this very process.
    pub(crate) fn inside(principal: Principal) -> Self {
        Self { principal, proof: Proof::Inside, peer: None }
    }

    /// Whether this is an agent that showed neither a token nor a session secret: it owns nothing,
    /// and may only begin.
    pub(crate) fn lacks_secret(&self) -> bool {
        let unproven = matches!(self.proof, Proof::Loopback { .. } | Proof::Socket { .. });
        unproven && self.principal.role == Role::Agent && !has_secret(&self.principal)
    }

    // enforces: S4, S5
    /// The owner of this session secret, if a secret is what it needs.
    pub(crate) fn show_secret(&mut self, secret: &SessionSecret) {
        if self.lacks_secret() {
            let name = format!("{}{SECRET_MARK}{}", self.principal.name, secret.hash());
            self.principal.name = name.into();
        }
    }

    /// When it has to show another token, in milliseconds of the wall clock.
    pub(crate) fn expires(&self) -> Option<i64> {
        match self.proof {
            Proof::Signed { expires, .. } | Proof::Certificate { expires, .. } => Some(expires),
            _ => None,
        }
    }

    /// It has shown another token that is good until then.
    pub(crate) fn renew(&mut self, until: i64) {
        if let Proof::Signed { expires, .. } = &mut self.proof {
            *expires = (*expires).max(until);
        }
    }

    /// Until when a token is good that is shown for the first time: it counts for what was begun with
    /// an older one.
    pub(crate) fn renewed_until(&self) -> Option<i64> {
        match self.proof {
            Proof::Signed { expires, is_new: true, .. } => Some(expires),
            _ => None,
        }
    }

    /// From now on somebody who hears and never answers.
    pub(crate) fn listens_only(&mut self) {
        if self.principal.role == Role::AccessibilityConsumer {
            self.principal.role = Role::Listener;
        }
    }
}

/// By what somebody was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Proof {
    Token(TokenHash),
    /// A signed token, until when it is good (in milliseconds of the wall clock), and whether it was
    /// shown for the first time.
    Signed {
        issuer: Arc<IssuerEntry>,
        expires: i64,
        is_new: bool,
    },
    /// Certificates, and until when they are good (in milliseconds of the wall clock).
    Certificate {
        chain: Chain,
        expires: i64,
    },
    /// And whether its replies counted then.
    Loopback {
        replies: bool,
    },
    Socket {
        uid: u32,
    },
    /// A part of this process.
    Inside,
}

/// Why somebody is not let in. All look the same from outside, but for the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denied {
    /// No token, and not from this machine.
    NoToken,
    /// An unknown token.
    UnknownToken,
    /// A process of another user.
    OtherUser,
    /// Known, but not allowed to do this.
    Role,
}

impl Denied {
    /// The HTTP status: 401, or 403 where another token would help and this one never.
    pub fn status(self) -> http::StatusCode {
        match self {
            Self::Role => http::StatusCode::FORBIDDEN,
            _ => http::StatusCode::UNAUTHORIZED,
        }
    }

    /// For the log alone: the client is not told.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::NoToken => "no token, and not from this machine",
            Self::UnknownToken => "a token or certificate that is nobody's, or is over",
            Self::OtherUser => "a process of another user",
            Self::Role => "the role of this principal does not allow it",
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Role => "This principal's role does not allow that.",
            _ => "Send a valid token: Authorization: Bearer aaep_….",
        })
    }
}

impl std::error::Error for Denied {}

/// Everybody who may come in, as one configuration says.
#[derive(Debug)]
pub struct Access {
    tokens: Vec<(TokenHash, Principal)>,
    issuers: Vec<Arc<Issuer>>,
    clients: Option<Clients>,
    denied: BTreeSet<Arc<str>>,
    loopback: bool,
    local_replies: bool,
    own_uid: Option<u32>,
}

impl Access {
    /// Takes the principals of a configuration, and reads the files of their tokens.
    pub fn new(config: &Config) -> Result<Self, Fault> {
        let mut tokens: Vec<(TokenHash, Principal)> = Vec::new();
        for entry in &config.principals {
            if entry.certificate_sha256.is_some() || entry.certificate_name.is_some() {
                continue;
            }
            let hash = hash_of(entry)?;
            if tokens.iter().any(|(other, _)| *other == hash) {
                return Err(Fault::unsafely(
                    format!("The principal `{}` shares its token with another.", entry.name),
                    "Give each a token of its own.",
                ));
            }
            let principal = Principal::new(entry.name.as_str(), entry.role, entry.user.as_str());
            tokens.push((hash, principal));
        }
        let issuers = config.issuers.iter().map(|entry| Issuer::new(entry).map(Arc::new));
        Ok(Self {
            tokens,
            issuers: issuers.collect::<Result<_, Fault>>()?,
            clients: Clients::new(config)?,
            denied: config.denied.iter().map(|name| name.as_str().into()).collect(),
            loopback: config.loopback_without_credentials,
            local_replies: config.development.local_replies,
            own_uid: own_uid(),
        })
    }

    // enforces: S1, S4, C8
    /// Who sent a request; asked for every request anew.
    ///
    /// `bearer` is the token as it came, if any came.
    pub fn who(
        &self,
        bearer: Option<&str>,
        via: Via,
        surface: ApiSurface,
    ) -> Result<AuthenticatedPeer, Denied> {
        let built_in = |listener, agent, proof| {
            let principal = match surface {
                ApiSurface::Listener => {
                    Principal::new(listener, Role::AccessibilityConsumer, LOCAL_USER)
                }
                ApiSurface::Agent => Principal::new(agent, Role::Agent, LOCAL_USER),
            };
            Ok(AuthenticatedPeer { principal, proof, peer: None })
        };
        match (bearer, via) {
            (Some(text), _) => {
                let owner = self.owner(text).or_else(|| self.signed(text));
                owner.filter(|owner| !self.is_denied(owner)).ok_or(Denied::UnknownToken)
            }
            (None, Via::Loopback) if self.loopback => {
                let replies = self.local_replies;
                built_in("local", "local-agent", Proof::Loopback { replies })
            }
            (None, Via::Socket { uid }) if self.own_uid == Some(uid) => {
                built_in("socket", "socket-agent", Proof::Socket { uid })
            }
            (None, Via::Socket { .. }) => Err(Denied::OtherUser),
            (None, Via::Loopback | Via::Network) => Err(Denied::NoToken),
        }
    }

    /// The same for somebody who has shown certificates as well. A client that shows a token is judged
    /// by that alone; a peer that shows certificates is who they say, or nobody.
    pub fn who_with(
        &self,
        bearer: Option<&str>,
        chain: Option<&Chain>,
        via: Via,
        face: ApiSurface,
    ) -> Result<AuthenticatedPeer, Denied> {
        let (None, Some(chain)) = (bearer, chain) else { return self.who(bearer, via, face) };
        let now = clock::now().wall.as_millis();
        let found = self.clients.as_ref().and_then(|clients| clients.who(chain, now));
        let (principal, expires) = found.ok_or(Denied::UnknownToken)?;
        let proof = Proof::Certificate { chain: chain.clone(), expires };
        let known = AuthenticatedPeer { principal, proof, peer: None };
        if self.is_denied(&known) { Err(Denied::UnknownToken) } else { Ok(known) }
    }

    /// The principal of this name, if the configuration has one.
    pub(crate) fn named(&self, name: &str) -> Option<Principal> {
        let tokens = self.tokens.iter().map(|(_, principal)| principal);
        let clients = self.clients.iter().flat_map(Clients::principals);
        tokens.chain(clients).find(|principal| &*principal.name == name).cloned()
    }

    /// Whether the principal of this name is not let in, whatever it shows.
    pub(crate) fn denies(&self, name: &str) -> bool {
        self.denied.contains(name)
    }

    /// Whether somebody is not let in, whatever they show.
    fn is_denied(&self, known: &AuthenticatedPeer) -> bool {
        self.denied.contains(&known.principal.name)
    }

    /// What changes for whom when this takes the place of another: who is let in from now on, and who is
    /// shut out, by name.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<(&'static str, Arc<str>)> {
        let names = |access: &Self| -> BTreeSet<Arc<str>> {
            let tokens = access.tokens.iter().map(|(_, who)| who.name.clone());
            let clients = access.clients.iter().flat_map(Clients::principals);
            let clients = clients.map(|who| who.name.clone());
            let issuers = access.issuers.iter().map(|issuer| {
                let IssuerEntry { name, .. } = &**issuer.entry();
                format!("{name}/").into()
            });
            let all = tokens.chain(clients).chain(issuers);
            all.filter(|name| !access.denied.contains(name)).collect()
        };
        let (then, now) = (names(before), names(self));
        let added = now.difference(&then).map(|name| ("let_in", name.clone()));
        let gone = then.difference(&now).map(|name| ("shut_out", name.clone()));
        // Those of an issuer have no entry of their own.
        let denied = self.denied.difference(&before.denied).map(|name| ("shut_out", name.clone()));
        let allowed = before.denied.difference(&self.denied).map(|name| ("let_in", name.clone()));
        let mut all: Vec<_> = added.chain(gone).chain(denied).chain(allowed).collect();
        all.sort();
        all.dedup();
        all
    }

    /// What verifies the certificates of clients in a handshake, if any are taken.
    pub(crate) fn client_verifier(
        &self,
    ) -> Option<Arc<dyn rustls::server::danger::ClientCertVerifier>> {
        self.clients.as_ref().map(Clients::verifier)
    }

    /// The principal of a token. Every principal is compared with, each in the same time, so that
    /// neither a hash nor a place in the list can be measured.
    fn owner(&self, text: &str) -> Option<AuthenticatedPeer> {
        let shown = Token::parse(text)?.hash();
        let mut found = u32::MAX;
        for (at, (hash, _)) in (0..u32::MAX).zip(&self.tokens) {
            found.conditional_assign(&at, hash.ct_eq(&shown));
        }
        let (hash, principal) = self.tokens.get(usize::try_from(found).ok()?)?;
        let (principal, proof) = (principal.clone(), Proof::Token(*hash));
        Some(AuthenticatedPeer { principal, proof, peer: None })
    }

    /// Whom a signed token names.
    fn signed(&self, text: &str) -> Option<AuthenticatedPeer> {
        let now = clock::now().wall.as_millis();
        let issuer::Signed { principal, expires, issuer, is_new } =
            issuer::signed(&self.issuers, text, now)?;
        let proof = Proof::Signed { issuer, expires, is_new };
        Some(AuthenticatedPeer { principal, proof, peer: None })
    }

    /// Begins to fetch the keys of issuers; those whose entries stay as they were keep what they have.
    /// To be called inside a runtime.
    pub(crate) fn keep_fresh(&mut self, before: Option<&Self>) {
        for issuer in &mut self.issuers {
            let same = |other: &&Arc<Issuer>| {
                other.entry() == issuer.entry() && issuer.entry().keys_url.is_some()
            };
            if let Some(known) = before.and_then(|before| before.issuers.iter().find(same)) {
                *issuer = known.clone();
            }
            issuer.keep_fresh();
        }
    }

    // enforces: S6
    /// Whether somebody may use an interface at all: only agents act as agents.
    pub fn may_use(&self, known: &AuthenticatedPeer, surface: ApiSurface) -> Result<(), Denied> {
        match (surface, known.principal.role) {
            (ApiSurface::Agent, Role::Agent) | (ApiSurface::Listener, _) => Ok(()),
            (ApiSurface::Agent, _) => Err(Denied::Role),
        }
    }

    // enforces: D4, S1, S6
    /// Whether somebody's replies may count at all. If not, its subscriptions are to be joined
    /// without reply support, and a reply of its looks like any other ignored one (D5).
    pub fn may_reply(&self, known: &AuthenticatedPeer) -> bool {
        let role_replies = match known.principal.role {
            Role::AccessibilityConsumer | Role::Admin => true,
            Role::Agent | Role::Auditor | Role::Listener | Role::Metrics => false,
        };
        let unproven = matches!(known.proof, Proof::Loopback { .. });
        role_replies && (self.local_replies || !unproven)
    }

    // enforces: S4
    /// Whether somebody who was recognised before would be recognised as the same now, by the same
    /// proof. After a reload, the streams of those who would not are to be closed: a token that was
    /// replaced hears nothing more, also if its principal lives on. Who may no longer reply, or now
    /// may, begins anew as well.
    pub fn still_valid(&self, known: &AuthenticatedPeer) -> bool {
        if self.is_denied(known) && !matches!(known.proof, Proof::Inside) {
            return false;
        }
        match &known.proof {
            Proof::Token(hash) => self.tokens.contains(&(*hash, known.principal.clone())),
            // A key that the issuer no longer uses says nothing of what it signed before.
            Proof::Signed { issuer, expires, .. } => {
                let is_known = self.issuers.iter().any(|known| known.entry() == issuer);
                is_known && clock::now().wall.as_millis() < *expires
            }
            Proof::Certificate { chain, .. } => {
                let now = clock::now().wall.as_millis();
                let who = self.clients.as_ref().and_then(|clients| clients.who(chain, now));
                who.is_some_and(|(principal, _)| principal == known.principal)
            }
            Proof::Loopback { replies } => self.loopback && *replies == self.local_replies,
            Proof::Socket { uid } => self.own_uid == Some(*uid),
            Proof::Inside => true,
        }
    }

    /// With which identity providers people sign in.
    pub(crate) fn offers(&self) -> Offers {
        Offers { providers: self.issuers.iter().filter_map(|issuer| issuer.offer()).collect() }
    }

    /// Whether people sign in with any.
    pub(crate) fn has_sign_in(&self) -> bool {
        self.issuers.iter().any(|issuer| issuer.entry().sign_in.is_some())
    }

    /// The provider of this name, if people sign in with it.
    pub(crate) fn provider(&self, name: &str) -> Option<KnownProvider> {
        let issuer = self.issuers.iter().find(|issuer| issuer.entry().name.as_str() == name)?;
        Some(KnownProvider { offer: issuer.offer()?, roots: issuer.roots() })
    }

    /// Whether anybody has a token.
    pub fn has_tokens(&self) -> bool {
        !self.tokens.is_empty() || !self.issuers.is_empty() || self.clients.is_some()
    }
}

/// The access in force, replaced as a whole when the configuration is read again.
#[derive(Debug)]
pub struct SharedAccess(ArcSwap<Access>);

impl SharedAccess {
    /// Starts with this one.
    pub fn new(access: Access) -> Self {
        Self(ArcSwap::from_pointee(access))
    }

    /// The one in force. A request keeps the one it began with.
    pub fn current(&self) -> Arc<Access> {
        self.0.load_full()
    }

    /// Puts another in force. The holder of streams asks [`Access::still_valid`] for each then.
    pub fn replace(&self, access: Access) {
        self.0.store(Arc::new(access));
    }
}

/// The largest token file, in bytes: a token and a newline, with room for a careless editor.
const TOKEN_FILE_BYTES: u64 = 256;

fn hash_of(entry: &PrincipalEntry) -> Result<TokenHash, Fault> {
    match (&entry.token_sha256, &entry.token_file) {
        (Some(hash), None) => Ok(*hash),
        (None, Some(path)) => {
            let bytes = files::read_private(path, TOKEN_FILE_BYTES)?;
            let token = std::str::from_utf8(&bytes).ok().and_then(|text| Token::parse(text.trim()));
            token.map(|token| token.hash()).ok_or_else(|| {
                Fault::file(
                    path,
                    format!(
                        "It holds no token for `{}`: {TOKEN_PREFIX} and 43 characters.",
                        entry.name
                    ),
                    "Put a token there that `aaep hub init` made.",
                )
            })
        }
        _ => Err(Fault::unsafely(
            format!("The principal `{}` needs either token_sha256 or token_file.", entry.name),
            "Give exactly one of the two.",
        )),
    }
}

#[cfg(unix)]
fn own_uid() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn own_uid() -> Option<u32> {
    None
}
