//! The messages that are measured: events of a busy session, about 550 bytes each.

pub const EVENTS: usize = 20_000;

/// Events of a busy session; every `invalid_every`-th breaks a rule.
pub fn lines(invalid_every: usize) -> Vec<String> {
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
            r#""type":"aaep:{}","event_id":"evt_{:016x}","session_id":"sess_{:016x}","#,
            r#""sequence_number":{},"timestamp":"2026-05-24T14:{:02}:{:02}.{:03}Z","#,
            r#""producer":{{"agent_id":"kitchen","agent_version":"1.4.2"}},"#,
            r#""urgency":"{}","localization_hints":{{"primary_language":"en-GB","text_direction":"auto"}},{}}}"#
        ),
        kind,
        number * 7919,
        number / 50,
        number % 50 + 1,
        number % 60,
        number % 59,
        number % 1000,
        urgency,
        payload,
    )
}

fn payload(number: usize) -> (&'static str, &'static str, String) {
    let summaries = r#""summary_terse":"Next step","summary_normal":"The oven is hot.","summary_detailed":"The oven is at two hundred degrees.""#;
    match number % 6 {
        0 => (
            "agent.state.changed",
            "background",
            format!(r#""from_state":"thinking","to_state":"calling_tool",{summaries}"#),
        ),
        1 => (
            "agent.tool.invoked",
            "normal",
            format!(
                r#""tool":"oven.set","tool_call_id":"call_{number}",{summaries},"risk_level":"low""#
            ),
        ),
        2 => (
            "agent.tool.completed",
            "normal",
            format!(
                r#""tool":"oven.set","tool_call_id":"call_{number}","status":"success",{summaries}"#
            ),
        ),
        3 => (
            "agent.progress.updated",
            "background",
            format!(
                r#""progress":{{"percent":{},"step":2,"total_steps":9}},{summaries}"#,
                number % 100
            ),
        ),
        4 => (
            "agent.output.streaming",
            "normal",
            format!(
                r#""chunk":"Knead the dough until it is smooth, then let it rest for \"an hour\".\nMeanwhile, prepare the filling.","position":{number},"complete":false,"coalesce_hint":"sentence""#
            ),
        ),
        _ => (
            "agent.awaiting.confirmation",
            "critical",
            format!(
                r#""action":"Order flour.","consequence":"Twelve euros are spent.","reply_token":"rpl_{number:032x}","timeout_seconds":300,"default_decision":"reject","risk_level":"medium","irreversible":true,"summary_terse":"Order?","summary_normal":"Order flour for twelve euros?","summary_detailed":"Two bags.""#
            ),
        ),
    }
}
