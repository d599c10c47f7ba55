//! What a reply says of itself.

use aaep_types::json::{Members, Raw};

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

impl ReplyDetails {
    // enforces: C9, C19
    pub(crate) fn read(raw: Raw<'_>) -> Self {
        let Raw::Object(object) = raw else { return Self::default() };
        let members = Members::whole(object, 8).ok().flatten().unwrap_or_default();
        let text = |name| members.text(name).map(|text| text.into_owned());
        let confidence = match members.find("confidence") {
            Some(Raw::Number(number)) => number.parse().ok(),
            _ => None,
        };
        Self {
            decided_by: text("decided_by"),
            rationale: text("decision_rationale"),
            confidence,
            correlation_id: text("correlation_id"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: C9, C19
    #[test]
    fn what_a_reply_says_of_itself_is_read_and_nothing_else() {
        let json = r#"{"wrong_clock":true,"decided_by":"Ann","confidence":0.5,"correlation_id":7}"#;
        let read = ReplyDetails::read(Raw::Object(json));
        assert_eq!((read.decided_by.as_deref(), read.confidence), (Some("Ann"), Some(0.5)));
        assert_eq!((read.rationale, read.correlation_id), (None, None));
        assert_eq!(ReplyDetails::read(Raw::Null), ReplyDetails::default());
    }
}
