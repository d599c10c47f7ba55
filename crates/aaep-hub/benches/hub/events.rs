//! What is said, to whom, and how the two servers are spoken to.

use std::net::TcpStream;

use crate::ours::{AGENT, LISTENER};
use crate::server::{Server, Side};
use crate::wire::{call, connect, member, open, request};

/// Events in a cycle; after it everything stands as before.
pub const CYCLE: usize = 8;

/// Eight different terms. None of them drops or merges anything in silence but by its filter, so
/// that one can count what has to come.
pub const CAPABILITIES: [&str; 8] = [
    r#""supports_confirmation_reply":true"#,
    r#""preferred_verbosity":"terse","languages":["en"]"#,
    r#""preferred_verbosity":"normal","languages":["fr","en"]"#,
    r#""preferred_verbosity":"detailed","languages":["fr"]"#,
    r#""max_events_per_second":100000,"preferred_verbosity":"terse","languages":["fr"]"#,
    r#""event_filters":{"include":["aaep:agent.*"],"exclude":["aaep:agent.progress.updated"]}"#,
    r#""cognitive_load":"high","preferred_verbosity":"normal","languages":["en","fr"]"#,
    r#""coalesce_boundaries":["word"],"pace_wpm":300,"event_filters":{"include":["aaep:agent.state.changed","aaep:agent.tool.*","aaep:agent.progress.*"]}"#,
];

/// A stream of events of this kind of terms, and what came of it already.
pub fn listen(server: &Server, terms: usize) -> (TcpStream, Vec<u8>) {
    let mut stream = connect(server.address);
    let rest = match server.side {
        Side::Bare => open(&mut stream, &request("GET", "/events", "", "")),
        Side::Hub => {
            let id = subscribe(&mut stream, terms);
            open(&mut stream, &listen_request(&id))
        }
    };
    (stream, rest)
}

pub fn listen_request(id: &str) -> Vec<u8> {
    request("GET", &format!("/aaep/v1/events?subscription_id={id}"), LISTENER, "")
}

/// The id of a new subscription.
pub fn subscribe(stream: &mut TcpStream, terms: usize) -> String {
    let asked = format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"load","capabilities":{{{}}}}}"#,
        CAPABILITIES[terms % CAPABILITIES.len()]
    );
    let answer = call(stream, &request("POST", "/aaep/v1/subscriptions", LISTENER, &asked));
    assert_eq!(answer.status, 201, "{answer:?}");
    member(&answer.body, "subscription_id").to_owned()
}

/// Opens a session of the hub, and enters the state in which a cycle begins.
pub fn open_session(stream: &mut TcpStream) -> String {
    let asked = r#"{"producer":{"agent_id":"worker","agent_name":"Worker"},"summary_normal":"Tidying the folder.","language":"en"}"#;
    let answer = call(stream, &request("POST", "/aaep/v1/agent/sessions", AGENT, asked));
    assert_eq!(answer.status, 201, "{answer:?}");
    let session = member(&answer.body, "session_id").to_owned();
    let first = r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"thinking","summary_normal":"Thinking."}"#;
    let answer = call(stream, &emit_request(&session, first));
    assert_eq!(answer.status, 201, "{answer:?}");
    session
}

fn emit_request(session: &str, body: &str) -> Vec<u8> {
    request("POST", &format!("/aaep/v1/agent/sessions/{session}/events"), AGENT, body)
}

/// The request that says the next thing of a session.
pub fn say_request(session: &str, step: u64) -> Vec<u8> {
    let round = step / CYCLE as u64;
    let body = match step % CYCLE as u64 {
        0 => state("thinking", "deciding", "which file to open first"),
        2 => state("deciding", "calling_tool", "the tool that reads files"),
        6 => state("calling_tool", "thinking", "about what was found"),
        3 => format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"read_file","tool_call_id":"call_{round}","irreversible":false,"risk_level":"low",{}}}"#,
            summaries("Reading the notes of last week")
        ),
        5 => format!(
            r#"{{"type":"aaep:agent.tool.completed","tool":"read_file","tool_call_id":"call_{round}","status":"success",{}}}"#,
            summaries("The notes of last week are read")
        ),
        _ => format!(
            r#"{{"type":"aaep:agent.progress.updated","progress":{{"percent":{}}},{}}}"#,
            step % 100,
            summaries("Some files of the folder are done")
        ),
    };
    emit_request(session, &body)
}

fn state(from: &str, to: &str, what: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.state.changed","from_state":"{from}","to_state":"{to}",{}}}"#,
        summaries(&format!("Now it is {what}"))
    )
}

/// In three lengths and two languages.
fn summaries(text: &str) -> String {
    format!(
        r#""summary_terse":"Working","summary_normal":"{text}.","summary_detailed":"{text}, one after the other.","summary_terse_fr":"En cours","summary_normal_fr":"Je m'occupe des fichiers.""#
    )
}

/// A ready frame of this many bytes for the bare server.
pub fn bare_frame(bytes: usize) -> String {
    let (head, tail) = (r#"data: {"pad":""#, "\"}\n\n");
    format!("{head}{}{tail}", "x".repeat(bytes.saturating_sub(head.len() + tail.len())))
}

pub fn bare_say_request(frame: &str) -> Vec<u8> {
    request("POST", "/events", "", frame)
}

/// The request that asks whether something may be done.
pub fn ask_request(side: Side, session: &str, number: u64) -> Vec<u8> {
    match side {
        Side::Hub => request(
            "POST",
            &format!("/aaep/v1/agent/sessions/{session}/requests"),
            AGENT,
            &format!(
                r#"{{"kind":"confirmation","tool":"send_mail","arguments":{{"letter":{number}}},"action":"Send the letter.","consequence":"It is gone at once.","timeout_seconds":300,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"Send the letter?"}}"#
            ),
        ),
        Side::Bare => {
            let frame = format!(
                "data: {{\"session_id\":\"{session}\",\"timestamp\":\"\",\"reply_token\":\"rpl_TOKEN\",\"pad\":\"{:700}\"}}\n\n",
                ""
            );
            request("POST", "/requests", "", &frame)
        }
    }
}

/// The request that waits for what was decided.
pub fn wait_request(side: Side, id: &str) -> Vec<u8> {
    match side {
        Side::Hub => request("GET", &format!("/aaep/v1/agent/requests/{id}?wait=60"), AGENT, ""),
        Side::Bare => request("GET", &format!("/requests/{id}?wait=60"), "", ""),
    }
}

/// The request that says yes to what an event asks.
pub fn reply_request(side: Side, subscription: &str, event: &str) -> Vec<u8> {
    let (token, stamp) = (member(event, "reply_token"), member(event, "timestamp"));
    let body = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{stamp}""#
    );
    match side {
        Side::Hub => request("POST", "/aaep/v1/replies", LISTENER, &format!("{body}}}")),
        Side::Bare => {
            let session = member(event, "session_id");
            request("POST", "/replies", "", &format!(r#"{body},"session_id":"{session}"}}"#))
        }
    }
}

/// What the bare server tells when a request was answered; about as long as what the hub tells.
pub fn bare_resolution(session: &str) -> String {
    format!(
        "data: {{\"session_id\":\"{session}\",\"outcome\":\"accepted\",\"pad\":\"{:600}\"}}\n\n",
        ""
    )
}
