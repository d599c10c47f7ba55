//! Full validation of single messages, side by side with what else could do part of the job:
//! `cargo xtask bench validate`.
//!
//! One thread, JSON Lines of about 550 bytes each; once all valid, once with 1 % invalid. Every
//! contender runs in turn, several rounds, and the best round counts, so that a noisy machine
//! disturbs all of them alike.
#![allow(clippy::disallowed_methods)] // a benchmark reads the clock

use std::hint::black_box;
use std::time::{Duration, Instant};

use aaep_types::{Severity, schema, validate};

const EVENTS: usize = 20_000;
const ROUNDS: usize = 7;

fn main() {
    let valid = lines(0);
    let mixed = lines(100);
    let bytes: usize = valid.iter().map(String::len).sum();
    println!("{EVENTS} events of {} bytes on average, one thread", bytes / EVENTS);
    let judge = Judge::new();
    for (name, lines, invalid) in [("all valid", &valid, 0), ("1 % invalid", &mixed, EVENTS / 100)] {
        println!("\n{name}:");
        let contenders: [(&str, &dyn Fn(&str) -> bool); 4] = [
            ("aaep-types, every rule, every problem", &|line| is_valid(line)),
            ("aaep-types, Event::parse to a typed value", &|line| {
                aaep_types::Event::parse(line.as_bytes()).is_ok()
            }),
            ("serde_json to a Value, no checks", &|line| {
                serde_json::from_slice::<serde_json::Value>(line.as_bytes()).is_ok()
            }),
            ("jsonschema crate, our schemas, formats on", &|line| judge.accepts(line)),
        ];
        let mut best = [Duration::MAX; 4];
        for _ in 0..ROUNDS {
            for (slot, (_, accepts)) in best.iter_mut().zip(&contenders) {
                *slot = (*slot).min(time(lines, accepts));
            }
        }
        for (index, (label, accepts)) in contenders.iter().enumerate() {
            let refused = lines.iter().filter(|line| !accepts(line)).count();
            // The bare parse finds nothing wrong; the others find all of it.
            assert!(index == 2 || refused == invalid, "{label} refused {refused} of {invalid}");
            report(label, lines, best[index], accepts);
        }
        println!("  ratio to the jsonschema crate: {:.1}", ratio(best[3], best[0]));
        println!("  ratio to the bare parse:       {:.1}", ratio(best[2], best[0]));
    }
}

fn is_valid(line: &str) -> bool {
    !validate(line.as_bytes()).iter().any(|problem| problem.severity == Severity::Error)
}

fn time(lines: &[String], accepts: &dyn Fn(&str) -> bool) -> Duration {
    let start = Instant::now();
    for line in lines {
        black_box(accepts(black_box(line)));
    }
    start.elapsed()
}

fn report(label: &str, lines: &[String], best: Duration, accepts: &dyn Fn(&str) -> bool) {
    let bytes: usize = lines.iter().map(String::len).sum();
    let allocations = allocation_counter::measure(|| {
        for line in lines {
            black_box(accepts(black_box(line)));
        }
    });
    let seconds = best.as_secs_f64();
    println!(
        "  {label:<44} {:>9.0} events/s {:>6.0} MB/s {:>6.1} allocations/event",
        lines.len() as f64 / seconds,
        bytes as f64 / seconds / 1e6,
        allocations.count_total as f64 / lines.len() as f64,
    );
}

fn ratio(slow: Duration, fast: Duration) -> f64 {
    slow.as_secs_f64() / fast.as_secs_f64()
}

/// The jsonschema crate with our schemas compiled; a message is judged by the schema of its type,
/// as a careful user of that crate would do it.
struct Judge(std::collections::BTreeMap<String, jsonschema::Validator>);

impl Judge {
    fn new() -> Self {
        let schemas = schema::all();
        let resources = schemas.iter().map(|schema| {
            let id = format!("{}{}", schema::BASE, schema.path);
            (id, jsonschema::Resource::from_contents(schema.document.clone()))
        });
        let registry = jsonschema::Registry::new().extend(resources).expect("ours").prepare().expect("ours");
        let compile = |document| {
            jsonschema::options()
                .with_registry(&registry)
                .should_validate_formats(true)
                .build(document)
                .expect("our schemas compile")
        };
        Self(schemas.iter().map(|schema| (schema.path.clone(), compile(&schema.document))).collect())
    }

    fn accepts(&self, line: &str) -> bool {
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(line.as_bytes()) else {
            return false;
        };
        let path = schema::path_for(value["type"].as_str().unwrap_or_default());
        self.0.get(&path).is_some_and(|validator| validator.is_valid(&value))
    }
}

/// Events of a busy session; every `invalid_every`-th breaks a rule.
fn lines(invalid_every: usize) -> Vec<String> {
    (0..EVENTS)
        .map(|number| {
            let line = event(number);
            let break_it = invalid_every > 0 && number % invalid_every == 7;
            if break_it { line.replace("\"evt_", "\"event-") } else { line }
        })
        .collect()
}

fn event(number: usize) -> String {
    let (kind, urgency, payload) = payload(number);
    format!(
        concat!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","#,
            r#""type":"aaep:{}","event_id":"evt_{:032x}","session_id":"sess_{:032x}","#,
            r#""sequence_number":{},"timestamp":"2026-05-24T14:{:02}:{:02}.{:03}Z","#,
            r#""producer":{{"agent_id":"kitchen-helper","agent_version":"1.4.2"}},"#,
            r#""urgency":"{}","localization_hints":{{"primary_language":"en-GB","text_direction":"auto"}},{}}}"#
        ),
        kind, number * 7919, number / 50, number % 50 + 1, number % 60, number % 59, number % 1000, urgency, payload,
    )
}

fn payload(number: usize) -> (&'static str, &'static str, String) {
    let summaries = r#""summary_terse":"Next step","summary_normal":"The oven is preheated and the dough has rested long enough.","summary_detailed":"Step by step: the oven is at two hundred degrees.""#;
    match number % 6 {
        0 => ("agent.state.changed", "background", format!(r#""from_state":"thinking","to_state":"calling_tool",{summaries}"#)),
        1 => ("agent.tool.invoked", "normal", format!(r#""tool":"oven.set","tool_call_id":"call_{number}",{summaries},"risk_level":"low""#)),
        2 => ("agent.tool.completed", "normal", format!(r#""tool":"oven.set","tool_call_id":"call_{number}","status":"success",{summaries}"#)),
        3 => ("agent.progress.updated", "background", format!(r#""progress":{{"percent":{},"step":2,"total_steps":9}},{summaries}"#, number % 100)),
        4 => ("agent.output.streaming", "normal", format!(r#""chunk":"Knead the dough on a floured board until it is smooth, then let it rest under a cloth for \"an hour\".\nMeanwhile, prepare the filling: onions, cream and a little caraway.","position":{number},"complete":false,"coalesce_hint":"sentence""#)),
        _ => ("agent.awaiting.confirmation", "critical", format!(r#""action":"Order flour.","consequence":"Twelve euros are spent.","reply_token":"rpl_{number:032x}","timeout_seconds":300,"default_decision":"reject","risk_level":"medium","irreversible":true,"summary_terse":"Order?","summary_normal":"Order flour for twelve euros?","summary_detailed":"Two bags.""#)),
    }
}
