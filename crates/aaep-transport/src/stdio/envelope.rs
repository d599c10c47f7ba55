//! What JSON-RPC puts around a message.

use aaep_types::json::{Members, Raw, Writer};

use super::{Asked, Role};

/// How deep a line may nest.
const DEPTH: usize = 130;

/// What a line says.
pub(super) enum LineContent<'a> {
    Message(&'a str),
    /// Nothing for us, and an answer to send.
    Answer(String),
    Both(&'a str, String),
    Nothing,
    /// It breaks the rules of JSON-RPC, and no answer would help.
    Wrong(String),
}

/// A message in its envelope, with the line's end; `None` if it is no JSON object.
pub(super) fn write(message: &str, role: Role, asked: &Asked) -> Option<String> {
    let members = Members::whole(message, DEPTH).ok()??;
    let kind = members.text("type");
    let kind = kind.as_deref().unwrap_or_default();
    let mut out = Writer::with_capacity(message.len() + 80);
    out.open('{');
    member(&mut out, "jsonrpc", "\"2.0\"");
    // enforces: W12
    let content = match (role, kind) {
        (Role::Subscriber, "subscription.request") => asks(&mut out, "\"aaep.subscribe\"", asked),
        (Role::Subscriber, "subscription.renegotiate") => {
            asks(&mut out, "\"aaep.renegotiate\"", asked)
        }
        (_, "subscription.close") => method(&mut out, "\"aaep.close\""),
        (Role::Subscriber, _) => method(&mut out, "\"aaep.reply\""),
        (Role::Producer, "subscription.accepted" | "subscription.rejected") => match asked.next() {
            Some(id) => {
                member(&mut out, "id", &id);
                "result"
            }
            None => method(&mut out, "\"aaep.event\""),
        },
        (Role::Producer, _) => method(&mut out, "\"aaep.event\""),
    };
    // Between tokens a line end is a space; inside of strings there is none.
    match message.contains(['\n', '\r']) {
        true => member(&mut out, content, &message.replace(['\n', '\r'], " ")),
        false => member(&mut out, content, message),
    }
    out.close('}');
    Some(out.finish() + "\n")
}

fn member(out: &mut Writer, name: &str, json: &str) {
    out.name(name);
    out.json(json);
    out.comma();
}

fn method(out: &mut Writer, name: &str) -> &'static str {
    member(out, "method", name);
    "params"
}

fn asks(out: &mut Writer, name: &str, asked: &Asked) -> &'static str {
    member(out, "id", &asked.ask());
    method(out, name)
}

/// Reads a line.
pub(super) fn read<'a>(line: &'a str, role: Role, asked: &Asked) -> LineContent<'a> {
    let members = match Members::whole(line, DEPTH) {
        Ok(Some(members)) => members,
        Ok(None) => return broken(role, -32600, "one object on each line, and no batches"),
        Err(fault) => return broken(role, -32700, &fault.kind.to_string()),
    };
    if members.text("jsonrpc").as_deref() != Some("2.0") || members.ambiguity().is_some() {
        return broken(role, -32600, "this is no JSON-RPC 2.0");
    }
    let id = members.find("id").and_then(written);
    match members.text("method") {
        Some(method) => called(&method, &members, id, role, asked),
        None => answered(&members, id, role, asked),
    }
}

/// An id that may be given back: text or a number, as it was written.
fn written(id: Raw<'_>) -> Option<String> {
    match id {
        Raw::String(_) | Raw::Number(_) => {
            let mut out = Writer::new();
            out.raw(id);
            Some(out.finish())
        }
        _ => None,
    }
}

fn called<'a>(
    method: &str,
    members: &Members<'a>,
    id: Option<String>,
    role: Role,
    asked: &Asked,
) -> LineContent<'a> {
    let params = match members.find("params") {
        Some(Raw::Object(params)) => Some(params),
        _ => None,
    };
    let known = match (role, method) {
        (_, "aaep.ping") => {
            return id.map_or(LineContent::Nothing, |id| LineContent::Answer(result(&id)));
        }
        (Role::Producer, "aaep.subscribe" | "aaep.renegotiate" | "aaep.reply")
        | (Role::Subscriber, "aaep.event")
        | (_, "aaep.close") => params,
        _ => {
            let text = "there is no such method";
            return id
                .map_or(LineContent::Nothing, |id| LineContent::Answer(error(&id, -32601, text)));
        }
    };
    let Some(params) = known else {
        let text = "the params are the AAEP message, an object";
        return match id {
            Some(id) => LineContent::Answer(error(&id, -32602, text)),
            None if role == Role::Subscriber => LineContent::Wrong(text.into()),
            None => LineContent::Nothing,
        };
    };
    match id {
        None => LineContent::Message(params),
        Some(id) if matches!(method, "aaep.subscribe" | "aaep.renegotiate") => {
            match asked.wait(&id) {
                true => LineContent::Message(params),
                false => LineContent::Answer(error(&id, -32000, "too many handshakes wait")),
            }
        }
        // D5: whatever becomes of a reply, this says nothing about it.
        Some(id) => LineContent::Both(params, result(&id)),
    }
}

fn answered<'a>(
    members: &Members<'a>,
    id: Option<String>,
    role: Role,
    asked: &Asked,
) -> LineContent<'a> {
    let is_ours = role == Role::Subscriber && id.is_some_and(|id| asked.is_answered(&id));
    match (members.find("result"), members.find("error")) {
        (Some(Raw::Object(message)), None) if is_ours => LineContent::Message(message),
        (None, Some(Raw::Object(error))) if is_ours => {
            let said = Members::whole(error, DEPTH).ok().flatten();
            let said = said.as_ref().and_then(|said| said.text("message"));
            LineContent::Wrong(format!("the handshake failed: {}", said.unwrap_or_default()))
        }
        (Some(_), None) | (None, Some(_)) => LineContent::Nothing,
        _ => broken(role, -32600, "it has neither a method nor a result"),
    }
}

/// A line that is none of JSON-RPC. A producer answers it and goes on; a subscriber says what came.
fn broken<'a>(role: Role, code: i32, why: &str) -> LineContent<'a> {
    match role {
        Role::Producer => LineContent::Answer(error("null", code, why)),
        Role::Subscriber => LineContent::Wrong(format!(
            "the program writes what is no JSON-RPC to its standard output: {why}"
        )),
    }
}

fn result(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n")
}

fn error(id: &str, code: i32, message: &str) -> String {
    let mut out = Writer::new();
    out.open('{');
    member(&mut out, "jsonrpc", "\"2.0\"");
    member(&mut out, "id", id);
    out.name("error");
    out.open('{');
    member(&mut out, "code", &code.to_string());
    out.name("message");
    out.string(message);
    out.close('}');
    out.close('}');
    out.finish() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str, role: Role, asked: &Asked) -> String {
        write(message, role, asked).unwrap()
    }

    fn message<'a>(line: &'a str, role: Role, asked: &Asked) -> &'a str {
        match read(line.trim_end(), role, asked) {
            LineContent::Message(message) => message,
            _ => panic!("{line} holds no message"),
        }
    }

    // covers: W12
    #[test]
    fn a_handshake_is_a_request_and_its_answer_the_result() {
        let (here, there) = (Asked::default(), Asked::default());
        let request = r#"{"type":"subscription.request","x":1.0}"#;
        let sent = line(request, Role::Subscriber, &here);
        let expected = r#"{"jsonrpc":"2.0","id":1,"method":"aaep.subscribe","params":"#;
        assert_eq!(sent, format!("{expected}{request}}}\n"));
        assert_eq!(message(&sent, Role::Producer, &there), request);
        let accepted = r#"{"type":"subscription.accepted"}"#;
        let answer = line(accepted, Role::Producer, &there);
        assert_eq!(answer, format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{accepted}}}\n"));
        assert_eq!(message(&answer, Role::Subscriber, &here), accepted);
        // Nobody asked for a second one.
        assert!(matches!(read(answer.trim_end(), Role::Subscriber, &here), LineContent::Nothing));
        let event = line("{\n\"type\":\"aaep:agent.state.changed\"}", Role::Producer, &there);
        assert_eq!(event.matches('\n').count(), 1);
        assert_eq!(
            message(&event, Role::Subscriber, &here),
            "{ \"type\":\"aaep:agent.state.changed\"}"
        );
        let reply = line(r#"{"type":"confirmation.reply"}"#, Role::Subscriber, &here);
        assert!(reply.contains("\"aaep.reply\"") && !reply.contains("\"id\""), "{reply}");
    }

    // covers: W12, D5
    #[test]
    fn what_is_wrong_is_answered_as_json_rpc_has_it_and_ends_nothing() {
        let asked = Asked::default();
        let answer = |line: &str| match read(line, Role::Producer, &asked) {
            LineContent::Answer(answer) => answer,
            _ => panic!("{line} has no answer"),
        };
        assert!(answer("hello").contains("-32700"));
        assert!(answer("[]").contains("-32600"));
        assert!(answer(r#"{"method":"aaep.ping"}"#).contains("-32600"));
        assert!(answer(r#"{"jsonrpc":"2.0","id":"a","method":"rm"}"#).contains("-32601"));
        let no_params = r#"{"jsonrpc":"2.0","id":1,"method":"aaep.subscribe","params":[]}"#;
        assert!(answer(no_params).contains("-32602"));
        let ping = r#"{"jsonrpc":"2.0","id":"a\"b","method":"aaep.ping"}"#;
        assert_eq!(answer(ping), "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"result\":{}}\n");
        let nothing = r#"{"jsonrpc":"2.0","method":"rm"}"#;
        assert!(matches!(read(nothing, Role::Producer, &asked), LineContent::Nothing));
        for _ in 0..super::super::WAITING {
            assert!(asked.wait("1"));
        }
        let more = r#"{"jsonrpc":"2.0","id":1,"method":"aaep.subscribe","params":{}}"#;
        assert!(answer(more).contains("-32000"));
        assert!(matches!(read("hello", Role::Subscriber, &asked), LineContent::Wrong(_)));
    }
}
