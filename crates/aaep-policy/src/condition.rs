//! Conditions on arguments. Each holds, fails, or cannot be judged; what cannot be judged never
//! lets a call through, whatever other rules say.

use std::cmp::Ordering;

use aaep_types::json::Raw;

use crate::arguments::{ArgumentPath, Arguments, text_of};
use crate::decimal::Decimal;
use crate::glob::Glob;

/// The longest text that is compared with a pattern, in bytes.
const MAX_MATCHED_BYTES: usize = 64 * 1024;

/// What one argument has to be.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) place: ArgumentPath,
    pub(crate) tests: Vec<Test>,
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    Equals(Scalar),
    OneOf(Vec<Scalar>),
    Matches(Glob),
    Compare(Comparison, Decimal, String),
    Present(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    GreaterThan,
    LessThan,
    AtLeast,
    AtMost,
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::GreaterThan => order.is_gt(),
            Comparison::LessThan => order.is_lt(),
            Comparison::AtLeast => order.is_ge(),
            Comparison::AtMost => order.is_le(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Comparison::GreaterThan => "greater than",
            Comparison::LessThan => "less than",
            Comparison::AtLeast => "at least",
            Comparison::AtMost => "at most",
        }
    }
}

/// A value that stands in a policy.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Text(String),
    Number(Decimal, String),
    Flag(bool),
}

/// What became of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Holds,
    /// It does not hold; the clause says why.
    Fails(String),
    /// It cannot be decided; the clause says why.
    Unclear(String),
}

impl Condition {
    pub(crate) fn judge(&self, arguments: &Arguments<'_>) -> Truth {
        let value = arguments.find(&self.place);
        let mut truth = Truth::Holds;
        for test in &self.tests {
            match test.judge(value) {
                Judged::Holds => {}
                // A condition that surely fails settles it, whatever else is unclear.
                Judged::Fails => return Truth::Fails(self.says(&test.failure(value.is_none()))),
                Judged::Unclear(why) => truth = Truth::Unclear(self.says(why)),
            }
        }
        truth
    }

    fn says(&self, what: &str) -> String {
        format!("the argument `{}` {what}", self.place.as_str())
    }
}

enum Judged {
    Holds,
    Fails,
    Unclear(&'static str),
}

impl From<bool> for Judged {
    fn from(holds: bool) -> Self {
        if holds { Judged::Holds } else { Judged::Fails }
    }
}

impl Test {
    fn judge(&self, value: Option<Raw<'_>>) -> Judged {
        let Some(value) = value else {
            return matches!(self, Test::Present(false)).into();
        };
        match self {
            Test::Equals(wanted) => wanted.judge(value),
            Test::OneOf(list) => one_of(list, value),
            Test::Matches(glob) => matches(glob, value),
            Test::Compare(comparison, bound, _) => match number(value) {
                Ok(number) => comparison.holds(number.cmp(bound)).into(),
                Err(why) => Judged::Unclear(why),
            },
            Test::Present(wanted) => (*wanted).into(),
        }
    }

    /// Why it fails.
    fn failure(&self, missing: bool) -> String {
        if missing {
            return "is missing".into();
        }
        match self {
            Test::Equals(wanted) => format!("is not {}", wanted.words()),
            Test::OneOf(_) => "is none of those listed".into(),
            Test::Matches(glob) => format!("does not match {}", glob.as_str()),
            Test::Compare(comparison, _, text) => format!("is not {} {text}", comparison.words()),
            Test::Present(_) => "is there".into(),
        }
    }
}

fn one_of(list: &[Scalar], value: Raw<'_>) -> Judged {
    let mut all = Judged::Fails;
    for wanted in list {
        match wanted.judge(value) {
            Judged::Holds => return Judged::Holds,
            Judged::Fails => {}
            unclear => all = unclear,
        }
    }
    all
}

impl Scalar {
    fn judge(&self, value: Raw<'_>) -> Judged {
        match (self, value) {
            (Scalar::Text(wanted), Raw::String(text)) => (text.decode() == wanted.as_str()).into(),
            (Scalar::Text(_), _) => Judged::Unclear("is no text"),
            (Scalar::Flag(wanted), Raw::Bool(flag)) => (*wanted == flag).into(),
            (Scalar::Flag(_), _) => Judged::Unclear("is neither true nor false"),
            (Scalar::Number(wanted, _), value) => match number(value) {
                Ok(number) => (*wanted == number).into(),
                Err(why) => Judged::Unclear(why),
            },
        }
    }

    fn words(&self) -> String {
        match self {
            Scalar::Text(text) => text.clone(),
            Scalar::Number(_, text) => text.clone(),
            Scalar::Flag(flag) => flag.to_string(),
        }
    }
}

/// A number, or a string that holds a plain one; a clause says why there is none. What the tool will
/// read has to be what is judged, so a number that a double does not carry is none.
fn number(value: Raw<'_>) -> Result<Decimal, &'static str> {
    let number = match value {
        Raw::Number(text) if Decimal::is_rounded(text) => {
            return Err("is a number that not every program reads the same");
        }
        Raw::Number(text) => Decimal::parse(text),
        Raw::String(text) => Decimal::parse_plain(&text.decode()),
        _ => None,
    };
    number.ok_or("is no number")
}

/// A pattern is made for plain text. A path that climbs out of a folder, and a line that hides
/// behind another, look like what a pattern means without being it.
fn matches(glob: &Glob, value: Raw<'_>) -> Judged {
    let Some(text) = text_of(value) else { return Judged::Unclear("is no text") };
    if text.len() > MAX_MATCHED_BYTES {
        return Judged::Unclear("is too long to be compared with a pattern");
    }
    if text.chars().any(char::is_control) {
        return Judged::Unclear("has control characters in it");
    }
    if glob.as_str().contains(['/', '\\']) && text.split(['/', '\\']).any(|step| step == "..") {
        return Judged::Unclear("has a step `..` in it");
    }
    glob.matches(&text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(test: Test, arguments: &str) -> Truth {
        let place = ArgumentPath::parse("a").unwrap();
        let arguments = Arguments::read(arguments).unwrap();
        Condition { place, tests: vec![test] }.judge(&arguments)
    }

    fn is_unclear(truth: &Truth) -> bool {
        matches!(truth, Truth::Unclear(_))
    }

    fn at_most(text: &str) -> Test {
        Test::Compare(Comparison::AtMost, Decimal::parse(text).unwrap(), text.into())
    }

    #[test]
    fn numbers_are_compared_exactly_and_may_be_strings() {
        assert_eq!(judge(at_most("10"), r#"{"a":10.0}"#), Truth::Holds);
        assert_eq!(judge(at_most("10"), r#"{"a":"9.99"}"#), Truth::Holds);
        assert_eq!(
            judge(at_most("9007199254740992"), r#"{"a":"9007199254740993"}"#),
            Truth::Fails("the argument `a` is not at most 9007199254740992".into())
        );
        assert!(is_unclear(&judge(at_most("9007199254740992"), r#"{"a":9007199254740993}"#)));
        assert_eq!(
            judge(at_most("0.1"), r#"{"a":"0.10000000000000000000001"}"#),
            Truth::Fails("the argument `a` is not at most 0.1".into())
        );
    }

    #[test]
    fn what_is_of_another_kind_cannot_be_judged() {
        for value in [r#""1.000,00""#, r#""ten""#, "true", "[1]", r#"{"b":1}"#, r#""1e2""#] {
            assert!(is_unclear(&judge(at_most("10"), &format!("{{\"a\":{value}}}"))), "{value}");
        }
        let text = || Test::Equals(Scalar::Text("bob".into()));
        assert!(is_unclear(&judge(text(), r#"{"a":["bob","eve"]}"#)));
        assert!(matches!(judge(text(), r#"{"a":"eve"}"#), Truth::Fails(_)));
        assert!(is_unclear(&judge(Test::Equals(Scalar::Flag(true)), r#"{"a":"true"}"#)));
    }

    #[test]
    fn a_missing_argument_fulfils_nothing_but_its_absence() {
        let fails = Truth::Fails("the argument `a` is missing".into());
        assert_eq!(judge(at_most("10"), "{}"), fails);
        assert_eq!(judge(Test::Present(true), r#"{"a":null}"#), fails);
        assert_eq!(judge(Test::Present(false), r#"{"a":null}"#), Truth::Holds);
        assert_eq!(judge(Test::Present(true), r#"{"a":0}"#), Truth::Holds);
    }

    #[test]
    fn a_pattern_is_not_fooled_by_steps_back_or_hidden_lines() {
        let inside = || Test::Matches(Glob::new("/tmp/*"));
        assert_eq!(judge(inside(), r#"{"a":"/tmp/x..y"}"#), Truth::Holds);
        for text in ["/tmp/../etc/passwd", "/tmp/a/..", "/tmp\\\\..\\\\x", "/tmp/x\\nrm -r /"] {
            assert!(is_unclear(&judge(inside(), &format!("{{\"a\":\"{text}\"}}"))), "{text}");
        }
        assert!(matches!(judge(inside(), r#"{"a":"/etc/x"}"#), Truth::Fails(_)));
    }
}
