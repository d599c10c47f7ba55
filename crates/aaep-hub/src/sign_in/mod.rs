//! Signing in with an OpenID provider: what the hub tells its clients of it, and
//! the part of OAuth that `aaep login` and the page need.
//!
//! A [`Provider`] is found by its issuer (RFC 8414, OpenID Connect Discovery), and speaks HTTPS only.
//! Every answer of its is bounded in bytes and time. What it says is never shown to the user as it is:
//! errors are known words, or one sentence.

mod desk;
mod provider;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use desk::{KnownProvider, SignInDesk};
pub use provider::Provider;
pub(crate) use provider::split;

/// What a hub tells everybody of a provider with which people sign in. Nothing of it is secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The hub's name for it.
    pub name: String,
    /// Its issuer, to the letter.
    pub issuer: String,
    /// What the hub and its clients are called there.
    pub client_id: String,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// What the access token is to be good for (RFC 8707), if the provider has to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The same, for providers that want it as `audience`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

impl Offer {
    /// What the provider has to be told so that the access token is one for the hub.
    pub fn target(&self) -> impl Iterator<Item = (&str, &str)> {
        let resource = self.resource.as_deref().map(|resource| ("resource", resource));
        let audience = self.audience.as_deref().map(|audience| ("audience", audience));
        resource.into_iter().chain(audience)
    }
}

/// The answer of `GET sign-in`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offers {
    /// Each provider.
    pub providers: Vec<Offer>,
}

/// Tokens, as a provider hands them out. `Debug` shows none of them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tokens {
    /// Shown to the hub.
    pub access_token: String,
    /// How many seconds it is good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// Worth a new one, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("expires_in", &self.expires_in).finish_non_exhaustive()
    }
}

/// What a provider says where somebody can sign in on another device (RFC 8628).
#[derive(Clone, Debug, Deserialize)]
pub struct DeviceCode {
    /// For the program that waits.
    pub device_code: String,
    /// For the person to type.
    pub user_code: String,
    /// Where to type it.
    pub verification_uri: String,
    /// Where it is typed already.
    #[serde(default)]
    pub verification_uri_complete: Option<String>,
    /// Seconds for which both are good.
    pub expires_in: u64,
    /// Seconds between two questions.
    #[serde(default)]
    pub interval: Option<u64>,
}

/// Why signing in did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignInError {
    /// The provider cannot be reached, or takes too long.
    Unreachable(String),
    /// What it answers cannot be understood.
    Garbled,
    /// It says that it is another one than was asked for.
    AnotherIssuer,
    /// An address of its that is not protected, or is no address.
    Insecure(&'static str),
    /// It does not offer this.
    Missing(&'static str),
    /// It said no, with a word of RFC 6749, RFC 8628 or RFC 7009.
    Refused(String),
}

impl fmt::Display for SignInError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "The sign-in provider cannot be reached: {why}."),
            Self::Garbled => f.write_str("The sign-in provider answered what cannot be read."),
            Self::AnotherIssuer => f.write_str(
                "Another sign-in provider answers at this address than the one that the hub names.",
            ),
            Self::Insecure(what) => {
                write!(f, "The sign-in provider's {what} is not protected by https.")
            }
            Self::Missing(what) => write!(f, "The sign-in provider does not offer {what}."),
            Self::Refused(error) => write!(f, "The sign-in provider said no ({error})."),
        }
    }
}

impl std::error::Error for SignInError {}
