//! The shallow index of one object.

use std::borrow::Cow;

use super::fault::{JsonFault, JsonFaultKind};
use super::marks::Marks;
use super::scan::{Raw, Scanner};

/// One member of an object: its name, decoded, and its value, untouched.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// The value as it stands in the text.
    pub value: Raw<'a>,
}

/// How many members an event usually has at most.
const USUAL: usize = 24;
/// How long a member usually is at least, with its name.
const SHORT: usize = 32;

/// The members of one object, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members<'a> {
    list: Vec<Member<'a>>,
    faults: Vec<JsonFault>,
    ambiguity: Option<JsonFault>,
    depth: usize,
    longest_string: usize,
}

impl<'a> Members<'a> {
    /// Indexes the object at the start of `text`, after optional space.
    ///
    /// Names that stand twice in nested objects are among the faults. In the indexed object itself
    /// they are not: readers meet them among the members, or ask [`Self::repeated`].
    ///
    /// Returns the members and how many bytes were read. `None` in place of the members means that
    /// the value is sound JSON but no object.
    pub fn index(text: &'a str, max_depth: usize) -> Result<(Option<Self>, usize), Box<JsonFault>> {
        let marks = Marks::of(text.as_bytes());
        let mut scanner = Scanner::new(text, marks.words(), max_depth);
        scanner.skip_space();
        match scanner.peek() {
            None => return Err(scanner.fatal(JsonFaultKind::Nothing)),
            Some(b'{') => {}
            Some(_) => {
                scanner.value()?;
                return Ok((None, scanner.offset()));
            }
        }
        let mut list = Vec::with_capacity((text.len() / SHORT).clamp(4, USUAL));
        scanner.members(0, |_, name, value| list.push(Member { name: name.decode(), value }))?;
        let (offset, depth) = (scanner.offset(), scanner.depth());
        let longest_string = scanner.longest_string();
        let ambiguity = scanner.ambiguity().cloned();
        let faults = scanner.into_faults();
        Ok((Some(Self { list, faults, ambiguity, depth, longest_string }), offset))
    }

    /// Indexes a text that must hold one value and nothing else.
    pub fn whole(text: &'a str, max_depth: usize) -> Result<Option<Self>, Box<JsonFault>> {
        let (members, end) = Self::index(text, max_depth)?;
        let rest = &text.as_bytes()[end..];
        match rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
            Some(more) => {
                Err(Box::new(JsonFault { offset: end + more, kind: JsonFaultKind::Trailing }))
            }
            None => Ok(members),
        }
    }

    /// Indexes a nested object that a scan has already found sound.
    pub(crate) fn again(text: &'a str) -> Self {
        Self::index(text, usize::MAX).ok().and_then(|(members, _)| members).unwrap_or_default()
    }

    /// The value of the first member of that name.
    pub fn find(&self, name: &str) -> Option<Raw<'a>> {
        self.list.iter().find(|member| member.name == name).map(|member| member.value)
    }

    /// The decoded value of a member that is a string.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        match self.find(name)? {
            Raw::String(string) => Some(string.decode()),
            _ => None,
        }
    }

    /// All members in order.
    pub fn iter(&self) -> impl Iterator<Item = &Member<'a>> {
        self.list.iter()
    }

    /// A name that stands twice.
    pub fn repeated(&self) -> Option<&str> {
        let names: Vec<&str> = self.list.iter().map(|member| member.name.as_ref()).collect();
        crate::list::repeated(&names).map(|index| names[index])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the object is `{}`.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The longest string anywhere in this object, in bytes as written.
    pub fn longest_string(&self) -> usize {
        self.longest_string
    }

    /// Why two sound readers may read two things in this object: a name that stands twice, in it or
    /// at any depth below, or half of a character. Decisions rely on this, not on
    /// [`Self::faults`], which is for messages to people.
    pub fn ambiguity(&self) -> Option<JsonFault> {
        let twice = || JsonFault { offset: 0, kind: JsonFaultKind::DuplicateName };
        self.ambiguity.clone().or_else(|| self.repeated().map(|_| twice()))
    }

    /// What was wrong with the text without ending the reading; of a great many faults, the first
    /// ones, and the first that makes the text ambiguous.
    pub fn faults(&self) -> &[JsonFault] {
        &self.faults
    }

    /// How deep the object is nested, itself included.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

impl<'a> IntoIterator for Members<'a> {
    type Item = Member<'a>;
    type IntoIter = std::vec::IntoIter<Member<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// Hands out the members of an object that a scan has already found sound.
/// Whether a text is one JSON number.
pub fn is_number(text: &str) -> bool {
    let object = format!("{{\"n\":{text}}}");
    let members = Members::whole(&object, 2).ok().flatten().unwrap_or_default();
    members.len() == 1 && matches!(members.find("n"), Some(Raw::Number(_)))
}

/// The text of a JSON string; `None` for other values.
pub fn string_value(json: &str) -> Option<String> {
    let object = ["{\"a\":", json, "}"].concat();
    let members = Members::whole(&object, 8).ok().flatten()?;
    members.text("a").map(|text| text.into_owned())
}

pub(crate) fn each_member<'a>(text: &'a str, mut member: impl FnMut(Cow<'a, str>, Raw<'a>)) {
    // The text was scanned before: there is nothing left to fail.
    let marks = Marks::of(text.as_bytes());
    let mut scanner = Scanner::new(text, marks.words(), usize::MAX);
    let _ = scanner.members(0, |_, name, value| member(name.decode(), value));
}

/// The elements of an array that a scan has already found sound, such as [`Raw::Array`]; of other
/// text, as many as can be made out.
pub fn elements(text: &str) -> Vec<Raw<'_>> {
    let mut list = Vec::new();
    let marks = Marks::of(text.as_bytes());
    let _ = Scanner::new(text, marks.words(), usize::MAX).array(0, |value| list.push(value));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_their_text() {
        let members = Members::whole(r#" {"b":[1, 2],"a":"x\u0041"} "#, 8).unwrap().unwrap();
        let names: Vec<_> = members.iter().map(|member| member.name.as_ref()).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(members.find("b"), Some(Raw::Array("[1, 2]")));
        assert_eq!(members.text("a").as_deref(), Some("xA"));
    }

    #[test]
    fn a_value_that_is_no_object_is_told_apart_from_a_broken_one() {
        assert_eq!(Members::whole("[1]", 8), Ok(None));
        assert_eq!(
            Members::whole("  ", 8),
            Err(Box::new(JsonFault { offset: 2, kind: JsonFaultKind::Nothing }))
        );
        assert_eq!(
            Members::whole("{} {}", 8),
            Err(Box::new(JsonFault { offset: 3, kind: JsonFaultKind::Trailing }))
        );
    }

    // covers: E1
    #[test]
    fn an_object_that_can_be_read_in_two_ways_says_so() {
        let ambiguity = |text| Members::whole(text, 8).unwrap().unwrap().ambiguity();
        assert_eq!(ambiguity(r#"{"a":{"b":1e999}}"#), None);
        for text in [r#"{"a":1,"a":2}"#, r#"{"x":[{"a":1,"\u0061":2}]}"#, r#"{"x":"\udc00"}"#] {
            assert!(ambiguity(text).is_some_and(|fault| fault.kind.is_ambiguous()), "{text}");
        }
    }

    #[test]
    fn an_index_says_where_its_value_ends() {
        let (members, end) = Members::index("{\"a\":1}{\"b\":2}", 8).unwrap();
        assert_eq!((members.unwrap().len(), end), (1, 7));
    }
}
