//! The language of AAEP.
