//! A small JSON reader made for the hot path.
//!
//! One pass over the text checks the grammar (RFC 8259) and notes where each member of the
//! outermost object lies; nothing is copied and no tree is built. Nested values are handed out as
//! [`Raw`] slices and read again only by the type that wants them, so the work stays linear: the
//! protocol's own objects nest three deep at most, and opaque ones are never entered twice.
//!
//! What the grammar alone would let through but cannot be interpreted safely is a [`JsonFault`]:
//! duplicate names, lone surrogates, integers that do not survive a double.

mod canonical;
mod fault;
mod marks;
mod members;
mod names;
mod pointer;
mod scan;
mod string;
mod walk;
mod write;

pub use canonical::Canonical;
pub use fault::{JsonFault, JsonFaultKind};
pub use members::{Member, Members, elements, is_number, string_value};
pub use pointer::pointer_at;
pub use scan::Raw;
pub use string::JsonString;
pub use walk::{Step, walk};
pub use write::{Writer, write_string};

pub(crate) use members::each_member;
pub(crate) use pointer::escape as escape_name;
