//! What must not happen does not compile.
#![allow(missing_docs)] // tests

// covers: T12, C1, I1, C15, T1
#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
