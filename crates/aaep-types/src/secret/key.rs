//! Keys and tokens that can be told by their form: what known services issue, signed tokens (JWT),
//! private keys in PEM.

use super::{Kind, SecretMatch, begins_word, is_mixed, is_word, run_end};

/// What the keys of a service look like.
struct Format {
    prefix: &'static str,
    /// What may stand in it besides letters and digits.
    signs: &'static [u8],
    /// Bytes after the prefix, at least.
    least: usize,
    /// Bytes after the prefix, at most.
    most: usize,
    /// Whether it needs a part with letters and digits: the prefix alone could begin a phrase.
    mixed: bool,
    /// Whether all its letters are capitals.
    capitals: bool,
}

const ANY: usize = usize::MAX;

const fn format(prefix: &'static str, signs: &'static [u8], least: usize) -> Format {
    Format { prefix, signs, least, most: ANY, mixed: false, capitals: false }
}

/// A prefix that could begin a phrase.
const fn mixed(prefix: &'static str, signs: &'static [u8], least: usize) -> Format {
    Format { mixed: true, ..format(prefix, signs, least) }
}

/// The name of a key to a cloud: sixteen capitals and digits.
const fn capitals(prefix: &'static str) -> Format {
    Format { most: 16, capitals: true, ..mixed(prefix, b"", 16) }
}

const FORMATS: [Format; 30] = [
    // Of several providers of language models.
    mixed("sk-", b"-_", 16),
    format("sk_live_", b"_", 8),
    format("sk_test_", b"_", 8),
    format("rk_live_", b"_", 8),
    format("rk_test_", b"_", 8),
    format("whsec_", b"+/=", 16),
    capitals("AKIA"),
    capitals("ASIA"),
    format("ghp_", b"_", 20),
    format("gho_", b"_", 20),
    format("ghu_", b"_", 20),
    format("ghs_", b"_", 20),
    format("ghr_", b"_", 20),
    format("github_pat_", b"_", 20),
    mixed("glpat-", b"-_.", 16),
    mixed("xoxb-", b"-", 10),
    mixed("xoxp-", b"-", 10),
    mixed("xoxa-", b"-", 10),
    mixed("xoxr-", b"-", 10),
    mixed("xoxs-", b"-", 10),
    mixed("xapp-", b"-", 10),
    format("AIza", b"-_", 30),
    format("ya29.", b"-_", 20),
    format("hf_", b"", 30),
    format("npm_", b"", 30),
    format("pypi-", b"-_", 50),
    mixed("dop_v1_", b"", 32),
    format("shpat_", b"", 30),
    mixed("SG.", b"-_.", 40),
    mixed("AGE-SECRET-KEY-", b"", 40),
];

pub(super) fn find(text: &str, found: &mut Vec<SecretMatch>) {
    private_keys(text, found);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let begins = is_word(bytes[at]) && begins_word(bytes, at, b"-");
        let key = || formatted(bytes, at).or_else(|| signed_token(bytes, at));
        match begins.then(key).flatten() {
            Some((end, kind)) => {
                found.push(SecretMatch { range: at..end, kind, certain: true });
                at = end;
            }
            None => at += 1,
        }
    }
}

/// The end of the key that begins here.
fn formatted(bytes: &[u8], at: usize) -> Option<(usize, Kind)> {
    let rest = &bytes[at..];
    let format = FORMATS.iter().find(|format| rest.starts_with(format.prefix.as_bytes()))?;
    if !begins_word(bytes, at, format.signs) {
        return None;
    }
    let from = at + format.prefix.len();
    let end =
        run_end(bytes, from, |byte| byte.is_ascii_alphanumeric() || format.signs.contains(&byte));
    // Whatever ends a sentence does not belong to the key.
    let end = end - bytes[from..end].iter().rev().take_while(|byte| **byte == b'.').count();
    let body = &bytes[from..end];
    let closed = bytes.get(end).is_none_or(|next| !is_word(*next));
    let fits = (format.least..=format.most).contains(&body.len()) && closed;
    let parts = || body.split(|byte| format.signs.contains(byte));
    let mixed = !format.mixed || parts().any(|part| part.len() >= 8 && is_mixed(part));
    let capitals = !format.capitals || !body.iter().any(u8::is_ascii_lowercase);
    (fits && mixed && capitals).then_some((end, Kind::Key))
}

/// The end of a signed token (JWT): three parts of base64url, the first of which is a JSON object.
fn signed_token(bytes: &[u8], at: usize) -> Option<(usize, Kind)> {
    if !bytes[at..].starts_with(b"eyJ") || !begins_word(bytes, at, b".") {
        return None;
    }
    let part = |from: usize| run_end(bytes, from, |byte| is_word(byte) || byte == b'-');
    let (mut end, mut parts) = (part(at), 1);
    while bytes.get(end) == Some(&b'.') && part(end + 1) > end + 1 {
        end = part(end + 1);
        parts += 1;
    }
    (parts >= 3 && end - at >= 20).then_some((end, Kind::Token))
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// The longest label between `BEGIN` and the dashes.
const LABEL_BYTES: usize = 48;

/// Private keys in PEM, from their first line to their last, or as far as they go.
fn private_keys(text: &str, found: &mut Vec<SecretMatch>) {
    let mut at = 0;
    while let Some(next) = text[at..].find(BEGIN) {
        let start = at + next;
        let from = start + BEGIN.len();
        at = from;
        let label = run_end(text.as_bytes(), from, |byte| {
            byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
        });
        let private = label - from <= LABEL_BYTES && text[from..label].contains("PRIVATE KEY");
        if private && text[label..].starts_with(DASHES) {
            at = key_end(text, label + DASHES.len());
            found.push(SecretMatch { range: start..at, kind: Kind::PrivateKey, certain: true });
        }
    }
}

/// Where a private key ends: after its last line, or after the last of what can be part of it.
fn key_end(text: &str, from: usize) -> usize {
    let body = body_end(text, from);
    let Some(label) = text[past_gap(text, body)..].strip_prefix(END) else { return body };
    let length = run_end(label.as_bytes(), 0, |byte| byte.is_ascii_uppercase() || byte == b' ');
    if label[length..].starts_with(DASHES) {
        text.len() - label.len() + length + DASHES.len()
    } else {
        body
    }
}

/// Skips what stands between two lines of a key: space, and line ends that are still escaped.
fn past_gap(text: &str, from: usize) -> usize {
    let mut rest = &text[from..];
    loop {
        let next = rest.trim_start();
        let after = next.trim_start_matches('\\');
        let next =
            if after.len() < next.len() { after.trim_start_matches(['n', 'r']) } else { next };
        if next.len() == rest.len() {
            return text.len() - next.len();
        }
        rest = next;
    }
}

/// Lines of base64, and the headers of encrypted keys.
fn body_end(text: &str, from: usize) -> usize {
    let mut end = from;
    let mut lines = 0;
    loop {
        let start = past_gap(text, end);
        let rest = &text[start..];
        let length = run_end(rest.as_bytes(), 0, |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
        });
        let line = &rest[..length];
        if HEADERS.iter().any(|name| rest.starts_with(name)) {
            end = start + rest.find(['\n', '\\']).unwrap_or(rest.len());
        } else if length >= 16 || length > 0 && lines > 0 && line.ends_with('=') {
            end = start + length;
            lines += 1;
        } else if length > 0 && lines > 0 && is_last(text, start + length) {
            // A last line may be short; so may be a word that follows.
            return start + length;
        } else {
            return end;
        }
    }
}

const HEADERS: [&str; 4] = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:"];

/// Whether only the last line of a key follows, or nothing.
fn is_last(text: &str, end: usize) -> bool {
    let rest = &text[past_gap(text, end)..];
    rest.is_empty() || rest.starts_with(END)
}
