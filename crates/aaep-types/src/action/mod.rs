//! The hub's own account of an action that is asked about: `urn:aaep-rs:action:v1` (prefix `action`).
//!
//! An agent writes the question. What it writes need not be what will run: "Save a note" may stand
//! over a transfer. So every `awaiting.confirmation` that names a tool carries, in `extensions`, the
//! tool and the arguments as the hub has them, in a form that people can read, with the digest that
//! consent is bound to.
//!
//! ```
//! use aaep_types::action::ReadableArguments;
//!
//! let readable = ReadableArguments::of(r#"{"to":{"name":"Eve"},"euros":[9001],"password":"x"}"#);
//! assert_eq!(readable.text, "to.name: Eve\neuros[0]: 9001\npassword: [password removed]");
//! assert!(readable.redacted && !readable.shortened);
//! ```

mod readable;

use crate::json::Writer;
use crate::text::{Name, ToolName};
use crate::vocabulary::DescribedBy;
use crate::wire::{Object, Unknown, object};

pub use readable::{MAX_CHARACTERS, MAX_VALUE_CHARACTERS, ReadableArguments};

/// The address of the extension.
pub const URI: &str = "urn:aaep-rs:action:v1";
/// Its prefix.
pub const PREFIX: &str = "action";

object! {
    /// What the hub itself says of an action.
    pub struct Account, fields AccountFields, unknown(Unknown::Keep) {
        /// The tool that would run.
        required tool: ToolName<'a>, X7;
        /// Its arguments: one `path: value` line for each value. Control characters are written as
        /// codes, secrets are taken out.
        required arguments: Name<'a, 0, 2000>, X7;
        /// The digest of tool and arguments, to which consent is bound.
        required digest: Name<'a, 1, 256>, X7;
        /// Whose words the question's are.
        required described_by: DescribedBy, X7;
        /// Whether something of the arguments was left out.
        optional shortened: bool, X7;
        /// Whether a secret was taken out.
        optional redacted: bool, X7;
    }
}

impl<'a> Account<'a> {
    /// The account of an action with these arguments; `None` if the tool has no proper name.
    pub fn new(
        tool: &'a str,
        readable: &'a ReadableArguments,
        digest: &'a str,
        described_by: DescribedBy,
    ) -> Option<Self> {
        Some(Self {
            tool: ToolName::parse(tool).ok()?,
            arguments: Name::new(readable.text.as_str()).ok()?,
            digest: Name::new(digest).ok()?,
            described_by,
            shortened: readable.shortened.then_some(true),
            redacted: readable.redacted.then_some(true),
            other: Vec::new(),
        })
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        let mut out = Writer::with_capacity(self.arguments.len() + 256);
        out.open('{');
        self.write_members(&mut out);
        out.close('}');
        out.finish()
    }
}
