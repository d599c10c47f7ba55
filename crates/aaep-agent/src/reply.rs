//! What a reply says of itself.

use aaep_types::agent_api::ReplyClaims;

/// What the reply to a request says of itself (§6.3.2, §6.5.3). It is what the answering device
/// claims; who is known to have answered stands beside it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ReplyDetails {
    /// Who decided.
    pub decided_by: Option<String>,
    /// Why.
    pub rationale: Option<String>,
    /// How sure the device is that it understood an answer, from 0 to 1.
    pub confidence: Option<f64>,
    /// Ties it to traces elsewhere.
    pub correlation_id: Option<String>,
}

impl From<ReplyClaims> for ReplyDetails {
    fn from(claims: ReplyClaims) -> Self {
        let ReplyClaims { decided_by, rationale, confidence, correlation_id, .. } = claims;
        Self { decided_by, rationale, confidence, correlation_id }
    }
}
