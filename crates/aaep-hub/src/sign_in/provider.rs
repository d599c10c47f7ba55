//! A provider: where its endpoints are, and requests to them.

use std::fmt::Write as _;
use std::time::Duration;

use aaep_transport::client::{FullResponse, HttpClient, Options};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{DeviceCode, SignInError, Tokens};

/// How long a provider may take for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// The longest word of an error that is passed on.
const MAX_ERROR: usize = 40;

/// An OpenID provider, as it describes itself.
#[derive(Clone)]
pub struct Provider {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: String,
    device_authorization_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    roots: Option<Vec<u8>>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// What is read of its description.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: String,
    device_authorization_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
}

impl Provider {
    /// Asks a provider where things are, by its issuer. `roots` are certificates in PEM to trust beside
    /// those of this machine.
    pub async fn discover(issuer: &str, roots: Option<Vec<u8>>) -> Result<Self, SignInError> {
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let answer = send(&url, roots.as_deref(), Method::GET, String::new()).await?;
        if !answer.status.is_success() {
            let why = format!("its description was answered with {}", answer.status.as_u16());
            return Err(SignInError::Unreachable(why));
        }
        Self::parse(issuer, &answer.body, roots)
    }

    /// Reads a description. It has to be the one of this issuer, and all of its addresses protected.
    fn parse(issuer: &str, bytes: &[u8], roots: Option<Vec<u8>>) -> Result<Self, SignInError> {
        let found: Metadata = serde_json::from_slice(bytes).map_err(|_| SignInError::Garbled)?;
        if found.issuer != issuer {
            return Err(SignInError::AnotherIssuer);
        }
        let checked = [
            (&found.authorization_endpoint, "authorization_endpoint"),
            (&Some(found.token_endpoint.clone()), "token_endpoint"),
            (&found.device_authorization_endpoint, "device_authorization_endpoint"),
            (&found.revocation_endpoint, "revocation_endpoint"),
        ];
        for (url, name) in checked {
            if url.as_deref().is_some_and(|url| split(url).is_none()) {
                return Err(SignInError::Insecure(name));
            }
        }
        Ok(Self {
            issuer: found.issuer,
            authorization_endpoint: found.authorization_endpoint,
            token_endpoint: found.token_endpoint,
            device_authorization_endpoint: found.device_authorization_endpoint,
            revocation_endpoint: found.revocation_endpoint,
            roots,
        })
    }

    /// Whether these are the certificates that it was found with.
    pub(crate) fn trusts(&self, roots: Option<&[u8]>) -> bool {
        self.roots.as_deref() == roots
    }

    /// Where a browser goes to sign in, with these parameters (RFC 6749).
    pub fn authorization_url(&self, parameters: &[(&str, &str)]) -> Result<String, SignInError> {
        let missing = SignInError::Missing("signing in with a browser");
        let endpoint = self.authorization_endpoint.as_deref().ok_or(missing)?;
        let mark = if endpoint.contains('?') { '&' } else { '?' };
        Ok(format!("{endpoint}{mark}{}", encoded(parameters)))
    }

    /// Asks for tokens with these parameters (RFC 6749, RFC 7636, RFC 8628).
    pub async fn tokens(&self, form: &[(&str, &str)]) -> Result<Tokens, SignInError> {
        self.post(&self.token_endpoint, form).await
    }

    /// Asks for a code that somebody can type on another device.
    pub async fn device_code(&self, form: &[(&str, &str)]) -> Result<DeviceCode, SignInError> {
        let missing = SignInError::Missing("signing in with a code on another device");
        let endpoint = self.device_authorization_endpoint.as_deref().ok_or(missing)?;
        self.post(endpoint, form).await
    }

    /// Makes a token worthless (RFC 7009).
    pub async fn revoke(&self, form: &[(&str, &str)]) -> Result<(), SignInError> {
        let missing = SignInError::Missing("taking a token back");
        let endpoint = self.revocation_endpoint.as_deref().ok_or(missing)?;
        let answer = self.send_form(endpoint, form).await?;
        if answer.status.is_success() { Ok(()) } else { Err(refused(&answer)) }
    }

    async fn post<T: DeserializeOwned>(
        &self,
        endpoint: &str,
        form: &[(&str, &str)],
    ) -> Result<T, SignInError> {
        let answer = self.send_form(endpoint, form).await?;
        if !answer.status.is_success() {
            return Err(refused(&answer));
        }
        serde_json::from_slice(&answer.body).map_err(|_| SignInError::Garbled)
    }

    async fn send_form(
        &self,
        endpoint: &str,
        form: &[(&str, &str)],
    ) -> Result<FullResponse, SignInError> {
        send(endpoint, self.roots.as_deref(), Method::POST, encoded(form)).await
    }
}

/// The word for what is wrong, if it is one; what else the answer says is nobody's business here.
fn refused(answer: &FullResponse) -> SignInError {
    let is_word = |word: &str| {
        word.len() <= MAX_ERROR
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    match serde_json::from_slice::<ErrorAnswer>(&answer.body) {
        Ok(ErrorAnswer { error }) if is_word(&error) => SignInError::Refused(error),
        _ if answer.status.is_server_error() => {
            SignInError::Unreachable(format!("it answered {}", answer.status.as_u16()))
        }
        _ => SignInError::Garbled,
    }
}

async fn send(
    url: &str,
    roots: Option<&[u8]>,
    method: Method,
    form: String,
) -> Result<FullResponse, SignInError> {
    let (origin, path) = split(url).ok_or(SignInError::Insecure("address"))?;
    let options = Options {
        extra_roots_pem: roots.map(<[u8]>::to_vec),
        connect: PATIENCE,
        answer: PATIENCE,
        max_message: MAX_ANSWER_BYTES,
        ..Options::default()
    };
    let failed = |error: aaep_transport::client::ClientError| {
        SignInError::Unreachable(error.to_string().trim_end_matches('.').to_owned())
    };
    let client = HttpClient::new(origin, options).map_err(failed)?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if method == Method::POST {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
    }
    client.request(method, path, headers, form).await.map_err(failed)
}

/// The server and the path of an `https` address, which has no fragment.
pub(crate) fn split(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("https://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let clean = !url.contains(['#', ' ', '\\', '@']) && url.is_ascii();
    (clean && !authority.is_empty()).then(|| (&url[..url.len() - path.len()], path))
}

/// A form as `application/x-www-form-urlencoded`.
fn encoded(form: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in form {
        if !out.is_empty() {
            out.push('&');
        }
        escape(name, &mut out);
        out.push('=');
        escape(value, &mut out);
    }
    out
}

fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://login.example";

    fn described(issuer: &str, token_endpoint: &str) -> Result<Provider, SignInError> {
        let text = format!(r#"{{"issuer": "{issuer}", "token_endpoint": "{token_endpoint}"}}"#);
        Provider::parse(ISSUER, text.as_bytes(), None)
    }

    #[test]
    fn a_description_is_of_the_issuer_that_was_asked_and_all_of_it_is_protected() {
        assert!(described(ISSUER, "https://login.example/token").is_ok());
        let other = described("https://login.example/", "https://login.example/token");
        assert_eq!(other.unwrap_err(), SignInError::AnotherIssuer);
        for endpoint in ["http://login.example/token", "https://", "https://a@b/", "file:///x"] {
            let wrong = described(ISSUER, endpoint).unwrap_err();
            assert_eq!(wrong, SignInError::Insecure("token_endpoint"), "{endpoint}");
        }
        let text = r#"{"issuer": "https://login.example", "token_endpoint": "https://login.example/token",
            "authorization_endpoint": "https://login.example/auth?tenant=a"}"#;
        let provider = Provider::parse(ISSUER, text.as_bytes(), None).unwrap();
        let url = provider.authorization_url(&[("scope", "openid x")]).unwrap();
        assert_eq!(url, "https://login.example/auth?tenant=a&scope=openid%20x");
        let garbled = Provider::parse(ISSUER, b"<html>", None).unwrap_err();
        assert_eq!(garbled, SignInError::Garbled);
    }

    #[test]
    fn a_form_is_encoded_and_an_address_is_split() {
        assert_eq!(encoded(&[("a", "b c&="), ("ü", "~")]), "a=b%20c%26%3D&%C3%BC=~");
        assert_eq!(split("https://a:1/b?c"), Some(("https://a:1", "/b?c")));
        assert_eq!(split("https://a"), Some(("https://a", "")));
    }
}
