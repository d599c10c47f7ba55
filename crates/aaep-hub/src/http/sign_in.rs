//! Signing in with an identity provider from the page: the authorisation code flow with PKCE
//! (RFC 7636). The page makes the secret and keeps it; the hub carries it to the provider.

use std::time::Duration;

use aaep_transport::server::{RequestBody, read_body};
use http::header::ORIGIN;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::page::address_of;
use super::{HttpResponse, Problem, json as json_answer};
use crate::hub::Hub;
use crate::sign_in::{KnownProvider, SignInError};

/// The longest body that is read, in bytes: a token that is worth new ones may be long.
const BODY_BYTES: usize = 16 << 10;

/// How a challenge of PKCE looks: SHA-256 in base64url.
const CHALLENGE_CHARACTERS: usize = 43;

/// The longest `state`, in characters.
const STATE_CHARACTERS: usize = 128;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    provider: String,
    state: String,
    code_challenge: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Finish {
    provider: String,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    code_verifier: Option<String>,
    #[serde(default)]
    refresh_token: Option<String>,
}

/// `GET sign-in`: the providers with which people sign in. Nobody is waited for.
pub(crate) fn offers(hub: &Hub) -> HttpResponse {
    let offers = hub.0.access.current().offers();
    json_answer(StatusCode::OK, serde_json::to_vec(&offers).unwrap_or_default())
}

/// `POST sign-in/begin`: where the page sends the person.
// enforces: S5
pub(crate) async fn begin(
    hub: &Hub,
    parts: &Parts,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let Begin { provider, state, code_challenge } = read(hub, body).await?;
    let (known, back) = (named(hub, &provider)?, back_to(&parts.headers)?);
    let fits =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let is_state = (1..=STATE_CHARACTERS).contains(&state.len()) && fits(&state);
    if !is_state || code_challenge.len() != CHALLENGE_CHARACTERS || !fits(&code_challenge) {
        let text =
            "state and code_challenge are base64url; the challenge is the SHA-256 of the verifier.";
        return Err(Problem::malformed(text));
    }
    let _slot = hub.0.sign_in.begin(address_of(hub, parts))?;
    let provider = hub.0.sign_in.provider(&known).await?;
    let offer = &known.offer;
    let scope = offer.scopes.join(" ");
    let mut parameters = vec![
        ("response_type", "code"),
        ("client_id", &offer.client_id),
        ("redirect_uri", &back),
        ("scope", &scope),
        ("state", &state),
        ("code_challenge", &code_challenge),
        ("code_challenge_method", "S256"),
    ];
    // OpenID Connect Core, section 11: without it the scope is ignored.
    if offer.scopes.iter().any(|scope| scope == "offline_access") {
        parameters.push(("prompt", "consent"));
    }
    parameters.extend(offer.target());
    let url = provider.authorization_url(&parameters)?;
    Ok(json_answer(StatusCode::OK, json!({ "url": url }).to_string()))
}

/// `POST sign-in/token`: the code that the person came back with, or a refresh token, for tokens.
// enforces: S5
pub(crate) async fn finish(
    hub: &Hub,
    parts: &Parts,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let Finish { provider, code, code_verifier, refresh_token } = read(hub, body).await?;
    let (known, back) = (named(hub, &provider)?, back_to(&parts.headers)?);
    let offer = &known.offer;
    let mut form = vec![("client_id", &*offer.client_id)];
    match (&code, &code_verifier, &refresh_token) {
        (Some(code), Some(verifier), None) => form.extend([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", &back),
        ]),
        (None, None, Some(token)) => {
            form.extend([("grant_type", "refresh_token"), ("refresh_token", token)]);
        }
        _ => {
            let text = "Send code and code_verifier, or refresh_token.";
            return Err(Problem::malformed(text));
        }
    }
    form.extend(offer.target());
    let _slot = hub.0.sign_in.begin(address_of(hub, parts))?;
    let tokens = hub.0.sign_in.provider(&known).await?.tokens(&form).await?;
    Ok(json_answer(StatusCode::OK, serde_json::to_vec(&tokens).unwrap_or_default()))
}

async fn read<T: DeserializeOwned>(hub: &Hub, body: RequestBody) -> Result<T, Problem> {
    let patience = Duration::from_secs(hub.config().limits.body_seconds);
    let bytes = read_body(body, BODY_BYTES, patience).await?;
    serde_json::from_slice(&bytes)
        .map_err(|_| Problem::malformed("The body is not as /openapi.json describes it."))
}

fn named(hub: &Hub, provider: &str) -> Result<KnownProvider, Problem> {
    let known = hub.0.access.current().provider(provider);
    known.ok_or_else(|| Problem::not_found("Nobody signs in with a provider of that name here."))
}

/// Where the provider sends the person back to: the page that asks. Its origin was looked at, and the
/// provider knows which pages may ask.
fn back_to(headers: &HeaderMap) -> Result<String, Problem> {
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.filter(|origin| origin.starts_with("http"));
    let text = "Only a page can sign in like this; in a terminal, use: aaep login";
    origin.map(|origin| format!("{origin}/")).ok_or_else(|| Problem::malformed(text))
}

impl From<SignInError> for Problem {
    fn from(error: SignInError) -> Self {
        let text = error.to_string();
        match error {
            SignInError::Refused(_) => Self::new(StatusCode::UNAUTHORIZED, "unauthorized", text),
            _ => Self::new(StatusCode::BAD_GATEWAY, "provider", text),
        }
    }
}
