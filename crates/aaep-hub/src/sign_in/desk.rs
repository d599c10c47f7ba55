//! Signing in from the page. The hub speaks with the provider, so that the page speaks with its own hub
//! alone: no other address has to be opened to its scripts, and the provider needs to know of none.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aaep_engine::Refusal;

use super::{Offer, Provider, SignInError};
use crate::config::Limits;
use crate::per_address::{AddressBounds, AddressSlot, PerAddress};

/// How long a provider's description of itself is believed.
const DESCRIBED: Duration = Duration::from_secs(5 * 60);

/// A provider with which people sign in here, and certificates that vouch for it.
pub(crate) struct KnownProvider {
    pub(crate) offer: Offer,
    pub(crate) roots: Option<Vec<u8>>,
}

/// What the page does with providers.
pub(crate) struct SignInDesk {
    under_way: PerAddress,
    described: Mutex<BTreeMap<String, (Provider, Instant)>>,
}

impl SignInDesk {
    pub(crate) fn new(limits: Limits) -> Self {
        let under_way = PerAddress::new(AddressBounds {
            all: (limits.sign_ins, "sign_ins"),
            each: (limits.sign_ins_per_address, "sign_ins_per_address"),
            what: "sign-ins are under way",
            remedy: "Try again in a few seconds.",
        });
        Self { under_way, described: Mutex::default() }
    }

    /// Clients that are not let in yet make the hub ask a provider: few at once.
    pub(crate) fn begin(&self, from: IpAddr) -> Result<AddressSlot<'_>, Refusal> {
        self.under_way.take(from)
    }

    /// The provider, as it described itself not long ago.
    pub(crate) async fn provider(&self, known: &KnownProvider) -> Result<Provider, SignInError> {
        let issuer = &known.offer.issuer;
        let same = |(provider, since): &(Provider, Instant)| {
            let fresh = since.elapsed() < DESCRIBED && provider.trusts(known.roots.as_deref());
            fresh.then(|| provider.clone())
        };
        if let Some(provider) = self.described().get(issuer).and_then(same) {
            return Ok(provider);
        }
        let provider = Provider::discover(issuer, known.roots.clone()).await?;
        self.described().insert(issuer.clone(), (provider.clone(), Instant::now()));
        Ok(provider)
    }

    fn described(&self) -> MutexGuard<'_, BTreeMap<String, (Provider, Instant)>> {
        self.described.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
