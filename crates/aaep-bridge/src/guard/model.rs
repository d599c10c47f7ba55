//! A model that says what a script says: enough of Anthropic's, OpenAI's two and Gemini's protocols for
//! real programs to work with it, without a network.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Tools to call: all of one step at once, one step after the other. Then the model is done.
pub type Script = Vec<Vec<(&'static str, Value)>>;

/// The longest request, in bytes.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// How long a connection may say nothing.
const SILENCE: Duration = Duration::from_secs(30);

/// A model on a port of the loopback address.
#[derive(Debug)]
pub struct Model {
    /// Where it is.
    pub url: String,
    told: Arc<Mutex<String>>,
}

impl Model {
    /// Starts one on a free port; it ends with the process.
    pub fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let told = Arc::new(Mutex::new(String::new()));
        let (script, heard) = (Arc::new(script), told.clone());
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (script, heard) = (script.clone(), heard.clone());
                thread::spawn(move || serve(stream, &script, &heard));
            }
        });
        Ok(Self { url, told })
    }

    /// Everything that it was told in its last request.
    pub fn told(&self) -> String {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(mut stream: TcpStream, script: &Script, told: &Mutex<String>) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        more(&mut stream, &mut bytes)?;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok()).unwrap_or(0);
    while bytes.len() < end.saturating_add(length) {
        more(&mut stream, &mut bytes)?;
    }
    let body: Value = serde_json::from_slice(&bytes[end..]).unwrap_or_default();
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let (kind, answer) = answer(&path, &body, script, told);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(answer.as_bytes())
}

fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    match stream.read(&mut buffer)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ if bytes.len() > MAX_REQUEST_BYTES => Err(io::ErrorKind::InvalidData.into()),
        read => {
            bytes.extend_from_slice(&buffer[..read]);
            Ok(())
        }
    }
}

fn answer(
    path: &str,
    body: &Value,
    script: &Script,
    told: &Mutex<String>,
) -> (&'static str, String) {
    let stream = "text/event-stream";
    let hears = || *told.lock().unwrap_or_else(PoisonError::into_inner) = body.to_string();
    // Calls for a title and the like offer no tools.
    let tools = body["tools"].as_array().map_or(0, Vec::len);
    let of = |list: &str, wanted: fn(&Value) -> bool| {
        body[list].as_array().into_iter().flatten().filter(|item| wanted(item)).count()
    };
    if path.contains("/messages") && !path.contains("count_tokens") {
        if tools < 2 {
            return (stream, anthropic(None, 0));
        }
        hears();
        let done = body["messages"].as_array().into_iter().flatten().map(results).sum();
        return (stream, anthropic(step(script, done), done));
    }
    if path.ends_with("/responses") {
        hears();
        let is_output =
            |item: &Value| item["type"].as_str().is_some_and(|it| it.ends_with("_output"));
        let done = of("input", is_output);
        return (stream, openai(step(script, done), done));
    }
    if path.ends_with("/chat/completions") {
        let done = of("messages", |message| message["role"] == "tool");
        let step = if tools > 0 {
            hears();
            step(script, done)
        } else {
            None
        };
        let said = chat(step, done);
        return match body["stream"].as_bool() {
            Some(true) => (stream, streamed(&said)),
            _ => ("application/json", said.to_string()),
        };
    }
    if path.contains("generatecontent") {
        let contents = body["contents"].as_array().into_iter().flatten();
        let parts = contents.flat_map(|content| content["parts"].as_array().into_iter().flatten());
        let done = parts.filter(|part| part.get("functionResponse").is_some()).count();
        let step = if body.get("tools").is_some() {
            hears();
            step(script, done)
        } else {
            None
        };
        let said = gemini(step);
        return match path.contains("stream") {
            true => (stream, format!("data: {said}\r\n\r\n")),
            false => ("application/json", said.to_string()),
        };
    }
    let models = json!({ "object": "list", "data": [{ "id": "scripted", "object": "model" }] });
    ("application/json", if path.ends_with("/models") { models.to_string() } else { "{}".into() })
}

/// The step that comes after so many results of tools.
fn step(script: &Script, mut results: usize) -> Option<&Vec<(&'static str, Value)>> {
    script.iter().find(|step| {
        let is_next = results < step.len();
        results = results.saturating_sub(step.len());
        is_next
    })
}

/// Results of tools in a message.
fn results(message: &Value) -> usize {
    let parts = message["content"].as_array().into_iter().flatten();
    parts.filter(|part| part["type"] == "tool_result").count()
}

fn anthropic(step: Option<&Vec<(&str, Value)>>, done: usize) -> String {
    let mut out = String::new();
    let mut say = |event: Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        out += &format!("event: {kind}\ndata: {event}\n\n");
    };
    say(
        json!({ "type": "message_start", "message": { "id": format!("msg_{done}"), "type": "message",
        "role": "assistant", "model": "scripted", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 1, "output_tokens": 1 } } }),
    );
    let blocks: Vec<_> = match step {
        Some(calls) => calls.iter().enumerate().map(|(index, (tool, input))| {
            let block = json!({ "type": "tool_use", "id": format!("toolu_{done}_{index}"), "name": tool, "input": {} });
            (block, json!({ "type": "input_json_delta", "partial_json": input.to_string() }))
        }).collect(),
        None => vec![(json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": "done" }))],
    };
    for (index, (block, delta)) in blocks.into_iter().enumerate() {
        say(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        say(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        say(json!({ "type": "content_block_stop", "index": index }));
    }
    let reason = if step.is_some() { "tool_use" } else { "end_turn" };
    say(
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": 1 } }),
    );
    say(json!({ "type": "message_stop" }));
    out
}

fn openai(step: Option<&Vec<(&str, Value)>>, done: usize) -> String {
    let mut out = String::new();
    let mut say = |event: Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        out += &format!("event: {kind}\ndata: {event}\n\n");
    };
    let id = format!("resp_{done}");
    say(json!({ "type": "response.created", "response": { "id": id } }));
    match step {
        Some(calls) => {
            for (index, (tool, input)) in calls.iter().enumerate() {
                say(json!({ "type": "response.output_item.done", "output_index": index, "item": {
                    "type": "function_call", "id": format!("fc_{done}_{index}"), "call_id": format!("call_{done}_{index}"),
                    "name": tool, "arguments": input.to_string() } }));
            }
        }
        None => say(
            json!({ "type": "response.output_item.done", "output_index": 0, "item": { "type": "message",
            "id": "msg_1", "role": "assistant", "content": [{ "type": "output_text", "text": "done" }] } }),
        ),
    }
    say(
        json!({ "type": "response.completed", "response": { "id": id, "usage": { "input_tokens": 1,
        "input_tokens_details": null, "output_tokens": 1, "output_tokens_details": null, "total_tokens": 2 } } }),
    );
    out
}

fn chat(step: Option<&Vec<(&str, Value)>>, done: usize) -> Value {
    let (message, reason) = match step {
        Some(calls) => {
            let calls: Vec<_> = calls
                .iter()
                .enumerate()
                .map(|(index, (tool, input))| {
                    json!({ "index": index, "id": format!("call_{done}_{index}"), "type": "function",
                        "function": { "name": tool, "arguments": input.to_string() } })
                })
                .collect();
            (json!({ "role": "assistant", "content": null, "tool_calls": calls }), "tool_calls")
        }
        None => (json!({ "role": "assistant", "content": "done" }), "stop"),
    };
    json!({ "id": format!("chat_{done}"), "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 } })
}

/// The same piece by piece.
fn streamed(said: &Value) -> String {
    let choice = &said["choices"][0];
    let piece = |delta: &Value, reason: &Value| {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
        let piece = json!({ "id": said["id"], "object": "chat.completion.chunk", "created": 1,
            "model": "scripted", "choices": choices, "usage": said["usage"] });
        format!("data: {piece}\n\n")
    };
    let (first, last) = (&choice["message"], &choice["finish_reason"]);
    format!("{}{}data: [DONE]\n\n", piece(first, &Value::Null), piece(&json!({}), last))
}

fn gemini(step: Option<&Vec<(&str, Value)>>) -> Value {
    let parts: Vec<_> = match step {
        Some(calls) => calls
            .iter()
            .map(|(tool, input)| json!({ "functionCall": { "name": tool, "args": input } }))
            .collect(),
        None => vec![json!({ "text": "done" })],
    };
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 } })
}
