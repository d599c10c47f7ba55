//! A new passkey.

use ciborium::Value;
use serde::Deserialize;

use super::{
    AuthenticatorData, Base64, CREDENTIAL_ID_BYTES, Challenge, ClientData, HAS_CREDENTIAL, Passkey,
    PasskeyError, PublicKey, RelyingParty,
};

/// How deep CBOR may be nested. Authenticators need three levels.
const CBOR_DEPTH: usize = 8;

/// What a browser gives back after `navigator.credentials.create`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// What the browser did, as it wrote it.
    #[serde(rename = "clientDataJSON")]
    pub client_data_json: Base64,
    /// What the authenticator made.
    pub attestation_object: Base64,
}

impl Registration {
    /// Checks the answer and gives the passkey.
    pub fn verify(
        &self,
        challenge: &Challenge,
        party: &RelyingParty,
        name: &str,
    ) -> Result<Passkey, PasskeyError> {
        ClientData::check(&self.client_data_json, "webauthn.create", challenge, party)?;
        let object = cbor(&mut self.attestation_object.0.as_slice())?;
        let data = object
            .as_map()
            .and_then(|members| members.iter().find(|(name, _)| name.as_text() == Some("authData")))
            .and_then(|(_, data)| data.as_bytes())
            .ok_or(PasskeyError::Malformed)?;
        let data = AuthenticatorData::check(data, party)?;
        if data.flags & HAS_CREDENTIAL == 0 {
            return Err(PasskeyError::Malformed);
        }
        let (id, mut key) = credential(data.rest).ok_or(PasskeyError::Malformed)?;
        if id.is_empty() || id.len() > CREDENTIAL_ID_BYTES {
            return Err(PasskeyError::Malformed);
        }
        // Extensions may follow the key; nothing in them is used.
        let key = PublicKey::from_cose(&cbor(&mut key)?)?;
        Ok(Passkey {
            id: Base64(id.to_vec()),
            key,
            counter: data.counter,
            name: name.to_owned(),
            domain: party.id.clone(),
        })
    }
}

/// The id of the new credential, and what follows it: the authenticator's model, a length, the id,
/// the key.
fn credential(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_model, rest) = rest.split_first_chunk::<16>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

fn cbor(bytes: &mut &[u8]) -> Result<Value, PasskeyError> {
    ciborium::de::from_reader_with_recursion_limit(bytes, CBOR_DEPTH)
        .map_err(|_| PasskeyError::Malformed)
}
