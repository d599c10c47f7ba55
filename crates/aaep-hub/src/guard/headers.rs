//! The headers that say what a body is, and who sends it.

use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, TRANSFER_ENCODING};

use super::GuardRefusal;
use super::host::only;

/// Whether a body has one length, as far as the server shows both headers.
pub(super) fn length(headers: &HeaderMap) -> Result<(), GuardRefusal> {
    let both = headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING);
    if both { Err(GuardRefusal::UnclearLength) } else { Ok(()) }
}

/// Whether a body says that it is JSON. Forms and scripts of foreign pages can send text without
/// asking first, but not this.
pub fn content_type(headers: &HeaderMap) -> Result<(), GuardRefusal> {
    let value = only(headers, CONTENT_TYPE).ok_or(GuardRefusal::NotJson)?;
    let mut parts = value.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    // §3.8: messages are UTF-8, whatever else somebody calls them.
    let utf8 = parts.all(|parameter| match parameter.split_once('=') {
        Some((name, charset)) if name.trim().eq_ignore_ascii_case("charset") => {
            charset.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    });
    if json && utf8 { Ok(()) } else { Err(GuardRefusal::NotJson) }
}

/// The bearer token that a request shows, if it shows any. A client that tries to show something else is
/// refused, rather than treated as somebody who shows nothing.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, GuardRefusal> {
    if !headers.contains_key(AUTHORIZATION) {
        return Ok(None);
    }
    let value = only(headers, AUTHORIZATION).ok_or(GuardRefusal::UnclearAuthorization)?;
    let (scheme, token) = value.split_once(' ').ok_or(GuardRefusal::UnclearAuthorization)?;
    let token = token.trim_matches(' ');
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"-._~+/=".contains(&c);
    let right =
        scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.bytes().all(fits);
    if right { Ok(Some(token)) } else { Err(GuardRefusal::UnclearAuthorization) }
}
