//! `aaep validate`, from the outside.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // tests run programs

mod support;

use serde_json::json;
use support::{REPLY, STARTED, aaep, ended, file, folder, newer, run, run_with, wrong};

#[test]
fn a_valid_message_ends_with_zero_and_a_summary() {
    let ended = run_with(&["validate"], STARTED);
    assert_eq!(ended.out, "1 message: 1 valid, 0 invalid, 0 with warnings\n");
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
}

// covers: E7
#[test]
fn an_invalid_message_is_explained_on_one_line_and_ends_with_one() {
    let folder = folder("invalid_message");
    let name = file(&folder, "events.jsonl", format!("{STARTED}\n{}\n{REPLY}\n", wrong()));
    let ended = run(&["validate", &name]);
    let lines: Vec<_> = ended.out.lines().collect();
    assert!(lines[0].starts_with(&format!("{name}:2: error at /event_id: ")), "{}", lines[0]);
    assert!(lines[0].ends_with(" (E7, §3.2.3)"), "{}", lines[0]);
    assert_eq!(lines[1..], ["3 messages: 2 valid, 1 invalid, 0 with warnings"]);
    assert_eq!((ended.code, ended.err.as_str()), (1, ""));
}

// covers: D21
#[test]
fn warnings_alone_end_with_zero() {
    let ended = run_with(&["validate"], newer());
    assert!(ended.out.contains("standard input:1: warning at /mood: "), "{}", ended.out);
    assert!(ended.out.ends_with("1 message: 1 valid, 0 invalid, 1 with warnings\n"));
    assert_eq!(ended.code, 0);
}

#[test]
fn json_says_everything_about_each_message_on_one_line() {
    let input = format!("{STARTED}\n\n{}\n{}\n12\n", wrong(), newer());
    let ended = run_with(&["validate", "--json"], input);
    let lines = ended.json();
    let plain = |line: u64, index: u64, type_name: &str| {
        json!({"file": "-", "line": line, "index": index, "type": type_name, "valid": true,
            "errors": [], "warnings": []})
    };
    assert_eq!(lines[0], plain(1, 0, "aaep:agent.session.started"));
    let names: Vec<_> = lines[1].as_object().unwrap().keys().collect();
    assert_eq!(names, ["file", "line", "index", "type", "valid", "errors", "warnings"]);
    assert_eq!(lines[1]["line"], 3);
    assert_eq!(lines[1]["index"], 1);
    assert_eq!(lines[1]["valid"], false);
    let error = lines[1]["errors"][0].as_object().unwrap();
    assert_eq!(error.keys().collect::<Vec<_>>(), ["pointer", "rule", "section", "text"]);
    assert_eq!((&error["pointer"], &error["rule"]), (&json!("/event_id"), &json!("E7")));
    assert_eq!(lines[2]["valid"], true);
    assert_eq!(lines[2]["warnings"][1]["rule"], "D21");
    assert_eq!(lines[3]["type"], json!(null));
    assert_eq!(lines[3]["errors"][0]["rule"], "E1");
    assert_eq!((lines.len(), ended.code), (4, 1));
}

#[test]
fn one_array_pretty_values_and_values_on_one_line_are_read_alike() {
    let message: serde_json::Value = serde_json::from_str(REPLY).unwrap();
    let pretty = serde_json::to_string_pretty(&message).unwrap();
    let array = serde_json::to_string_pretty(&json!([message, message])).unwrap();
    for (input, lines) in [
        (format!("[{REPLY},{REPLY}]"), [1, 1]),
        (format!("{REPLY}{REPLY}"), [1, 1]),
        (format!("{REPLY}\r\n{REPLY}\r\n"), [1, 2]),
        (format!("{pretty}\n{pretty}"), [1, 8]),
        (array, [2, 9]),
    ] {
        let ended = run_with(&["validate", "--json"], &input);
        let found: Vec<_> = ended.json().iter().map(|line| line["line"].clone()).collect();
        assert_eq!((json!(found), ended.code), (json!(lines), 0), "{input}");
    }
}

// covers: E1
#[test]
fn a_broken_value_is_told_with_its_place_and_hides_nothing() {
    let input = format!("{REPLY}\n{}\n{REPLY}\nnot json\n{REPLY}\n", &REPLY[..40]);
    let ended = run_with(&["validate"], input);
    let lines: Vec<_> = ended.out.lines().collect();
    assert!(lines[0].starts_with("standard input:2: error at /reply_toke: "), "{}", lines[0]);
    assert!(lines[1].starts_with("standard input:4: error at message: "), "{}", lines[1]);
    assert_eq!(lines[2..], ["5 messages: 3 valid, 2 invalid, 0 with warnings"]);
    assert_eq!(ended.code, 1);
}

// covers: E1
#[test]
fn bytes_that_are_not_utf8_spoil_only_their_own_message() {
    let broken = REPLY.replace("sub_41", "sub_?").into_bytes();
    let broken: Vec<u8> =
        broken.iter().map(|byte| if *byte == b'?' { 0xFF } else { *byte }).collect();
    let input = [REPLY.as_bytes(), b"\n", &broken, b"\n", REPLY.as_bytes()].concat();
    let ended = run_with(&["validate", "--json"], input);
    let valid: Vec<_> = ended.json().iter().map(|line| line["valid"].clone()).collect();
    assert_eq!(json!(valid), json!([true, false, true]));
    assert!(ended.out.contains("not UTF-8"));
}

// covers: E1
#[test]
fn a_byte_order_mark_is_named() {
    let ended = run_with(&["validate"], format!("\u{feff}{REPLY}\n{REPLY}"));
    assert!(ended.out.contains(":1: error at message: The input begins with a byte order mark"));
    assert!(ended.out.ends_with("2 messages: 1 valid, 1 invalid, 0 with warnings\n"));
    assert_eq!(ended.code, 1);
}

// covers: E21
#[test]
fn a_message_beyond_the_limit_is_skipped_and_the_rest_is_judged() {
    let large = STARTED.replace("Tidying", &"x".repeat(3 << 20));
    let folder = folder("large_message");
    let name = file(&folder, "events.jsonl", format!("{REPLY}\n{large}\n{REPLY}\n"));
    let ended = run(&["validate", "--json", &name]);
    let lines = ended.json();
    assert_eq!((lines.len(), ended.code), (3, 1));
    assert_eq!(lines[1]["type"], json!(null));
    assert_eq!(lines[1]["errors"][0]["rule"], "E21");
    assert_eq!(lines[2]["valid"], true);

    let larger_limit = run(&["validate", "--json", "--max-bytes", "4000000", &name]);
    assert_eq!(larger_limit.json()[1]["type"], "aaep:agent.session.started");
    let smaller_limit = run(&["validate", "--max-bytes", "100", &name]);
    assert!(smaller_limit.out.ends_with("3 messages: 0 valid, 3 invalid, 0 with warnings\n"));
}

#[test]
fn the_published_schemas_can_judge_instead() {
    // The published schemas know no reserved words, only shapes.
    let input = format!("{STARTED}\n{}\n{{\"a\":\n", wrong());
    let ended = run_with(&["validate", "--schema", "--json"], &input);
    let lines = ended.json();
    assert_eq!((&lines[0]["valid"], &lines[1]["valid"]), (&json!(true), &json!(false)));
    let error = &lines[1]["errors"][0];
    assert_eq!(error["pointer"], "/event_id");
    assert_eq!(error["rule"], "schema");
    assert_eq!(error["section"], "core/agent.session.started");
    assert_eq!(lines[2]["errors"][0]["rule"], "E1");
    assert_eq!(ended.code, 1);

    let heard = run_with(&["validate", "--schema"], wrong());
    let line = heard.out.lines().next().unwrap();
    assert!(line.ends_with(" (schema, core/agent.session.started)"), "{line}");
}

#[test]
fn quiet_prints_nothing_and_keeps_the_exit_status() {
    for (input, code) in [(STARTED.to_owned(), 0), (wrong(), 1)] {
        let ended = run_with(&["validate", "--quiet"], input);
        assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (code, "", ""));
    }
    assert_eq!(run_with(&["validate", "-q", "--json"], REPLY).code, 2);
}

#[test]
fn an_input_without_messages_ends_with_two_and_says_so() {
    for input in ["", "\n \n", "[]"] {
        let ended = run_with(&["validate", "-"], input);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{input:?}");
        assert!(ended.err.starts_with("aaep: there is nothing to check in standard input. "));
    }
}

#[test]
fn files_that_cannot_be_read_are_named_and_the_others_are_judged() {
    let folder = folder("unreadable_files");
    let good = file(&folder, "good.json", REPLY);
    let bad = file(&folder, "bad.json", wrong());
    let missing = format!("{good}.missing");
    let ended = run(&["validate", &missing, &bad, folder.to_str().unwrap(), &good]);
    assert_eq!(ended.code, 2);
    assert!(ended.out.ends_with("2 messages: 1 valid, 1 invalid, 0 with warnings\n"));
    let lines: Vec<_> = ended.err.lines().collect();
    assert_eq!(
        lines,
        [
            format!("aaep: cannot read {missing}: there is no such file. Check the name."),
            format!(
                "aaep: cannot read {}: it is a folder. Name the files in it.",
                folder.display()
            ),
        ]
    );
}

#[test]
fn standard_input_and_files_can_be_mixed() {
    let folder = folder("mixed_inputs");
    let name = file(&folder, "one.json", STARTED);
    let ended = run_with(&["validate", "--json", &name, "-"], REPLY);
    let lines = ended.json();
    assert_eq!((&lines[0]["file"], &lines[1]["file"]), (&json!(name), &json!("-")));
    assert_eq!((&lines[1]["index"], ended.code), (&json!(0), 0));
}

#[test]
fn words_of_a_message_cannot_move_the_cursor() {
    let input = STARTED.replace("\"type\"", "\"\\u001b[2J\\u202e\":1,\"type\"");
    let ended = run_with(&["validate"], input);
    assert!(ended.out.contains("\\u{1b}[2J\\u{202e}"), "{}", ended.out);
    assert!(!ended.out.contains('\u{1b}') && !ended.out.contains('\u{202e}'));
}

#[test]
fn an_answer_comes_while_the_input_is_still_open() {
    use std::io::{BufRead, BufReader, Write};
    let mut child =
        aaep(&["validate", "--json"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for index in 0..3 {
        stdin.write_all(REPLY.as_bytes()).unwrap();
        let line: serde_json::Value =
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["index"], index);
    }
    drop(stdin);
    assert_eq!(ended(child).code, 0);
}

/// A file is judged in blocks on every core, a pipe message by message: nobody can tell from what is
/// said.
#[test]
fn a_large_file_is_judged_like_a_pipe_in_the_same_order() {
    let folder = folder("large_file");
    let mut text = String::new();
    for number in 0..6000 {
        text += match number % 100 {
            50 => "   \n",
            _ => "",
        };
        text += &if number % 7 == 0 { wrong() } else { STARTED.to_owned() };
        text += "\n";
    }
    let broken = format!("{text}{{\"type\":\n{STARTED} {STARTED}\n[1, 2]\n{REPLY}");
    let long = format!("{text}{{\"a\":\"{}\"}}\n{REPLY}\n", "x".repeat(3 << 20));
    for (name, text) in [("whole", &text), ("broken", &broken), ("long", &long)] {
        let name = file(&folder, name, text);
        let all = [&["validate", "--json"][..], &["validate"], &["validate", "--schema"]];
        let some = if name.ends_with("whole") { &all[..] } else { &all[..1] };
        for options in some {
            let of_file = run(&[*options, &[&name]].concat());
            let input = std::fs::File::open(&name).expect("a file for the test");
            let of_pipe = ended(aaep(options).stdin(input).spawn().expect("the command starts"));
            let json = of_file.out.replace(&format!("\"file\":\"{name}\""), "\"file\":\"-\"");
            let plain = json.replace(&format!("{name}:"), "standard input:");
            assert_eq!(of_file.code, of_pipe.code, "{name} {options:?}");
            assert!(plain == of_pipe.out, "{name} {options:?} is judged otherwise than a pipe");
        }
    }
}
