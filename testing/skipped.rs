//! For tests that need a tool which may be missing; included where it is needed.

/// Says that a test was skipped, past the harness, which swallows what passing tests print.
pub fn skipped(why: &str) {
    use std::io::Write;
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "skipped {}: {why}", thread.name().unwrap_or("a test"));
}
