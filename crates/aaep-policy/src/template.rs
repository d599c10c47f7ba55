//! Wording with places for arguments: `Transfer {amount} to {recipient}`.

use aaep_types::{deception, secret};

use crate::arguments::{ArgumentPath, Arguments};
use crate::show::{self, Show};
use crate::words::Words;

/// Characters of a template.
pub(crate) const MAX_TEMPLATE: usize = 1000;
/// Places in a template.
pub(crate) const MAX_PLACES: usize = 16;

/// Words and places.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Words(String),
    Argument(ArgumentPath),
}

impl Template {
    /// Reads a template; a sentence says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("There are no words here.".into());
        }
        if text.chars().count() > MAX_TEMPLATE {
            return Err(format!("There are more than {MAX_TEMPLATE} characters here."));
        }
        if let Some(found) = deception::first(text) {
            // enforces: D34
            return Err(format!("Nobody would hear this as it is shown. {}", found.kind));
        }
        if let Some(found) = secret::find(text).first() {
            // enforces: T14
            return Err(format!("There is what looks like a {} here.", found.kind));
        }
        if text.contains(['\n', '\r', '\t']) {
            return Err("The words stand on one line.".into());
        }
        let parts = parts(&deception::compose(text))?;
        let places = parts.iter().filter(|part| matches!(part, Part::Argument(_))).count();
        if places > MAX_PLACES {
            return Err(format!("There are more than {MAX_PLACES} places for arguments here."));
        }
        let template = Self { parts };
        if template.quotes_twice() {
            return Err("There are quotes around a place; text is put in quotes anyway.".into());
        }
        Ok(template)
    }

    fn quotes_twice(&self) -> bool {
        self.parts.windows(2).any(|pair| match pair {
            [Part::Words(words), Part::Argument(_)] => words.ends_with(['"', '“', '„', '«']),
            [Part::Argument(_), Part::Words(words)] => words.starts_with(['"', '”', '“', '»']),
            _ => false,
        })
    }

    /// The words with the arguments in their places, each with room for so many characters.
    pub(crate) fn render(&self, arguments: &Arguments<'_>, room: usize) -> Words {
        let mut out = Words::default();
        for part in &self.parts {
            match part {
                Part::Words(words) => out.ours(words),
                Part::Argument(place) => match arguments.find(place) {
                    None => out.ours(&format!("({} is missing)", show::name(place.as_str()))),
                    Some(value) => {
                        let mut show = Show::new(room);
                        show.named(place.last(), value);
                        out.add(&show.finish());
                    }
                },
            }
        }
        out
    }
}

fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut words = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        words.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            words.push_str(brace);
            rest = after;
            continue;
        }
        let inside = rest.find(['{', '}']).filter(|end| rest[*end..].starts_with('}'));
        let Some(end) = inside.filter(|_| brace == "{") else {
            return Err(format!("There is a single `{brace}`; write `{brace}{brace}` for one."));
        };
        let place = ArgumentPath::parse(&rest[..end])?;
        if place.as_str().trim() != place.as_str() {
            return Err(format!("There are spaces in `{{{}}}`.", place.as_str()));
        }
        rest = &rest[end + 1..];
        if !words.is_empty() {
            parts.push(Part::Words(std::mem::take(&mut words)));
        }
        parts.push(Part::Argument(place));
    }
    words.push_str(rest);
    if !words.is_empty() {
        parts.push(Part::Words(words));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str, arguments: &str) -> String {
        let arguments = Arguments::read(arguments).unwrap();
        Template::parse(template).unwrap().render(&arguments, 200).finish()
    }

    #[test]
    fn arguments_stand_in_their_places() {
        assert_eq!(
            render("Transfer {amount} to {/to/name}", r#"{"amount":40.00,"to":{"name":"bob"}}"#),
            "Transfer 40.00 to \"bob\""
        );
        assert_eq!(render("{{literal}} {a}", r#"{"a":"{b}","b":1}"#), "{literal} \"{b}\"");
        assert_eq!(render("Pay {amount}", "{}"), "Pay (amount is missing)");
        assert_eq!(render("Pay {two words}", "{}"), "Pay (\"two words\" is missing)");
    }

    // covers: T14
    #[test]
    fn words_and_argument_together_give_nothing_away() {
        assert_eq!(render("password={value}", r#"{"value":"x1"}"#), "password=[password removed]");
        assert_eq!(
            render("Use card {n}", r#"{"n":4111111111111111}"#),
            "Use card [card number removed]"
        );
        assert_eq!(
            render("Log in with {password}", r#"{"password":"x"}"#),
            "Log in with [password removed]"
        );
    }

    #[test]
    fn templates_that_cannot_be_meant_are_refused() {
        for text in [
            "",
            "  ",
            "a {",
            "a }",
            "a {b",
            "a {b{c}}",
            "{}",
            "{ a }",
            "two\nlines",
            "a\u{202e}b",
            "password=hunter2",
            "\"{a}\"",
            "“{a}”",
            "{/a~2}",
        ] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
        assert!(Template::parse(&"x".repeat(MAX_TEMPLATE + 1)).is_err());
        assert!(Template::parse(&"{a}".repeat(MAX_PLACES + 1)).is_err());
        assert!(Template::parse(&"{a}".repeat(MAX_PLACES)).is_ok());
    }
}
