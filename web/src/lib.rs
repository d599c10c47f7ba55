//! The page of an AAEP hub: a subscriber in the browser, as files to be served.
//!
//! The files in `files/` are what is served, without their comments: modern JavaScript modules
//! without a framework and without a build step, so building the hub needs nothing but Rust. They
//! hold one element,
//! `<aaep-subscriber>`, which any site can use, and a page around it. The phrases come from
//! [`aaep_subscriber`], which all our clients share.
//!
//! ```
//! let file = aaep_page::find("aaep-subscriber.js").unwrap();
//! assert_eq!(file.content_type, "text/javascript; charset=utf-8");
//! assert!(file.etag().starts_with('"'));
//! assert!(aaep_page::find("../Cargo.toml").is_none());
//!
//! let html = aaep_page::index("/aaep/v1");
//! assert!(html.contains(r#"<aaep-subscriber base="/aaep/v1""#));
//! ```
//!
//! # What is deliberately absent
//!
//! * **A server.** The hub serves the files; so can anything else.
//! * **Requests to others.** No font, script or picture comes from anywhere but the hub.
//! * **A way for an agent's text to become markup.** It is only ever set as text, and
//!   [`CONTENT_SECURITY_POLICY`] makes browsers refuse anything else.

use std::borrow::Cow;
use std::sync::LazyLock;

use aaep_subscriber::words;

/// What the page may do, for the header `Content-Security-Policy`: load its own files and speak with
/// its own hub, nothing else. Text can never become markup or script.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; \
    style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// A file of the page.
#[derive(Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is, from the folder in which the files are.
    pub path: Cow<'static, str>,
    /// For the header `Content-Type`.
    pub content_type: &'static str,
    /// What is in it.
    pub text: Cow<'static, str>,
    etag: String,
}

impl File {
    fn new(path: Cow<'static, str>, text: Cow<'static, str>) -> Self {
        let content_type = match path.rsplit_once('.') {
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "application/json",
        };
        let etag = format!("\"{:016x}-{:x}\"", fingerprint(&text), text.len());
        Self { path, content_type, text, etag }
    }

    /// For the header `ETag`: another text has another one.
    pub fn etag(&self) -> &str {
        &self.etag
    }
}

macro_rules! embedded {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../files/", $path)))),+]
    };
}

/// The page itself; `{{base}}` stands for the base of the hub's API.
const INDEX: &str = include_str!("../files/index.html");

const EMBEDDED: &[(&str, &str)] = embedded![
    "aaep-subscriber.js",
    "alike.js",
    "announcer.js",
    "asking.js",
    "base64.js",
    "connection.js",
    "dialog.js",
    "dom.js",
    "events.js",
    "inbox.js",
    "log.js",
    "memory.js",
    "page.js",
    "panel.js",
    "passkeys.js",
    "pin.js",
    "questions.js",
    "safe.js",
    "sentences.js",
    "settings.js",
    "sign-in.js",
    "speech.js",
    "view.js",
    "words.js",
    "page.css",
    "styles.css",
    "icon.svg",
    "identity.js",
    "refused.js",
];

/// The message files that the page needs; the terminal's are none of them.
const MESSAGES: [&str; 4] = ["language.json", "said.json", "page.json", "rare.json"];

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let own = EMBEDDED.iter().map(|(path, text)| {
        let is_script = path.ends_with(".js");
        let text = if is_script { without_comments(text).into() } else { (*text).into() };
        File::new((*path).into(), text)
    });
    let messages = words::files().iter().filter(|(_, name, _)| MESSAGES.contains(name)).map(
        |(language, name, text)| {
            File::new(format!("messages/{language}/{name}").into(), (*text).into())
        },
    );
    let alike = File::new("alike.json".into(), words::look_alike_table().into());
    own.chain(messages).chain([alike]).collect()
});

/// Every file of the page but the page itself.
pub fn files() -> &'static [File] {
    &FILES
}

/// The file at a path, such as `aaep-subscriber.js` or `messages/en/said.json`.
pub fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

/// The page, for a hub whose API has this base, such as `/aaep/v1`.
pub fn index(base: &str) -> String {
    let mut safe = String::with_capacity(base.len());
    for letter in base.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    INDEX.replace("{{base}}", &safe)
}

/// A script without the lines that are nothing but comments: a quarter of its size. A comment beside
/// code stays.
fn without_comments(script: &str) -> String {
    let mut kept = String::with_capacity(script.len());
    let mut inside = false;
    for line in script.lines() {
        let text = line.trim();
        let opens = text.starts_with("/*");
        let closes = text.find("*/").map(|at| at + 2 == text.len());
        let is_comment =
            inside || text.is_empty() || text.starts_with("//") || (opens && closes != Some(false));
        inside = (inside || opens) && closes.is_none();
        if !is_comment {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// FNV-1a: tells versions of a file apart, and protects against nobody.
fn fingerprint(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_cannot_break_out_of_its_place() {
        let html = index("/a\"><script>&");
        assert!(html.contains("base=\"/a&quot;&gt;&lt;script&gt;&amp;\""));
        assert!(!html.contains("{{"));
    }

    #[test]
    fn comments_on_lines_of_their_own_are_left_out_and_code_stays() {
        let script = "// One.\n/** Two. */\nconst a = 1; // stays\n\n/**\n * Three.\n */\n\
                      function f() {\n  /* Four. */\n  /** @type {X} */ (g)(); /* stays */\n}\n";
        let kept =
            "const a = 1; // stays\nfunction f() {\n  /** @type {X} */ (g)(); /* stays */\n}\n";
        assert_eq!(without_comments(script), kept);
    }

    #[test]
    fn no_text_over_several_lines_looks_like_a_comment() {
        for (path, text) in EMBEDDED.iter().filter(|(path, _)| path.ends_with(".js")) {
            // A text over several lines has an odd number of marks on its first line.
            let odd = text.lines().find(|line| {
                !line.trim_start().starts_with(['/', '*']) && line.matches('`').count() % 2 == 1
            });
            assert_eq!(odd, None, "{path}");
        }
    }

    #[test]
    fn every_file_has_its_own_path_and_mark() {
        for (at, file) in files().iter().enumerate() {
            assert_eq!(find(&file.path), Some(file));
            let others = &files()[at + 1..];
            assert!(others.iter().all(|other| other.path != file.path), "{}", file.path);
            assert!(others.iter().all(|other| other.etag != file.etag), "{}", file.path);
        }
    }

    #[test]
    fn the_page_has_no_script_or_style_of_its_own_and_loads_nothing_from_elsewhere() {
        for file in files().iter().filter(|file| !file.content_type.contains("json")) {
            for foreign in ["src=\"http", "href=\"http", "url(http", "import(\"http", "@import"] {
                assert!(!file.text.contains(foreign), "{}: {foreign}", file.path);
            }
            for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!file.text.contains(sink), "{}: {sink}", file.path);
            }
        }
        for inline in ["<style", " style=", "onclick", "javascript:", "http"] {
            assert!(!INDEX.contains(inline), "{inline}");
        }
        assert!(!INDEX.contains("<script>"));
    }
}
