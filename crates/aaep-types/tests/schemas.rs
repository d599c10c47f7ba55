//! Our types and our schemas must agree wherever a schema can speak.

mod support;

use aaep_types::{Severity, schema, validate};
use serde_json::Value;
use support::judge::Judge;
use support::mutate::{Mutator, Random, near_string};
use support::vectors;

/// How many mutated documents are compared.
const MUTATIONS: u64 = 20_000;

#[derive(Debug, Default)]
struct Counts {
    accepted: usize,
    rejected: usize,
    /// Only rules beyond any schema were broken, so there is nothing to compare.
    beyond: usize,
    /// Not even a document to a schema.
    unread: usize,
}

/// Compares both verdicts on one text; the error tells the difference.
fn compare(judge: &Judge, bytes: &[u8], counts: &mut Counts) -> Result<(), String> {
    let problems = validate(bytes);
    let beyond = |id: &str| schema::BEYOND.iter().any(|(rule, _)| rule.id == id);
    let (mut errors, mut skipped) = (Vec::new(), false);
    for problem in problems {
        if beyond(problem.rule.id)
            && (problem.severity == Severity::Error || problem.rule.id == "D21")
        {
            skipped = true;
        } else if problem.severity == Severity::Error {
            errors.push(problem);
        }
    }
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else {
        counts.unread += 1;
        return if skipped || !errors.is_empty() { Ok(()) } else { Err("not JSON".into()) };
    };
    match (errors.first(), judge.accepts(&document)) {
        (None, _) if skipped => counts.beyond += 1,
        (None, true) => counts.accepted += 1,
        (Some(_), false) => counts.rejected += 1,
        (None, false) => return Err(format!("the schema objects: {}", judge.objection(&document))),
        (Some(error), true) => return Err(format!("the schema accepts, but: {error}")),
    }
    Ok(())
}

/// The documents of some folders; long ones cost much and show little.
fn documents(folders: &[&str]) -> Vec<Value> {
    let texts = folders.iter().copied().flat_map(vectors);
    texts
        .filter(|vector| vector.bytes.len() < 8_000)
        .filter_map(|vector| serde_json::from_slice::<Value>(&vector.bytes).ok())
        .filter(Value::is_object)
        .collect()
}

// covers: E3, E4, E19, T22, C15, D13, H12, X3
#[test]
fn types_and_schemas_agree_on_every_vector() {
    let (judge, mut counts) = (Judge::new(), Counts::default());
    for folder in ["valid", "warning", "invalid"] {
        for vector in vectors(folder) {
            if let Err(difference) = compare(&judge, &vector.bytes, &mut counts) {
                panic!("vectors/{folder}/{}: {difference}", vector.name);
            }
        }
    }
    println!("vectors: {counts:?}");
    assert!(counts.accepted > 150 && counts.rejected > 200, "{counts:?}");
}

// covers: E3, E4, E19, T22, C15, D13, H12, X3
#[test]
fn types_and_schemas_agree_on_mutated_messages() {
    let (judge, mut counts) = (Judge::new(), Counts::default());
    let mutator = Mutator::new(documents(&["valid", "warning"]), documents(&["invalid"]));
    let mut differences = Vec::new();
    for seed in 0..MUTATIONS {
        let text = mutator.text(&mut Random::new(seed + 1));
        if let Err(difference) = compare(&judge, text.as_bytes(), &mut counts) {
            let shown: String = text.chars().take(900).collect();
            differences.push(format!("seed {seed}: {difference}\n    {shown}"));
        }
    }
    println!("mutations: {counts:?}");
    let first: Vec<_> = differences.iter().take(12).cloned().collect();
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), first.join("\n"));
    assert!(counts.accepted > 4_000 && counts.rejected > 10_000, "{counts:?}");
}

// covers: E3, E4, E7, E9, E18, D22, X3
#[test]
fn types_and_schemas_agree_on_the_forms_of_strings() {
    let (judge, mut counts) = (Judge::new(), Counts::default());
    let everything = documents(&["valid"]);
    let of_type = |name: &str| {
        everything.iter().filter(|d| d["type"] == name).max_by_key(|d| d.to_string().len())
    };
    let (event, reply) = (of_type("aaep:agent.session.errored"), of_type("confirmation.reply"));
    let (event, reply) = (event.expect("a vector"), reply.expect("a vector"));
    let places = [
        (event, "/type"),
        (event, "/@context/1"),
        (event, "/event_id"),
        (event, "/timestamp"),
        (event, "/aaep_version"),
        (event, "/error_uri"),
        (event, "/error_code"),
        (event, "/localization_hints/script"),
        (reply, "/timestamp"),
        (reply, "/subscription_id"),
    ];
    for seed in 0..5_000 {
        let mut random = Random::new(3_000_000 + seed);
        let (document, pointer) = random.pick(&places);
        let mut document = (*document).clone();
        let string = near_string(&mut random);
        *document.pointer_mut(pointer).expect("a place") = string.clone().into();
        let text = document.to_string();
        if let Err(difference) = compare(&judge, text.as_bytes(), &mut counts) {
            panic!("{pointer} {string:?}: {difference}");
        }
        // The same string as the name of a member and as a prefix.
        let mut document = event.clone();
        // The only one: an address declares one prefix.
        document["extensions"] = serde_json::json!({ string.as_str(): {} });
        compare(&judge, document.to_string().as_bytes(), &mut counts).expect(&string);
        let mut document = event.clone();
        document[string.as_str()] = "x".into();
        compare(&judge, document.to_string().as_bytes(), &mut counts).expect(&string);
    }
    println!("strings: {counts:?}");
    assert!(counts.accepted > 4_000 && counts.rejected > 8_000, "{counts:?}");
}
