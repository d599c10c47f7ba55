//! What the two benchmarks share: the messages, and the contenders.

pub mod events;
pub mod judge;

use aaep_types::{Event, Severity, validate};
use judge::Judge;

/// Something that takes a line and says whether it accepts it.
pub type Contender<'a> = (&'static str, Box<dyn Fn(&str) -> bool + 'a>);

/// Ours first, the bare parse third, the jsonschema crate last.
pub fn contenders(judge: &Judge) -> [Contender<'_>; 4] {
    let bare = |line: &str| serde_json::from_slice::<serde_json::Value>(line.as_bytes()).is_ok();
    [
        ("aaep-types, every rule, every problem", Box::new(is_valid)),
        ("aaep-types, to a typed event", Box::new(|line| Event::parse(line.as_bytes()).is_ok())),
        ("serde_json, to a Value, no checks", Box::new(bare)),
        ("jsonschema crate, our schemas, formats on", Box::new(|line| judge.accepts(line))),
    ]
}

fn is_valid(line: &str) -> bool {
    !validate(line.as_bytes()).iter().any(|problem| problem.severity == Severity::Error)
}
