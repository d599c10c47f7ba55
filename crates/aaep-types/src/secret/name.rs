//! Names of things that hold secrets, as they stand before `=` and `:`.

use super::Kind;

/// Names that end like this hold a password.
const PASSWORDS: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "pass",
    "passwort",
    "kennwort",
    "contraseña",
    "senha",
    "motdepasse",
];

/// Names that end like this hold a key or a token.
const KEYS: [&str; 12] = [
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "secret",
    "secretaccesskey",
    "authkey",
    "sharedkey",
    "masterkey",
    "credential",
];

/// Words before `token` that do not make it a credential.
const OTHER_TOKENS: [&str; 16] = [
    "max",
    "min",
    "page",
    "nextpage",
    "continuation",
    "continue",
    "cursor",
    "sync",
    "reply",
    "stop",
    "prompt",
    "completion",
    "input",
    "output",
    "total",
    "next",
];

/// What makes a `key` a secret one when it stands before it as a word of its own.
const KEY_WORDS: [&str; 7] =
    ["api", "secret", "access", "private", "signing", "encryption", "auth"];

/// What a member or an argument of this name holds, if that is a secret by its name alone:
/// `password`, `db_password`, `api-key`, `accessToken`.
pub fn names_secret(name: &str) -> Option<Kind> {
    let name: String =
        name.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let ends = |names: &[&str]| names.iter().any(|end| name.ends_with(end));
    // `compass` and `bypass` are no passwords; of the short ones only the name itself counts.
    if name != "pass" && name.ends_with("pass") {
        return None;
    }
    if ends(&PASSWORDS) {
        return Some(Kind::Password);
    }
    if let Some(before) = name.strip_suffix("token") {
        return (!OTHER_TOKENS.contains(&before)).then_some(Kind::Token);
    }
    ends(&KEYS).then_some(Kind::Key)
}

/// The same for the name at the end of a text, which may be two words: `api key`.
pub(super) fn named_at_end(text: &str) -> Option<Kind> {
    let start = (text.char_indices().rev())
        .take_while(|(_, sign)| sign.is_alphanumeric() || matches!(sign, '_' | '-' | '.'))
        .take(MAX_NAME)
        .last()?
        .0;
    let name = &text[start..];
    if name.eq_ignore_ascii_case("key") {
        let before = text[..start].strip_suffix(' ')?;
        let word = KEY_WORDS.iter().any(|word| {
            let at = before.len().checked_sub(word.len());
            at.and_then(|at| before.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
        });
        return word.then_some(Kind::Key);
    }
    names_secret(name)
}

/// Characters of a name that are looked at.
const MAX_NAME: usize = 48;
