//! Several servers as one: each server's tools and prompts are named with it, as in
//! `files__read_text_file`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aaep_types::json::{Members, Raw, Writer};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::message::key;
use super::rewrite::{DEPTH, set};
use super::{Sink, lock, write};
use crate::act::shown;

/// Between a server's name and its tool's.
const BETWEEN: &str = "__";

/// How long one server may hold up what all are asked.
const ALL_ANSWER: Duration = Duration::from_secs(30);

/// Pages of one list that are read.
const PAGES: usize = 50;

/// Requests on their way, and resources that are remembered.
const REQUESTS: usize = 1024;
const RESOURCES: usize = 10_000;

/// The server of a tool, and what it calls it, by the tool's name for the client.
pub(super) fn split<'a>(servers: &'a [String], tool: &'a str) -> Option<(&'a str, &'a str)> {
    let of = |server: &'a String| {
        let tool = tool.strip_prefix(server.as_str())?.strip_prefix(BETWEEN)?;
        Some((server.as_str(), tool))
    };
    servers.iter().filter_map(of).max_by_key(|(server, _)| server.len())
}

/// Whether a server can have this name: it stands in names of tools.
pub fn is_name(name: &str) -> bool {
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 32 && name.chars().all(sound) && !name.contains(BETWEEN)
}

/// One of the servers.
pub struct Server {
    /// Its name.
    pub name: String,
    /// What it says.
    pub from: Box<dyn AsyncRead + Send + Unpin>,
    /// What it hears.
    pub to: Box<dyn AsyncWrite + Send + Unpin>,
}

/// Who gets the answer to a request that was sent under a name of ours.
enum Waits {
    /// The client, under its own id.
    Client(String),
    /// We do.
    Us(oneshot::Sender<String>),
}

#[derive(Default)]
struct Routes {
    count: u64,
    /// Requests to servers: by our id, to whom, and who waits.
    sent: BTreeMap<String, (usize, Waits)>,
    /// Requests of servers: by our id, from whom, and its own id.
    asked: BTreeMap<String, (usize, String)>,
    /// Which server has which resource.
    resources: BTreeMap<String, usize>,
}

struct Hub {
    names: Vec<String>,
    servers: Vec<tokio::sync::Mutex<Option<Sink>>>,
    client: tokio::sync::Mutex<Sink>,
    routes: Mutex<Routes>,
}

/// Runs until the client is gone, or all servers are.
pub async fn run(
    servers: Vec<Server>,
    mut from_client: impl AsyncBufRead + Unpin,
    to_client: impl AsyncWrite + Unpin + Send + 'static,
) {
    let mut names = Vec::new();
    let (mut sinks, mut sources) = (Vec::new(), Vec::new());
    for server in servers {
        names.push(server.name);
        sinks.push(tokio::sync::Mutex::new(Some(server.to)));
        sources.push(server.from);
    }
    let hub = Arc::new(Hub {
        names,
        servers: sinks,
        client: tokio::sync::Mutex::new(Box::new(to_client)),
        routes: Mutex::default(),
    });
    let mut readers = JoinSet::new();
    for (index, from) in sources.into_iter().enumerate() {
        let hub = hub.clone();
        readers.spawn(async move {
            let mut from = BufReader::new(from);
            while let Ok(Some(line)) = super::line(&mut from).await {
                hub.server_said(index, String::from_utf8_lossy(&line).trim()).await;
            }
            hub.server_gone(index).await;
        });
    }
    let mut tasks = JoinSet::new();
    let outward = async {
        while let Ok(Some(line)) = super::line(&mut from_client).await {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            hub.client_said(text, &mut tasks).await;
        }
    };
    tokio::select! {
        () = outward => {}
        () = async { while readers.join_next().await.is_some() {} } => {}
    }
    tasks.shutdown().await;
    for server in &hub.servers {
        *server.lock().await = None;
    }
    // What they still say is for nobody.
    let _ = tokio::time::timeout(Duration::from_secs(2), async {
        while readers.join_next().await.is_some() {}
    })
    .await;
}

fn failed(id: &str, code: i32, words: &str) -> String {
    let error = json!({ "code": code, "message": words });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

impl Hub {
    async fn client_said(self: &Arc<Self>, text: String, tasks: &mut JoinSet<()>) {
        let Ok(message) = serde_json::from_str::<Value>(&text) else { return };
        while tasks.try_join_next().is_some() {}
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id").map(key)) {
            (Some(method), Some(id)) => {
                let all = [
                    "initialize",
                    "server/discover",
                    "tools/list",
                    "prompts/list",
                    "resources/list",
                    "resources/templates/list",
                    "logging/setLevel",
                    "ping",
                ];
                if !all.contains(&method) {
                    return self.pass(&id, method, &message, &text).await;
                }
                let (hub, method) = (self.clone(), method.to_owned());
                tasks.spawn(async move { hub.ask_all(&id, &method, &text).await });
            }
            (Some("notifications/cancelled"), None) => {
                let id = message.pointer("/params/requestId").map(key).unwrap_or_default();
                let found = lock(&self.routes).sent.iter().find_map(|(ours, (to, waits))| {
                    matches!(waits, Waits::Client(own) if *own == id).then(|| (ours.clone(), *to))
                });
                if let Some((ours, to)) = found
                    && let Some(line) = set(&text, &["params", "requestId"], &ours)
                {
                    self.tell(to, &line).await;
                }
            }
            (Some(_), None) => {
                for index in 0..self.servers.len() {
                    self.tell(index, &text).await;
                }
            }
            // The answer to a request of a server.
            (None, Some(id)) => {
                let asked = lock(&self.routes).asked.remove(&id);
                if let Some((from, own)) = asked
                    && let Some(line) = set(&text, &["id"], &own)
                {
                    self.tell(from, &line).await;
                }
            }
            (None, None) => {}
        }
    }

    /// Passes a request to the server that it concerns.
    async fn pass(&self, id: &str, method: &str, message: &Value, text: &str) {
        let at = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        let named = |pointer: &str| {
            let (server, tool) = split(&self.names, at(pointer)?)?;
            Some((self.names.iter().position(|name| name == server)?, Some(tool)))
        };
        let resource =
            |pointer: &str| Some((*lock(&self.routes).resources.get(at(pointer)?)?, None));
        let (found, path): (_, &[&str]) = match method {
            "tools/call" | "prompts/get" => (named("/params/name"), &["params", "name"]),
            "completion/complete" => match at("/params/ref/name") {
                Some(_) => (named("/params/ref/name"), &["params", "ref", "name"]),
                None => (resource("/params/ref/uri"), &[]),
            },
            _ => (resource("/params/uri"), &[]),
        };
        let Some((to, plain)) = found else {
            let words = "Which server is meant? Names are as in the lists: SERVER__NAME.";
            return self.answer(&failed(id, -32602, words)).await;
        };
        let renamed = match plain {
            Some(plain) => set(text, path, &json!(plain).to_string()),
            None => Some(text.to_owned()),
        };
        let ours = self.note(to, Waits::Client(id.to_owned()));
        let sent = match (ours, renamed) {
            (Some(ours), Some(line)) => match set(&line, &["id"], &ours) {
                Some(line) => self.tell(to, &line).await,
                None => false,
            },
            _ => false,
        };
        if !sent {
            let words = format!("The server {} is gone.", self.names[to]);
            self.answer(&failed(id, -32001, &words)).await;
        }
    }

    /// Gives a request a name of ours; none if too many are on their way.
    fn note(&self, to: usize, waits: Waits) -> Option<String> {
        let mut routes = lock(&self.routes);
        routes.count += 1;
        let ours = format!("\"aaep-{}\"", routes.count);
        (routes.sent.len() < REQUESTS).then(|| {
            routes.sent.insert(ours.clone(), (to, waits));
            ours
        })
    }

    /// Says something to a server, if it is there.
    async fn tell(&self, to: usize, line: &str) -> bool {
        match self.servers[to].lock().await.as_mut() {
            Some(server) => write(&mut **server, line.as_bytes()).await.is_ok(),
            None => false,
        }
    }

    async fn answer(&self, line: &str) {
        let _ = write(&mut **self.client.lock().await, line.as_bytes()).await;
    }

    async fn server_said(&self, from: usize, text: &str) {
        let Ok(message) = serde_json::from_str::<Value>(text) else { return };
        let is_request = message.get("method").is_some();
        match message.get("id").map(key) {
            None => self.answer(text).await,
            Some(own) if is_request => {
                let ours = {
                    let mut routes = lock(&self.routes);
                    routes.count += 1;
                    // Who asks can be seen by the id.
                    let ours = format!("\"{}{BETWEEN}{}\"", self.names[from], routes.count);
                    if routes.asked.len() < REQUESTS {
                        routes.asked.insert(ours.clone(), (from, own));
                    }
                    ours
                };
                if let Some(line) = set(text, &["id"], &ours) {
                    self.answer(&line).await;
                }
            }
            Some(ours) => {
                // Only the server that was asked answers.
                let waits = {
                    let mut routes = lock(&self.routes);
                    match routes.sent.get(&ours) {
                        Some((to, _)) if *to == from => routes.sent.remove(&ours),
                        _ => None,
                    }
                };
                match waits {
                    Some((_, Waits::Client(own))) => {
                        if let Some(line) = set(text, &["id"], &own) {
                            self.answer(&line).await;
                        }
                    }
                    Some((_, Waits::Us(waits))) => drop(waits.send(text.to_owned())),
                    None => {}
                }
            }
        }
    }

    async fn server_gone(&self, index: usize) {
        *self.servers[index].lock().await = None;
        let lost: Vec<_> = {
            let mut routes = lock(&self.routes);
            let all = std::mem::take(&mut routes.sent);
            let (lost, kept): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|(_, (to, _))| *to == index);
            routes.sent = kept.into_iter().collect();
            lost
        };
        for (_, (_, waits)) in lost {
            if let Waits::Client(own) = waits {
                let words = format!("The server {} is gone.", self.names[index]);
                self.answer(&failed(&own, -32001, &words)).await;
            }
        }
    }

    /// Asks one server, and waits for its answer: the whole message.
    async fn ask(&self, to: usize, text: &str) -> Option<String> {
        let (send, receive) = oneshot::channel();
        let ours = self.note(to, Waits::Us(send))?;
        let line = set(text, &["id"], &ours)?;
        if !self.tell(to, &line).await {
            lock(&self.routes).sent.remove(&ours);
            return None;
        }
        let answer = tokio::time::timeout(ALL_ANSWER, receive).await;
        lock(&self.routes).sent.remove(&ours);
        answer.ok()?.ok()
    }

    /// Asks all, and answers with what they say together.
    async fn ask_all(&self, id: &str, method: &str, text: &str) {
        let asked = (0..self.servers.len()).map(|index| self.pages(index, method, text));
        let mut answers = Vec::new();
        // One after the other would add up; they are few.
        let mut waiting: Vec<_> = asked.map(Box::pin).collect();
        let together = std::future::poll_fn(|context| {
            let mut ready = true;
            for (index, future) in waiting.iter_mut().enumerate() {
                if answers.iter().any(|(at, _)| *at == index) {
                    continue;
                }
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(answer) => answers.push((index, answer)),
                    std::task::Poll::Pending => ready = false,
                }
            }
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        together.await;
        answers.sort_by_key(|(index, _)| *index);
        let results: Vec<_> = answers.into_iter().filter(|(_, pages)| !pages.is_empty()).collect();
        let Some(result) = self.merged(method, &results) else {
            let words = "None of the servers answers this.";
            return self.answer(&failed(id, -32601, words)).await;
        };
        self.answer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
    }

    /// The results of one server: all pages of a list.
    async fn pages(&self, to: usize, method: &str, text: &str) -> Vec<String> {
        let mut pages = Vec::new();
        let mut line = text.to_owned();
        for _ in 0..PAGES {
            let Some(answer) = self.ask(to, &line).await else { break };
            let Some(result) = member(&answer, "result") else { break };
            let next = serde_json::from_str::<Value>(&result).unwrap_or_default();
            let next = next.get("nextCursor").filter(|next| next.is_string()).cloned();
            pages.push(result);
            match next.filter(|_| method.ends_with("/list")) {
                Some(next) => match set(text, &["params", "cursor"], &next.to_string()) {
                    Some(with) => line = with,
                    None => break,
                },
                None => break,
            }
        }
        pages
    }

    /// What several servers say together, as JSON; none if nobody says anything.
    fn merged(&self, method: &str, results: &[(usize, Vec<String>)]) -> Option<String> {
        let first = results.first()?.1.first()?;
        let list = match method {
            "tools/list" => "tools",
            "prompts/list" => "prompts",
            "resources/list" => "resources",
            "resources/templates/list" => "resourceTemplates",
            "initialize" | "server/discover" => return Some(self.introduced(results)),
            _ => return Some(first.clone()),
        };
        let named = matches!(list, "tools" | "prompts");
        let mut out = Writer::new();
        out.open('[');
        for (index, page) in
            results.iter().flat_map(|(index, pages)| pages.iter().map(move |it| (index, it)))
        {
            let Some(items) = member(page, list) else { continue };
            for item in aaep_types::json::elements(&items) {
                let Raw::Object(item) = item else { continue };
                let value: Value = serde_json::from_str(item).unwrap_or_default();
                let text = |name: &str| value.get(name).and_then(Value::as_str);
                if let (true, Some(name)) = (named, text("name")) {
                    let name = json!(format!("{}{BETWEEN}{name}", self.names[*index]));
                    let Some(item) = set(item, &["name"], &name.to_string()) else { continue };
                    out.json(&item);
                } else {
                    let mut routes = lock(&self.routes);
                    if let Some(uri) = text("uri").or(text("uriTemplate"))
                        && routes.resources.len() < RESOURCES
                    {
                        routes.resources.insert(uri.to_owned(), *index);
                    }
                    out.json(item);
                }
                out.comma();
            }
        }
        out.close(']');
        let without = set(first, &[list], &out.finish())?;
        // Everything is here.
        let mut whole: Map<String, Value> = serde_json::from_str(&without).ok()?;
        match whole.remove("nextCursor") {
            Some(_) => Some(Value::Object(whole).to_string()),
            None => Some(without),
        }
    }

    /// What servers say of themselves, as one.
    fn introduced(&self, results: &[(usize, Vec<String>)]) -> String {
        let mut merged = Map::new();
        let mut capabilities = Map::new();
        let mut instructions = Vec::new();
        for (index, page) in
            results.iter().filter_map(|(index, pages)| Some((index, pages.first()?)))
        {
            let said: Map<String, Value> = serde_json::from_str(page).unwrap_or_default();
            if let Some(Value::Object(more)) = said.get("capabilities") {
                for (name, value) in more {
                    capabilities.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            if let Some(text) = said.get("instructions").and_then(Value::as_str) {
                instructions.push(format!("{}: {text}", self.names[*index]));
            }
            for (name, value) in said {
                match (name.as_str(), merged.get(&name)) {
                    // The oldest that one of them speaks is spoken with all.
                    ("protocolVersion", Some(old)) if old.as_str() <= value.as_str() => {}
                    ("supportedVersions", Some(Value::Array(old))) => {
                        let mut both = old.clone();
                        both.retain(|it| value.as_array().is_some_and(|new| new.contains(it)));
                        merged.insert(name, Value::Array(both));
                    }
                    (_, Some(_)) if name != "protocolVersion" => {}
                    _ => drop(merged.insert(name, value)),
                }
            }
        }
        merged.insert("capabilities".into(), Value::Object(capabilities));
        if merged.contains_key("serverInfo") {
            let names: Vec<_> = self.names.iter().map(|name| shown(name)).collect();
            let info = json!({ "name": "aaep", "title": names.join(", "),
                "version": env!("CARGO_PKG_VERSION") });
            merged.insert("serverInfo".into(), info);
        }
        if !instructions.is_empty() {
            merged.insert("instructions".into(), json!(instructions.join("\n")));
        }
        Value::Object(merged).to_string()
    }
}

/// A member of an object, as it is written.
fn member(text: &str, name: &str) -> Option<String> {
    let members = Members::whole(text, DEPTH).ok().flatten()?;
    let mut out = Writer::new();
    out.raw(members.find(name)?);
    Some(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_named_with_their_server() {
        let servers = ["files".to_owned(), "files-2".to_owned()];
        assert_eq!(split(&servers, "files__read"), Some(("files", "read")));
        assert_eq!(split(&servers, "files-2__read__all"), Some(("files-2", "read__all")));
        for name in ["read", "other__read", "files_read", ""] {
            assert_eq!(split(&servers, name), None, "{name}");
        }
        for (name, sound) in
            [("files", true), ("a-b_c", true), ("", false), ("a__b", false), ("a b", false)]
        {
            assert_eq!(is_name(name), sound, "{name}");
        }
    }
}
