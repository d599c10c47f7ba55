//! What a client shows to say who it is.

use http::HeaderValue;

use super::ClientError;

/// A bearer token. It does not show itself in debug output.
#[derive(Clone)]
pub struct Token(HeaderValue);

impl Token {
    /// Takes the token as it was given, without `Bearer`.
    pub fn parse(token: &str) -> Result<Self, ClientError> {
        let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
        let mut value = value.map_err(|_| ClientError::Token)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
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
}
