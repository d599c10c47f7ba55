//! What a client shows to say who it is.

use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderValue;

use super::ClientError;

/// A bearer token. It does not show itself in debug output.
///
/// Clones are one token: [`replace`](Self::replace) on one of them is seen by all, so a client that is
/// connected shows the newer one from its next request on.
#[derive(Clone)]
pub struct Token(Arc<RwLock<HeaderValue>>);

impl Token {
    /// Takes the token as it was given, without `Bearer`.
    pub fn parse(token: &str) -> Result<Self, ClientError> {
        Ok(Self(Arc::new(RwLock::new(header_of(token)?))))
    }

    /// Puts a newer token in the place of this one.
    pub fn replace(&self, token: &str) -> Result<(), ClientError> {
        let value = header_of(token)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
        Ok(())
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn header_of(token: &str) -> Result<HeaderValue, ClientError> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    let mut value = value.map_err(|_| ClientError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Options;

    #[test]
    fn a_token_does_not_show_itself() {
        let token = Some(Token::parse("s3cret\n").unwrap());
        let options = Options { token, ..Options::default() };
        assert!(!format!("{options:?}").contains("s3cret"));
        assert!(matches!(Token::parse("a\r\nx: y"), Err(ClientError::Token)));
    }

    #[test]
    fn a_token_that_is_replaced_is_replaced_wherever_it_is_shown() {
        let token = Token::parse("old").unwrap();
        let options = Options { token: Some(token.clone()), ..Options::default() };
        token.replace("new").unwrap();
        let shown = options.token.as_ref().unwrap().header();
        assert_eq!(shown, "Bearer new");
        assert!(shown.is_sensitive());
        assert!(token.replace("a\nb").is_err());
        assert_eq!(options.token.unwrap().header(), "Bearer new", "what is wrong changes nothing");
    }
}
