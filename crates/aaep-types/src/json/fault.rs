//! What can be wrong with the text itself.

use std::fmt;

/// Something wrong with the text itself, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// Byte offset in the text that was scanned.
    pub offset: usize,
    /// What it is.
    pub kind: JsonFaultKind,
}

/// What can be wrong with JSON text. Everything down to `Nothing` ends the reading; the last
/// three are noted and the reading goes on, so that one message can show all its problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonFaultKind {
    /// The text ended inside a value.
    Unfinished,
    /// A character that cannot stand here.
    Unexpected,
    /// A raw control character inside a string.
    Control,
    /// A backslash followed by something JSON does not know.
    Escape,
    /// A number that is none.
    Number,
    /// Deeper than the limit allows.
    TooDeep,
    /// Larger than the limit allows.
    TooLarge,
    /// Bytes that are not UTF-8.
    Utf8,
    /// Something follows the value.
    Trailing,
    /// There is no value at all.
    Nothing,
    /// A name that this object has already.
    DuplicateName,
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// A number that does not survive being read as a double.
    UnsafeNumber,
}

impl JsonFaultKind {
    /// Whether two sound readers may read two things: which of two members of one name counts, and
    /// what half of a character is, differs from one to the other. Nothing safe rests on such text.
    pub fn is_ambiguous(self) -> bool {
        matches!(self, JsonFaultKind::DuplicateName | JsonFaultKind::LoneSurrogate)
    }
}

impl fmt::Display for JsonFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonFaultKind::Unfinished => "The text ends inside a value; send the whole message.",
            JsonFaultKind::Unexpected => {
                "This character cannot stand here; write plain JSON (RFC 8259)."
            }
            JsonFaultKind::Control => {
                "A control character stands raw in a string; write it as an escape."
            }
            JsonFaultKind::Escape => "This escape does not exist in JSON; double the backslash.",
            JsonFaultKind::Number => {
                "This is not a JSON number; write digits without a leading zero or plus."
            }
            JsonFaultKind::TooDeep => {
                "Objects and arrays are nested deeper than the limit; flatten them."
            }
            JsonFaultKind::TooLarge => {
                "The message is larger than the limit; make it smaller or split it."
            }
            JsonFaultKind::Utf8 => "These bytes are not UTF-8; encode the message as UTF-8.",
            JsonFaultKind::Trailing => "Something follows the message; send one JSON value.",
            JsonFaultKind::Nothing => "There is no message here.",
            JsonFaultKind::DuplicateName => {
                "This name stands twice in one object; keep one of them."
            }
            JsonFaultKind::LoneSurrogate => {
                "Half of a surrogate pair stands alone; write the whole character."
            }
            JsonFaultKind::UnsafeNumber => {
                "This number does not survive as a double; send it as a string."
            }
        })
    }
}
