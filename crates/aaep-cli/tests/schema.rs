//! `aaep schema`, from the outside.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // tests run programs

mod support;

use std::path::Path;

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};
use support::{REPLY, STARTED, file, folder, run};

fn load(folder: &Path, path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(path)).expect(path)).expect(path)
}

#[test]
fn a_schema_is_found_by_name_by_path_and_by_message_type() {
    let by_name = run(&["schema", "core/agent.tool.invoked"]);
    let document: Value = serde_json::from_str(&by_name.out).unwrap();
    let id = "https://aaep-protocol.org/schemas/v1/core/agent.tool.invoked.schema.json";
    assert_eq!((&document["$id"], by_name.code), (&json!(id), 0));
    for name in [
        "core/agent.tool.invoked.schema.json",
        "agent.tool.invoked",
        "aaep:agent.tool.invoked",
        "https://aaep-protocol.org/types/agent.tool.invoked",
    ] {
        assert_eq!(run(&["schema", name]).out, by_name.out, "{name}");
    }
    for name in ["envelope", "subscription.request", "confirmation.reply", "aaep:producer.manifest"]
    {
        assert_eq!(run(&["schema", name]).code, 0, "{name}");
    }
}

#[test]
fn an_unknown_name_lists_the_names_and_ends_with_two() {
    let names = run(&["schema", "--list"]).out;
    for unknown in ["agent.tool", "subscription.other", "medai:seen", ""] {
        let ended = run(&["schema", unknown]);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{unknown}");
        assert!(ended.err.starts_with(&format!("aaep: there is no schema {unknown}")));
        assert!(ended.err.ends_with(&names), "{}", ended.err);
    }
}

#[test]
fn without_a_name_all_schemas_are_one_object() {
    let ended = run(&["schema"]);
    let all: Value = serde_json::from_str(&ended.out).unwrap();
    let names: Vec<_> = all.as_object().unwrap().keys().cloned().collect();
    let listed = run(&["schema", "--list"]).out;
    let listed: Vec<_> = listed.lines().map(|name| format!("{name}.schema.json")).collect();
    assert_eq!(names, listed);
}

#[test]
fn written_schemas_compile_and_judge() {
    let folder = folder("written_schemas").join("new/folder");
    let name = folder.to_str().unwrap();
    let ended = run(&["schema", "--out", name]);
    let listed = run(&["schema", "--list"]).out;
    let paths: Vec<_> = listed.lines().map(|name| format!("{name}.schema.json")).collect();
    let wrote = format!("Wrote {} schemas and 8 contexts of extensions to {name}.\n", paths.len());
    assert_eq!(ended.out, wrote);
    assert_eq!(ended.code, 0);

    let documents: Vec<_> = paths.iter().map(|path| load(&folder, path)).collect();
    let resources =
        documents.iter().map(|document| (document["$id"].as_str().unwrap(), document.clone()));
    let registry = Registry::new().extend(resources).unwrap().prepare().unwrap();
    let compile = |document: &Value| -> Validator {
        jsonschema::options()
            .with_registry(&registry)
            .should_validate_formats(true)
            .build(document)
            .expect("a schema that compiles")
    };
    for (path, message) in
        [("core/agent.session.started", STARTED), ("handshake/confirmation.reply", REPLY)]
    {
        let validator = compile(&load(&folder, &format!("{path}.schema.json")));
        let mut message: Value = serde_json::from_str(message).unwrap();
        assert!(validator.is_valid(&message), "{path}");
        message["timestamp"] = json!(7);
        assert!(!validator.is_valid(&message), "{path}");
    }
    for document in &documents {
        assert!(!compile(document).is_valid(&json!({})), "{}", document["$id"]);
    }
}

#[test]
fn bundled_schemas_need_no_other_file_and_judge_alike() {
    let folder = folder("bundled_schemas");
    let name = folder.to_str().unwrap();
    assert_eq!(run(&["schema", "--bundle", "--out", name]).code, 0);
    for path in run(&["schema", "--list"]).out.lines() {
        let document = load(&folder, &format!("{path}.schema.json"));
        // Without a registry, a reference to another file would not compile.
        let validator = jsonschema::options().build(&document).expect(path);
        assert!(!validator.is_valid(&json!({})), "{path}");
    }
    let started = load(&folder, "core/agent.session.started.schema.json");
    let validator = jsonschema::options().build(&started).unwrap();
    let mut message: Value = serde_json::from_str(STARTED).unwrap();
    assert!(validator.is_valid(&message));
    // A member that only the envelope knows is judged as well, and an unknown one is refused.
    message["sequence_number"] = json!("0");
    assert!(!validator.is_valid(&message));
    message["sequence_number"] = json!(0);
    message["stray"] = json!(1);
    assert!(!validator.is_valid(&message));
}

#[test]
fn a_folder_that_cannot_be_written_ends_with_two() {
    let folder = folder("unwritable");
    let taken = file(&folder, "taken", "a file, not a folder");
    let ended = run(&["schema", "--out", &taken]);
    assert_eq!((ended.code, ended.out.as_str()), (2, ""));
    assert!(ended.err.starts_with(&format!("aaep: cannot write {taken}/envelope.schema.json: ")));
    assert!(ended.err.ends_with("0 files were written before. Choose another folder.\n"));
}

// covers: X7
#[test]
fn our_extensions_are_published_with_their_contexts() {
    let folder = folder("published_extensions");
    assert_eq!(run(&["schema", "--out", folder.to_str().unwrap()]).code, 0);
    for own in aaep_types::published::OWN_EXTENSIONS {
        let name = format!("extensions/{}.context", own.prefix);
        let printed: Value = serde_json::from_str(&run(&["schema", &name]).out).unwrap();
        assert_eq!(printed["@context"][own.prefix], format!("{}#", own.uri));
        assert_eq!(load(&folder, &format!("{name}.jsonld")), printed);
        for schema in own.schemas {
            load(&folder, &format!("{schema}.schema.json"));
        }
    }
}

// covers: W11
#[test]
fn the_proto_is_printed_as_it_is_published() {
    let kept = include_str!("../../aaep-transport/proto/aaep/v1/aaep.proto");
    assert_eq!(run(&["schema", "aaep.proto"]).out, kept);
}
