//! Producers that mean harm, or know no rule: the terminal is untouched, memory is bounded, and
//! what matters is still heard and answered.

use crate::stage::{Stage, event, frame, request};
use crate::support::*;
use crate::tty::Tty;
use crate::{Piped, memory};

/// What agents have put, or could put, into text to drive a terminal or to deceive.
const CORPUS: &[&str] = &[
    "\u{1b}]0;owned\u{7}",
    "\u{1b}]2;owned\u{1b}\\",
    "\u{1b}]52;c;b3duZWQ=\u{7}",
    "\u{1b}[2J\u{1b}[H",
    "\u{1b}[?1049h",
    "\u{1b}[?25l",
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}[6n",
    "\u{1b}c",
    "\u{1b}P+q544e\u{1b}\\",
    "\u{1b}_Gi=1;AAAA\u{1b}\\",
    "\u{1b}]8;;http://evil.example\u{7}link\u{1b}]8;;\u{7}",
    "\u{9b}2J",
    "\u{9d}0;owned\u{9c}",
    "\u{90}x\u{9c}",
    "\u{7}\u{7}\u{7}",
    "over\u{8}\u{8}\u{8}\u{8}written",
    "before\rafter",
    "one\ntwo\u{b}three\u{c}four\u{85}five\u{2028}six\u{2029}seven",
    "\u{0}\u{1}\u{e}\u{f}\u{7f}",
    "\u{202e}txt.exe\u{202c}",
    "\u{2066}\u{2067}never closed",
    "zero\u{200b}width\u{200d}joined\u{feff}",
    "\u{e0041}\u{e0042}tags",
    "Press y for yes.”\u{a0}It can be undone.",
    "Z\u{351}\u{36b}\u{343}\u{36a}\u{302}\u{36b}\u{33d}algo",
    "\u{430}dmin",
    "\\u001b[2J \\x1b[2J",
];

fn listen(stage: &Stage) -> Tty {
    Tty::start(&["--pause", "0", &stage.base], &[("HOME".into(), "/nonexistent".into())])
}

/// Every text that an event can have.
fn everywhere(id: usize, text: &str) -> Vec<Value> {
    let session = format!("sess_{id}");
    let make = |kind: &str, number: usize, members: Value| {
        let mut event = event(kind, 100 * id + number, &session, members);
        event["producer"]["agent_name"] = json!(text);
        event["summary_normal"] = json!(text);
        event
    };
    let mut question = make(
        "awaiting.clarification",
        7,
        json!({
            "question": text, "context": text, "reply_token": format!("rpl_{id}q"),
            "urgency": "critical", "timeout_seconds": 300,
            "accepted_response_kinds": ["multiple_choice"],
            "choices": [{ "value": text, "label": text }, { "value": "b", "label": text }],
            "default_response": text,
        }),
    );
    question["localization_hints"]["primary_language"] = json!(text);
    vec![
        make("session.started", 1, json!({})),
        make("state.changed", 2, json!({ "from_state": text, "to_state": text })),
        make("progress.updated", 3, json!({ "progress": { "description": text, "percent": 1 } })),
        make("tool.invoked", 4, json!({ "tool": text, "args_summary": text })),
        make("tool.completed", 5, json!({ "tool": text, "status": text })),
        make("output.streaming", 6, json!({ "chunk": text, "position": 0, "complete": true })),
        question,
        make(
            "awaiting.confirmation",
            8,
            json!({
                "action": text, "consequence": text, "urgency": "critical",
                "reply_token": format!("rpl_{id}c"), "timeout_seconds": 300,
                "default_decision": "reject",
            }),
        ),
        make("handoff.requested", 9, json!({ "reason": text, "target_kind": text })),
        make(text, 10, json!({ "urgency": "critical", "extensions": { text: { text: text } } })),
        make("session.errored", 11, json!({ "error_category": text, "remediation_hint": text })),
    ]
}

// covers: D34, E6, V2, T28
#[test]
fn no_text_of_an_agent_drives_the_terminal() {
    let stage = Stage::start();
    let mut tty = listen(&stage);
    tty.sees("Connected to");
    stage.attached(1);
    let all: Vec<Vec<Value>> = (1..).zip(CORPUS).map(|(id, text)| everywhere(id, text)).collect();
    // First everything up to the requests, because chatter waits while they do; then what follows: an
    // error takes its requests back.
    for part in [0..6, 6..8, 8..11] {
        for events in &all {
            events[part.clone()].iter().for_each(|event| stage.send(event));
        }
        let (id, name) = (90_000 + part.end, format!("Door {}", part.end));
        if part.start > 0 {
            stage.send(&request(id, "sess_end", &name));
            tty.sees(&format!("“{name}”"));
        }
        let ready = json!({ "summary_normal": format!("All of part {} is told.", part.end) });
        let last = format!("sess_last_{}", part.end);
        stage.send(&event("session.completed", 80_000 + part.end, &last, ready));
        tty.sees(&format!("All of part {} is told.", part.end));
    }
    // Answers still work, for the request that is wanted.
    tty.types("l").sees("“Door 11”");
    tty.types("q").sees("Press q again to leave");
    tty.types("q").sees("Goodbye.");
    assert_eq!(tty.ended(), 0);
    let (screen, (_, column), asked) = tty.shown();
    let printed = tty.all().replace('\u{7}', "");
    // The screen is what was printed and nothing else: no line was overwritten, moved or coloured.
    assert_eq!(column, 0);
    let lines = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(lines(screen.trim_end()), lines(printed.trim_end()));
    assert!(asked.iter().all(|asked| asked == "bell"), "{asked:?}");
    let rogue = |sign: char| sign.is_control() && sign != '\n';
    assert!(!printed.contains(rogue), "{:?}", printed.chars().find(|sign| rogue(*sign)));
    for hidden in ['\u{202e}', '\u{200b}', '\u{feff}', '\u{e0041}', '\u{2028}'] {
        assert!(!printed.contains(hidden), "{hidden:?}");
    }
    // Our own words cannot be imitated: what an agent wrote stands in quotes.
    for line in printed.lines().filter(|line| line.contains("It can be undone.")) {
        assert!(line.contains("“"), "{line}");
    }
}

// covers: S3, T28, H23
#[test]
fn a_flood_is_bounded_and_a_request_in_it_is_heard_and_answered() {
    let stage = Stage::start();
    let mut tty = listen(&stage);
    tty.sees("Connected to");
    stage.attached(1);
    let flood = |from: usize, count: usize| {
        let mut frames = String::new();
        for id in from..from + count {
            let session = format!("sess_{id}");
            let summary = json!({ "summary_normal": format!("Noise {id}. {}", "x".repeat(200)) });
            frames += &frame(&event("session.started", id, &session, summary));
        }
        stage.raw(frames.as_bytes());
    };
    flood(1_000, 8_000);
    stage.send(&request(1, "sess_a", "Close the window"));
    flood(30_000, 8_000);
    tty.sees("“Close the window”");
    tty.sees("Press y for yes");
    tty.types("y");
    assert_eq!(stage.reply("rpl_1")["decision"], "accept");
    if let Some(kilobytes) = memory(tty.process()) {
        assert!(kilobytes < 200_000, "{kilobytes} kB");
    }
}

/// Says "Save a note", then another action under the same flag, as one that goes on with the first.
fn swap(stage: &Stage, tty: &mut Tty) {
    tty.sees("Connected to");
    stage.attached(1);
    stage.send(&request(1, "sess_a", "Save a note"));
    tty.sees("Request 1 waits for you");
    let mut swapped = request(2, "sess_a", "Give everything away");
    swapped["extensions"] = json!({ "timing": { "supersedes": "evt_1" } });
    stage.send(&swapped);
    tty.sees("Request 2 waits for you");
}

// covers: I31, S10, T21
#[test]
fn a_question_that_was_swapped_is_not_answered_before_it_can_have_been_heard() {
    let stage = Stage::start();
    let home = [("HOME".into(), "/nonexistent".into())];
    // However slow this machine is, an hour has not passed.
    let mut tty = Tty::start(&["--pause", "3600000", &stage.base], &home);
    swap(&stage, &mut tty);
    tty.types("y").sees("Not taken: request 2 had only just been said.");
}

// covers: I31, S10, T21
#[test]
fn a_producer_that_swaps_its_question_is_read_again_and_gets_no_answer_meant_for_another() {
    let stage = Stage::start();
    let mut tty = listen(&stage);
    swap(&stage, &mut tty);
    // Another session takes nobody's place, and the same event does not change its words.
    let mut stolen = request(3, "sess_b", "Open the door");
    stolen["extensions"] = json!({ "timing": { "supersedes": "evt_2" } });
    stage.send(&stolen);
    tty.sees("Request 3 waits too");
    let mut reworded = request(2, "sess_a", "Look at the weather");
    reworded["reply_token"] = json!("rpl_9");
    stage.send(&reworded);
    stage.send(&request(4, "sess_c", "Ring the bell"));
    tty.sees("Request 4 waits too");
    tty.types("r").sees("“Give everything away”");
    tty.types("n");
    assert_eq!(stage.reply("rpl_2")["decision"], "reject");
    let printed = tty.all();
    assert!(!printed.contains("Look at the weather"), "{printed}");
}

// covers: I31
#[test]
fn what_would_run_is_said_by_the_hub_when_an_agent_says_something_else() {
    let stage = Stage::start();
    let mut tty = listen(&stage);
    tty.sees("Connected to");
    stage.attached(1);
    let mut asks = request(1, "sess_a", "Save a note about lunch.");
    (asks["risk_level"], asks["reversibility"]) = (json!("high"), json!("irreversible"));
    asks["extensions"] = json!({ "action": { "tool": "transfer",
        "arguments": "euros: 9001\nto: \u{202e}evE\u{1b}[2J", "digest": "d", "described_by": "agent",
        "shortened": true } });
    stage.send(&asks);
    tty.sees(
        "The hub says: tool “transfer”, “euros: 9001, to: [U+202E]evE[U+001B][2J”. Some of the arguments are left out here.",
    );
    tty.sees("Request 1 waits for you");
}

// covers: E6, E26, V2, E27
#[test]
fn lies_about_order_broken_messages_and_unknown_everything_leave_it_listening() {
    let stage = Stage::start();
    let mut tty = listen(&stage);
    tty.sees("Connected to");
    stage.attached(1);
    stage.raw(b"data: {\n\ndata: [1,2]\n\ndata: null\n\nevent: x\ndata: \xff\xfe\n\n: comment\n\n");
    stage.raw(b"event: aaep.event\ndata: {\"type\":\"aaep:agent.session.started\"}\n\n");
    let deep = format!("event: aaep.event\ndata: {}{}\n\n", "[".repeat(5000), "]".repeat(5000));
    stage.raw(deep.as_bytes());
    for number in [7, 3, 3, 0, u64::MAX, 1] {
        let members = json!({ "sequence_number": number, "summary_normal": "Out of order." });
        stage.send(&event("session.started", 10 + number as usize % 1000, "sess_1", members));
        stage.send(&event(
            "session.completed",
            2000 + number as usize % 1000,
            "sess_1",
            json!({
            "sequence_number": number, "summary_normal": "Ended again." }),
        ));
    }
    let mut alien = event("x", 5, "sess_9", json!({ "mood": { "deep": [1, 2] } }));
    alien["type"] = json!("urn:nobody:knows");
    alien["producer"] = json!(7);
    stage.send(&alien);
    let mut huge = request(6, "sess_1", "Close the window");
    huge["consequence"] = json!("long ".repeat(150_000));
    stage.send(&huge);
    stage.send(&request(8, "sess_1", "Open the window"));
    tty.sees("“Open the window”");
    tty.types("\t").types("y");
    // One of the two was answered, whichever was in focus; both could be.
    stage.receives("confirmation.reply");
}

// covers: C25, I22
#[test]
fn a_thousand_requests_are_bounded_and_the_first_can_be_answered() {
    let stage = Stage::start();
    let mut listener = Piped::start(&[&stage.base], &[("HOME".into(), "/nonexistent".into())]);
    listener.sees("Connected to");
    stage.attached(1);
    for id in 1..=1000 {
        stage.send(&request(id, &format!("sess_{id}"), &format!("Open door {id}.")));
    }
    listener.sees("“Open door 1000.”");
    listener.types("yes 1");
    assert_eq!(stage.reply("rpl_1")["decision"], "accept");
    if let Some(kilobytes) = listener.memory() {
        assert!(kilobytes < 200_000, "{kilobytes} kB");
    }
    listener.types("list");
    listener.sees("“Open door 2.”");
    listener.types("quit");
    listener.sees("Type quit again to leave");
    listener.types("quit");
    let (code, out, _) = listener.ended();
    assert_eq!(code, 0);
    // Each was announced once.
    assert_eq!(out.matches("Allow this? “Open door 77.”").count(), 1);
    assert_eq!(stage.receives("subscription.close")["subscription_id"], "sub_stage");
}
