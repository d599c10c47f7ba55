//! Profiles (§7.10, §9.6): files that say which level and which extensions a domain needs, and what has
//! to hold there besides the protocol's own rules.
//!
//! A profile adds nothing that can be said; it narrows what may be. Its rules look at one event each, or
//! at what has to follow an event in its session.
//!
//! ```
//! use aaep_types::profile::Profile;
//!
//! let profile = Profile::parse(br#"{
//!     "profile": "https://example.org/profiles/medai/v1", "version": "1.0.0", "name": "Medical",
//!     "level": 2,
//!     "rules": [{ "id": "MED2", "text": "Give five minutes to answer.",
//!         "types": ["aaep:agent.awaiting.confirmation"], "least": { "timeout_seconds": 300 } }]
//! }"#).unwrap();
//! let hasty = br#"{"type":"aaep:agent.awaiting.confirmation","timeout_seconds":60}"#;
//! assert_eq!(profile.broken_by(hasty)[0].id, "MED2");
//! ```

use std::collections::BTreeSet;
use std::fmt;

use crate::json::{Members, Raw, elements};
use crate::version::Version;

/// How deep a profile and an event may nest.
const DEPTH: usize = 64;
/// The largest profile, in bytes, and its most rules.
pub const MAX_BYTES: usize = 256 * 1024;
const MAX_RULES: usize = 256;

/// What a domain asks for besides the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its address.
    pub uri: String,
    /// Its version.
    pub version: String,
    /// What people call it.
    pub name: String,
    /// The level that it needs.
    pub level: u8,
    /// The extensions that it needs, by their addresses.
    pub extensions: Vec<String>,
    /// What has to hold.
    pub rules: Vec<ProfileRule>,
}

/// One thing that has to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileRule {
    /// Names it.
    pub id: String,
    /// What has to hold, in a sentence.
    pub text: String,
    /// The events that it is about: types, or prefixes with a trailing `*`.
    pub types: Vec<String>,
    /// And only those of them whose members are like this.
    pub when: Vec<(String, Wanted)>,
    /// Members that must be there, such as `extensions.medai.phi_categories`.
    pub needs: Vec<String>,
    /// Numbers that must be at least this.
    pub least: Vec<(String, f64)>,
    /// Members that must be one of these.
    pub one_of: Vec<(String, Vec<Wanted>)>,
    /// The type of an event that must follow in the session.
    pub followed_by: Option<String>,
}

/// A value that a member has: a text, which may end in `*`, a number, true or false.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// A text, or the beginning of one before a `*`.
    Text(String),
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
}

impl Wanted {
    fn read(raw: Raw<'_>) -> Option<Self> {
        Some(match raw {
            Raw::String(text) => Self::Text(text.decode().into_owned()),
            Raw::Number(text) => Self::Number(text.parse().ok()?),
            Raw::Bool(flag) => Self::Flag(flag),
            _ => return None,
        })
    }

    fn is(&self, raw: Raw<'_>) -> bool {
        match (self, raw) {
            (Self::Text(pattern), Raw::String(text)) => matches(pattern, &text.decode()),
            (Self::Number(wanted), Raw::Number(text)) => text.parse() == Ok(*wanted),
            (Self::Flag(wanted), Raw::Bool(flag)) => *wanted == flag,
            _ => false,
        }
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => text.starts_with(prefix),
        None => pattern == text,
    }
}

/// Why a file is no profile, in a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProfile(String);

impl fmt::Display for NoProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoProfile {}

fn wrong(text: impl Into<String>) -> NoProfile {
    NoProfile(text.into())
}

impl Profile {
    /// Reads a profile.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoProfile> {
        if bytes.len() > MAX_BYTES {
            return Err(wrong(format!("A profile has at most {MAX_BYTES} bytes.")));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("A profile is JSON in UTF-8."))?;
        let members = Members::whole(text, DEPTH)
            .map_err(|fault| wrong(format!("{} (byte {})", fault.kind, fault.offset)))?
            .filter(|members| members.faults().is_empty() && members.repeated().is_none())
            .ok_or_else(|| wrong("A profile is one JSON object, each member once."))?;
        let known = ["profile", "version", "name", "level", "extensions", "rules"];
        only(&members, &known, "a profile")?;
        let needed = |name: &str| {
            let text = members.text(name).filter(|text| !text.trim().is_empty());
            text.map(|text| text.into_owned())
                .ok_or_else(|| wrong(format!("Add `{name}`, a text.")))
        };
        let version = needed("version")?;
        if Version::parse(version.as_str()).is_err() {
            return Err(wrong("`version` is a version such as 1.0.0."));
        }
        let level = match members.find("level") {
            Some(Raw::Number(level)) => level.parse().ok().filter(|level| (1..=3).contains(level)),
            _ => None,
        };
        let rules = match members.find("rules") {
            None => Vec::new(),
            Some(Raw::Array(list)) => {
                elements(list).into_iter().map(ProfileRule::read).collect::<Result<Vec<_>, _>>()?
            }
            Some(_) => return Err(wrong("`rules` is a list.")),
        };
        if rules.len() > MAX_RULES {
            return Err(wrong(format!("A profile has at most {MAX_RULES} rules.")));
        }
        let mut ids = BTreeSet::new();
        if let Some(twice) = rules.iter().find(|rule| !ids.insert(&rule.id)) {
            return Err(wrong(format!("Two rules have the id `{}`; give each its own.", twice.id)));
        }
        Ok(Self {
            uri: needed("profile")?,
            version,
            name: needed("name")?,
            level: level.ok_or_else(|| wrong("`level` is 1, 2 or 3."))?,
            extensions: texts(&members, "extensions")?,
            rules,
        })
    }

    // enforces: X6, X9
    /// The rules that an event breaks by itself.
    pub fn broken_by(&self, event: &[u8]) -> Vec<&ProfileRule> {
        let event = std::str::from_utf8(event).unwrap_or_default();
        let Some(members) = Members::whole(event, DEPTH).ok().flatten() else { return Vec::new() };
        self.rules.iter().filter(|rule| rule.is_about(&members) && !rule.holds(&members)).collect()
    }

    // enforces: X9
    /// What a manifest lacks that the profile needs: its level, and its extensions. One sentence each.
    pub fn lacking_in(&self, manifest: &[u8]) -> Vec<String> {
        let manifest = std::str::from_utf8(manifest).unwrap_or_default();
        let members = Members::whole(manifest, DEPTH).ok().flatten().unwrap_or_default();
        let listed = |name: &str| match members.find(name) {
            Some(Raw::Array(list)) => elements(list),
            _ => Vec::new(),
        };
        let mut lacking = Vec::new();
        let level = Wanted::Number(self.level.into());
        if !listed("conformance_levels_supported").into_iter().any(|raw| level.is(raw)) {
            lacking
                .push(format!("Support conformance level {}; the profile needs it.", self.level));
        }
        let supported = listed("extensions_supported");
        for uri in &self.extensions {
            let is_it = |raw: &Raw<'_>| matches!(raw, Raw::String(text) if text.decode() == *uri);
            if !supported.iter().any(is_it) {
                lacking.push(format!("Support the extension {uri}; the profile needs it."));
            }
        }
        lacking
    }

    /// The rules by which something has to follow this event, with their places.
    pub fn asks_to_follow(
        &self,
        event: &Members<'_>,
    ) -> impl Iterator<Item = (usize, &ProfileRule)> {
        let rules = self.rules.iter().enumerate();
        rules.filter(move |(_, rule)| rule.followed_by.is_some() && rule.is_about(event))
    }
}

impl ProfileRule {
    fn read(raw: Raw<'_>) -> Result<Self, NoProfile> {
        let Raw::Object(text) = raw else { return Err(wrong("A rule is an object.")) };
        let members = Members::whole(text, DEPTH).ok().flatten().unwrap_or_default();
        let id = members.text("id").unwrap_or_default().into_owned();
        let of = |what: &str| wrong(format!("In rule `{id}`: {what}"));
        let known = ["id", "text", "types", "when", "needs", "least", "one_of", "followed_by"];
        only(&members, &known, "a rule").map_err(|NoProfile(text)| of(&text))?;
        let text = members.text("text").unwrap_or_default().into_owned();
        if id.trim().is_empty() || text.trim().is_empty() {
            return Err(of("Add `id` and `text`, which people read when it is broken."));
        }
        let types = texts(&members, "types").map_err(|NoProfile(text)| of(&text))?;
        if types.is_empty() {
            return Err(of("Add `types`, a list of event types."));
        }
        let when = pairs(&members, "when", Wanted::read)
            .ok_or_else(|| of("`when` is an object of texts, numbers, true or false."))?;
        let number = |raw: Raw<'_>| match raw {
            Raw::Number(text) => text.parse().ok(),
            _ => None,
        };
        let least = pairs(&members, "least", number)
            .ok_or_else(|| of("`least` is an object of numbers."))?;
        let any = |raw: Raw<'_>| match raw {
            Raw::Array(list) => elements(list).into_iter().map(Wanted::read).collect(),
            _ => None,
        };
        let one_of =
            pairs(&members, "one_of", any).ok_or_else(|| of("`one_of` is an object of lists."))?;
        let needs = texts(&members, "needs").map_err(|NoProfile(text)| of(&text))?;
        let followed_by = members.text("followed_by").map(|name| name.into_owned());
        let rule = Self { id: id.clone(), text, types, when, needs, least, one_of, followed_by };
        let empty = rule.needs.is_empty() && rule.least.is_empty() && rule.one_of.is_empty();
        if empty && rule.followed_by.is_none() {
            return Err(of("Say what has to hold: `needs`, `least`, `one_of` or `followed_by`."));
        }
        Ok(rule)
    }

    /// Whether it is about this event.
    pub fn is_about(&self, event: &Members<'_>) -> bool {
        let name = event.text("type").unwrap_or_default();
        self.types.iter().any(|pattern| matches(pattern, &name))
            && self.when.iter().all(|(path, wanted)| at(event, path, |raw| wanted.is(raw)))
    }

    /// Whether it holds for an event that it is about.
    fn holds(&self, event: &Members<'_>) -> bool {
        let number = |raw: Raw<'_>, least: f64| match raw {
            Raw::Number(text) => text.parse::<f64>().is_ok_and(|number| number >= least),
            _ => false,
        };
        self.needs.iter().all(|path| at(event, path, |raw| raw != Raw::Null))
            && self.least.iter().all(|(path, least)| at(event, path, |raw| number(raw, *least)))
            && self
                .one_of
                .iter()
                .all(|(path, list)| at(event, path, |raw| list.iter().any(|wanted| wanted.is(raw))))
    }
}

/// Whether there is a value at this path, such as `extensions.medai.confidence`, and it is like that.
fn at(event: &Members<'_>, path: &str, like: impl Fn(Raw<'_>) -> bool) -> bool {
    let Some((first, rest)) = path.split_once('.') else {
        return event.find(path).is_some_and(like);
    };
    let Some(Raw::Object(text)) = event.find(first) else { return false };
    let inner = Members::whole(text, DEPTH).ok().flatten().unwrap_or_default();
    // The path is shorter each time, and bounded by the file.
    let like: &dyn Fn(Raw<'_>) -> bool = &like;
    at(&inner, rest, like)
}

fn only(members: &Members<'_>, known: &[&str], what: &str) -> Result<(), NoProfile> {
    match members.iter().find(|member| !known.contains(&&*member.name)) {
        None => Ok(()),
        Some(other) => Err(wrong(format!(
            "`{}` is not known in {what}; {} are.",
            other.name,
            known.join(", ")
        ))),
    }
}

fn texts(members: &Members<'_>, name: &str) -> Result<Vec<String>, NoProfile> {
    let expected = || wrong(format!("`{name}` is a list of texts."));
    match members.find(name) {
        None => Ok(Vec::new()),
        Some(Raw::Array(list)) => elements(list)
            .into_iter()
            .map(|raw| match raw {
                Raw::String(text) => Ok(text.decode().into_owned()),
                _ => Err(expected()),
            })
            .collect(),
        Some(_) => Err(expected()),
    }
}

fn pairs<T>(
    members: &Members<'_>,
    name: &str,
    read: impl Fn(Raw<'_>) -> Option<T>,
) -> Option<Vec<(String, T)>> {
    match members.find(name) {
        None => Some(Vec::new()),
        Some(Raw::Object(text)) => {
            let members = Members::whole(text, DEPTH).ok().flatten()?;
            members.iter().map(|m| Some((m.name.clone().into_owned(), read(m.value)?))).collect()
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEDICAL: &[u8] = include_bytes!("../../../vectors/profiles/medical.json");

    // covers: X6, X9
    #[test]
    fn an_event_breaks_the_rules_that_are_about_it_and_no_others() {
        let profile = Profile::parse(MEDICAL).unwrap();
        assert_eq!((profile.level, profile.version.as_str()), (2, "1.0.0"));
        let broken = |event: &str| -> Vec<&str> {
            profile.broken_by(event.as_bytes()).iter().map(|rule| &*rule.id).collect()
        };
        let call = r#"{"type":"aaep:agent.tool.invoked","tool":"patient.read""#;
        assert_eq!(broken(&format!("{call}}}")), ["MED1"]);
        let marked = r#","extensions":{"medai":{"phi_categories":["medications"]}}}"#;
        assert!(broken(&format!("{call}{marked}")).is_empty());
        assert!(
            broken(&call.replace("patient.read", "weather").replace("\"weather\"", "\"weather\"}"))
                .is_empty()
        );
        let ask = |seconds: u32| {
            format!(r#"{{"type":"aaep:agent.awaiting.confirmation","timeout_seconds":{seconds}}}"#)
        };
        assert_eq!(broken(&ask(299)), ["MED2"]);
        assert!(broken(&ask(300)).is_empty());
        assert!(broken("no json").is_empty());
    }

    // covers: X9
    #[test]
    fn a_manifest_lacks_the_level_and_the_extensions_that_it_does_not_name() {
        let profile = Profile::parse(MEDICAL).unwrap();
        let manifest = |levels: &str, extensions: &str| {
            format!(
                r#"{{"conformance_levels_supported":{levels},"extensions_supported":{extensions}}}"#
            )
        };
        let medical = r#"["https://example.org/medai/context/v1"]"#;
        assert!(profile.lacking_in(manifest("[1,2]", medical).as_bytes()).is_empty());
        let lacking = profile.lacking_in(manifest("[1]", medical).as_bytes());
        assert_eq!(lacking, ["Support conformance level 2; the profile needs it."]);
        let lacking = profile.lacking_in(manifest("[2]", "[]").as_bytes());
        assert!(lacking.len() == 1 && lacking[0].contains("medai"), "{lacking:?}");
        assert_eq!(profile.lacking_in(b"{}").len(), 2);
    }

    // covers: X9
    #[test]
    fn what_is_no_profile_is_refused_with_a_sentence() {
        let text = String::from_utf8(MEDICAL.to_vec()).unwrap();
        for (from, to, says) in [
            ("\"level\": 2", "\"level\": 4", "`level`"),
            ("\"version\": \"1.0.0\"", "\"version\": \"one\"", "`version`"),
            ("\"name\"", "\"title\"", "`title` is not known"),
            ("\"types\"", "\"kinds\"", "`kinds` is not known"),
            ("300", "\"long\"", "`least` is an object of numbers"),
            ("\"MED2\"", "\"MED1\"", "Two rules have the id `MED1`"),
        ] {
            let refused = Profile::parse(text.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(refused.to_string().contains(says), "{refused}");
        }
        assert!(Profile::parse(b"[]").is_err() && Profile::parse(b"\xff").is_err());
    }
}
