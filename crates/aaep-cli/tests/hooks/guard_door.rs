//! `aaep guard` and the strongest way that a program has: its door, proved with stand-ins.

use super::guard::Desk;

/// A stand-in for Gemini CLI: an agent of the Agent Client Protocol that does this when it is set to
/// work, and that when it is answered.
fn stand_in(desk: &Desk, works: &str, answered: &str) {
    let end = r#"echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'"#;
    let script = format!(
        r#"#!/bin/sh
[ "$1" = --version ] && echo 0.61.0 && exit 0
case "$*" in *--acp*) ;; *) exit 1 ;; esac
end() {{ {end}; }}
ask() {{ echo '{{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"t","kind":"execute","title":"touch x","rawInput":{{"command":"touch x"}}}},"options":[{{"optionId":"yes","name":"Yes","kind":"allow_once"}},{{"optionId":"no","name":"No","kind":"reject_once"}}]}}}}'; }}
while read -r line; do case "$line" in
  *'"initialize"'*) echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":1}}}}' ;;
  *'"session/new"'*) echo '{{"jsonrpc":"2.0","id":2,"result":{{"sessionId":"s"}}}}' ;;
  *'"session/prompt"'*) {works} ;;
  *'"id":"q"'*) {answered} ;;
esac; done
"#
    );
    desk.script("gemini", &script);
}

/// Runs the tool only if it was told so.
const OBEYS: &str = r#"case "$line" in *'"yes"'*) touch "$HOME/ran" ;; esac; end"#;

#[test]
fn a_door_is_proved_by_a_program_that_asks_and_takes_a_no() {
    let desk = Desk::new();
    stand_in(&desk, "ask", OBEYS);
    let made = desk.guard(&["gemini", "--yes"]);
    assert_eq!(made.code, 0, "{made:?}");
    let lines: Vec<_> = made.out.lines().collect();
    let at = |words: &str| lines.iter().position(|line| line.contains(words));
    let proved = at("Proved: Gemini CLI 0.61.0 ran behind its door");
    assert!(proved.is_some() && proved < at("Proved: The hook was called"), "{made:?}");
    assert!(at("The strongest way is `aaep guard run gemini`") == Some(1), "{made:?}");
    let status = desk.guard(&["status"]);
    assert!(status.code == 0 && status.out.contains("it asked, was told no"), "{status:?}");
    let gone = desk.guard(&["remove", "gemini"]);
    assert!(gone.out.contains("With `aaep guard run gemini` it does."), "{gone:?}");
}

#[test]
fn a_door_that_lets_something_through_is_found_out() {
    for (works, answered) in
        [(r#"touch "$HOME/ran"; end"#, "end"), ("ask", r#"touch "$HOME/ran"; end"#)]
    {
        let desk = Desk::new();
        stand_in(&desk, works, answered);
        let made = desk.guard(&["gemini", "--yes"]);
        assert_eq!(made.code, 1, "{made:?}");
        assert!(made.out.contains("Does not hold: Gemini CLI does not ask behind its door"));
        assert_eq!(desk.guard(&["status"]).code, 1);
    }
}

#[test]
fn what_asked_nothing_or_did_not_begin_proves_nothing() {
    for works in ["end", "exit 1"] {
        let desk = Desk::new();
        stand_in(&desk, works, OBEYS);
        let made = desk.guard(&["gemini", "--yes"]);
        assert!(made.out.contains("Not proved: Gemini CLI"), "{made:?}");
        assert!(!made.out.contains("it asked, was told no"), "{made:?}");
    }
}

#[test]
fn every_program_that_can_be_set_up_has_a_door() {
    for program in ["claude", "codex", "gemini", "opencode", "copilot", "qwen", "kimi"] {
        let desk = Desk::new();
        let shown = desk.guard(&[program, "--dry-run"]);
        let way = format!("The strongest way is `aaep guard run {program}`");
        assert!(shown.code == 0 && shown.out.contains(&way), "{shown:?}");
    }
}
