//! The shallow index of one object.

use smallvec::SmallVec;
use std::borrow::Cow;

use super::scan::{Fault, FaultKind, Measure, Raw, Scanner};

/// One member of an object: its name, decoded, and its value, untouched.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// The value as it stands in the text.
    pub value: Raw<'a>,
}

/// The members of one object, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members<'a> {
    list: SmallVec<[Member<'a>; 24]>,
    faults: Vec<Fault>,
    measure: Measure,
}

impl<'a> Members<'a> {
    /// Indexes the object at the start of `text`, after optional space.
    ///
    /// Returns the members and how many bytes were read. `None` in place of the members means that
    /// the value is sound JSON but no object.
    pub fn index(text: &'a str, max_depth: usize) -> Result<(Option<Self>, usize), Fault> {
        let mut scanner = Scanner::new(text, max_depth);
        scanner.skip_space();
        match scanner.peek() {
            None => return Err(scanner.fatal(FaultKind::Nothing)),
            Some(b'{') => {}
            Some(_) => {
                scanner.value()?;
                return Ok((None, scanner.offset()));
            }
        }
        let mut list = SmallVec::new();
        scanner.object(0, &mut |name, value| list.push(Member { name, value }))?;
        let (offset, measure) = (scanner.offset(), scanner.measure());
        Ok((Some(Self { list, faults: scanner.into_faults(), measure }), offset))
    }

    /// Indexes a text that must hold one value and nothing else.
    pub fn whole(text: &'a str, max_depth: usize) -> Result<Option<Self>, Fault> {
        let (members, end) = Self::index(text, max_depth)?;
        let rest = &text.as_bytes()[end..];
        match rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
            Some(more) => Err(Fault { offset: end + more, kind: FaultKind::Trailing }),
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the object is `{}`.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What was wrong with the text without ending the reading.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The sizes seen.
    pub fn measure(&self) -> Measure {
        self.measure
    }
}

impl<'a> IntoIterator for Members<'a> {
    type Item = Member<'a>;
    type IntoIter = smallvec::IntoIter<[Member<'a>; 24]>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// The elements of an array that a scan has already found sound.
pub(crate) fn elements(text: &str) -> Vec<Raw<'_>> {
    let mut list = Vec::new();
    // The text was scanned before: there is nothing left to fail.
    let _ = Scanner::new(text, usize::MAX).array(0, &mut |value| list.push(value));
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
        assert_eq!(Members::whole("  ", 8), Err(Fault { offset: 2, kind: FaultKind::Nothing }));
        assert_eq!(Members::whole("{} {}", 8), Err(Fault { offset: 3, kind: FaultKind::Trailing }));
    }

    #[test]
    fn an_index_says_where_its_value_ends() {
        let (members, end) = Members::index("{\"a\":1}{\"b\":2}", 8).unwrap();
        assert_eq!((members.unwrap().len(), end), (1, 7));
    }
}
