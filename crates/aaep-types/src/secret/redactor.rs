//! Text that is streamed, without its secrets (T14), wherever it is cut.

use super::{Kind, MAX_WATCHED_BYTES, NOTHING_LEFT, ROUNDS, SecretMatch, find};

/// Stands for the beginning of a private key of which more may come.
const OPEN_KEY: &str = "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n";

/// Takes secrets out of the pieces of one text. It remembers the end of what came and of what was
/// said, since what a piece holds may only show together with what stood before it.
///
/// ```
/// use aaep_types::secret::Redactor;
///
/// let mut output = Redactor::default();
/// assert_eq!(output.pass("The password=").text, "The password=");
/// assert_eq!(output.pass("hunter2 is old.").text, "[password removed] is old.");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    came: String,
    said: String,
}

/// A piece as it may be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The piece without its secrets.
    pub text: String,
    /// What was taken out of it; a secret that began in an earlier piece is named there.
    pub removed: Vec<Kind>,
}

impl Redactor {
    // enforces: T14
    /// The next piece as it may be said.
    pub fn pass(&mut self, piece: &str) -> Passed {
        let before = self.came.len();
        self.came.push_str(piece);
        let found = find(&self.came);
        let mut removed = kinds(&found, before);
        let mut said = without(&self.came, before, &found);
        self.remember(&found);
        // Taking one out can bring others together: what is said is looked at as it is heard.
        for _ in 0..ROUNDS {
            let heard = format!("{}{said}", self.said);
            let found = find(&heard);
            if found.iter().all(|found| found.range.end <= self.said.len()) {
                self.said = heard;
                keep_end(&mut self.said);
                return Passed { text: said, removed };
            }
            removed.extend(kinds(&found, self.said.len()));
            said = without(&heard, self.said.len(), &found);
        }
        // The space keeps it apart from what stands before it.
        self.said.clear();
        Passed { text: format!(" {NOTHING_LEFT} "), removed }
    }

    fn remember(&mut self, found: &[SecretMatch]) {
        let open = found.last().filter(|last| self.came[last.range.end..].trim().is_empty());
        match open {
            Some(last) if last.kind == Kind::PrivateKey && !is_closed(&self.came) => {
                self.came.clear();
                self.came.push_str(OPEN_KEY);
            }
            _ => keep_end(&mut self.came),
        }
    }
}

/// The kinds of those that reach beyond `from`.
fn kinds(found: &[SecretMatch], from: usize) -> Vec<Kind> {
    found.iter().filter(|found| found.range.end > from).map(|found| found.kind).collect()
}

/// Whether the last line of a private key was seen.
fn is_closed(text: &str) -> bool {
    let text = text.trim_end();
    text.ends_with("-----") && text.rfind("-----END ") > text.rfind("-----BEGIN ")
}

/// What stands after `from`, with something else in the place of each secret. Of one that began
/// before, it was said already that it is removed.
fn without(text: &str, from: usize, found: &[SecretMatch]) -> String {
    let mut out = String::with_capacity(text.len() - from);
    let mut at = from;
    for SecretMatch { range, kind, .. } in found.iter().filter(|found| found.range.end > from) {
        out.push_str(&text[at..range.start.max(at)]);
        if range.start >= from {
            out.push_str(kind.replacement());
        }
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Keeps as much of a text as a secret may need to be recognised.
fn keep_end(text: &mut String) {
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_WATCHED_BYTES));
    if from > 0 {
        // A word that is cut is no beginning of one.
        let joins = text[..from].ends_with(|last: char| last.is_ascii_alphanumeric());
        text.replace_range(..from, if joins { "z" } else { "" });
    }
}

/// Where a secret begins that may go on after the end of this text, and of what kind it is: one that
/// touches the end, or one in quotes that are still open.
pub fn open_secret(text: &str) -> Option<(usize, Kind)> {
    let found = find(text);
    let last = found.last()?;
    let after = &text[last.range.end..];
    let touches = after.trim_start().is_empty();
    let quote = text[..last.range.start].chars().next_back();
    let quote = quote.filter(|quote| matches!(quote, '"' | '\'' | '`'));
    let quoted = quote.is_some_and(|quote| !after.contains(quote));
    let closed = last.kind == Kind::PrivateKey && is_closed(&text[..last.range.end]);
    ((touches || quoted) && !closed).then_some((last.range.start, last.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(pieces: &[&str]) -> String {
        let mut redactor = Redactor::default();
        pieces.iter().map(|piece| redactor.pass(piece).text).collect()
    }

    // covers: T14
    #[test]
    fn a_secret_is_known_by_what_stood_before_it() {
        assert_eq!(
            passed(&["The password=", "hunter2", " is old."]),
            "The password=[password removed] is old."
        );
        assert_eq!(passed(&["token: Bearer ", "abcdef0123456789abcdef"]).find("abcdef"), None);
        assert_eq!(passed(&["Nothing ", "to hide, 42."]), "Nothing to hide, 42.");
    }

    // covers: T14
    #[test]
    fn a_private_key_that_comes_line_by_line_is_swallowed_to_its_end() {
        let line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w\n";
        let mut pieces = vec!["Here it is:\n-----BEGIN RSA PRIVATE KEY-----\n"];
        pieces.extend(std::iter::repeat_n(line, 40));
        pieces.extend(["QUJD\n", "-----END RSA PRIVATE KEY-----\n", "That was it."]);
        let said = passed(&pieces);
        assert!(!said.contains("QUJD"), "{said}");
        assert!(said.starts_with("Here it is:\n[private key removed]"), "{said}");
        assert!(said.ends_with("That was it."), "{said}");
    }

    // covers: T14
    #[test]
    fn what_is_left_when_a_secret_is_taken_out_shows_none_either() {
        for pieces in [
            &["4111 ", "1111 1111 1111 1111", " 1111 1111 1111"][..],
            &["password=", "password=", "hunter2"],
            &["sk-", "sk-abcdefgh12345678", "abcdefgh12345678 x"],
        ] {
            let said = passed(pieces);
            assert!(find(&said).is_empty(), "{pieces:?}: {said}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut redactor = Redactor::default();
        for _ in 0..1000 {
            redactor.pass("wörd wörd wörd wörd ");
            assert!(redactor.came.len() <= MAX_WATCHED_BYTES + 1);
            assert!(redactor.said.len() <= MAX_WATCHED_BYTES + 1);
        }
    }

    #[test]
    fn a_secret_that_may_go_on_is_told_from_one_that_is_over() {
        assert_eq!(open_secret("pay 4111 1111 1111 1111").map(|(at, _)| at), Some(4));
        assert_eq!(open_secret("pay 4111 1111 1111 1111, please"), None);
        assert_eq!(open_secret("password=\"my secr"), Some((10, Kind::Password)));
        assert_eq!(open_secret("password=\"my secret\" is old"), None);
        assert_eq!(open_secret("nothing here"), None);
    }
}
