//! A yes that was signed.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    AuthenticatorData, Base64, Challenge, ClientData, Nonce, Passkey, PasskeyError, PublicKey,
    RelyingParty,
};

/// What a browser gives back after `navigator.credentials.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Assertion {
    /// Which passkey signed.
    pub credential_id: Base64,
    /// What the browser did, as it wrote it.
    #[serde(rename = "clientDataJSON")]
    pub client_data_json: Base64,
    /// What the authenticator says.
    pub authenticator_data: Base64,
    /// Over both.
    pub signature: Base64,
}

impl Assertion {
    /// Where the browser says that its page came from.
    pub(super) fn origin(&self) -> Option<String> {
        let data: ClientData = serde_json::from_slice(&self.client_data_json.0).ok()?;
        Some(data.origin)
    }

    /// Checks everything but the counter, and gives what the counter says.
    fn check(
        &self,
        key: &PublicKey,
        challenge: &Challenge,
        party: &RelyingParty,
    ) -> Result<u32, PasskeyError> {
        ClientData::check(&self.client_data_json, "webauthn.get", challenge, party)?;
        let data = AuthenticatorData::check(&self.authenticator_data.0, party)?;
        let hash = Sha256::digest(&self.client_data_json.0);
        let message = [self.authenticator_data.0.as_slice(), hash.as_slice()].concat();
        key.verify(&message, &self.signature.0)?;
        Ok(data.counter)
    }

    /// Checks a signed yes to the action behind `challenge`, and gives the passkey's new counter.
    pub fn verify(
        &self,
        passkey: &Passkey,
        challenge: &Challenge,
        party: &RelyingParty,
    ) -> Result<u32, PasskeyError> {
        if self.credential_id != passkey.id {
            return Err(PasskeyError::OtherCredential);
        }
        let counter = self.check(&passkey.key, challenge, party)?;
        // Authenticators that do not count say 0 every time (WebAuthn, section 6.1.1).
        if (counter != 0 || passkey.counter != 0) && counter <= passkey.counter {
            return Err(PasskeyError::Cloned);
        }
        Ok(counter)
    }
}

/// What the audit keeps of a signed yes: all that is needed to judge it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedYes {
    /// What was signed, and the signature.
    pub assertion: Assertion,
    /// The random part of the challenge.
    pub nonce: Nonce,
    /// The passkey's key at that time.
    pub key: PublicKey,
    /// What the person calls the passkey.
    pub name: String,
    /// The domain.
    pub domain: String,
    /// The origin of the page.
    pub origin: String,
}

impl SignedYes {
    /// Judges a signed yes again: whether this key signed a yes to this request for this action.
    pub fn verify(&self, request_id: &str, digest: &str) -> Result<(), PasskeyError> {
        let party = RelyingParty { id: self.domain.clone(), origins: vec![self.origin.clone()] };
        let challenge = Challenge::for_action(&self.nonce, request_id, digest);
        self.assertion.check(&self.key, &challenge, &party).map(drop)
    }
}
