//! Limits on the size of messages (§3.7).

/// What a receiver takes at most; anything beyond is refused with a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in one message.
    pub max_bytes: usize,
    /// How deep objects and arrays may nest.
    pub max_depth: usize,
}

impl Default for Limits {
    /// A message of 1 MiB works (§8.3), and eight times the recommended depth.
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_depth: 64 }
    }
}

/// How many errors, and how many warnings, of one message are written down: who sends thousands
/// knows by then, and explaining must not cost more than reading.
pub const MAX_PROBLEMS: usize = 100;

/// What the protocol recommends; beyond it we warn and go on.
pub mod soft {
    /// Bytes in one message.
    pub const BYTES: usize = 64 * 1024;
    /// Members at the top level.
    pub const MEMBERS: usize = 32;
    /// Levels of nesting.
    pub const DEPTH: usize = 8;
    /// Bytes in one string.
    pub const STRING_BYTES: usize = 16 * 1024;
    /// Elements of `available_languages`.
    pub const LANGUAGES: usize = 32;
}
