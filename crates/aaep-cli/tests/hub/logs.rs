//! What operators read: the log, the figures, spans, and what becomes of them while the hub works.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::support::*;

/// A hub whose log is as its configuration says, and not as the tests usually want it.
fn quiet(toml: &str) -> Setup {
    Setup::default().unset("AAEP_LOG").toml(toml)
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))
}

// covers: S8
#[test]
fn every_line_for_programs_is_json_and_about_its_request() {
    run(async {
        let hub = Hub::start(quiet("[log]\nformat = \"json\"\n"));
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let request = agent.ask(&agent.open().await).await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        // Who decided.
        let decided = parsed(&hub.logs(&["a request was resolved"]));
        assert_eq!(decided["fields"]["by"], json!(person.name("reader")), "{decided}");
        assert_eq!(decided["fields"]["outcome"], "accepted");
        assert_eq!(decided["span"]["url.path"], "/aaep/v1/replies", "{decided}");
        // Why somebody was refused, under the id that they were told.
        let secret = format!("aaep_{}", "s".repeat(43));
        let refused = client(&hub.base(), Some(&secret)).get("agent/inputs").await.unwrap();
        assert_eq!(refused.status, 401);
        let id = refused.headers["x-request-id"].to_str().unwrap();
        let line = parsed(&hub.logs(&["a request was refused", id]));
        assert!(text(&line["fields"], "why").contains("nobody's"), "{line}");
        assert_eq!(line["span"]["http.request.method"], "GET");
        assert_eq!(line["fields"]["status"], 401);
        let auditor =
            client(&hub.base(), Some(&token("auditor"))).get("agent/inputs").await.unwrap();
        assert_eq!(auditor.status, 403);
        hub.logs(&["a request was refused", "the role of this principal"]);
        // A path that the hub does not have is its sender's own words.
        let lost = hub.outside(None).get(&secret).await.unwrap();
        assert_eq!(lost.status, 404);
        hub.logs(&["a request was refused", lost.headers["x-request-id"].to_str().unwrap()]);
        hub.signal("HUP");
        hub.logs(&["were read again"]);
        hub.signal("TERM");
        assert!(hub.ended().success());
        let log = hub.log();
        assert!(log.iter().any(|line| line.contains("Stopping.")), "{log:#?}");
        for line in &log {
            let line = parsed(line);
            assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
            assert!(!line.to_string().contains(&secret), "{line}");
        }
    });
}

#[test]
fn what_is_wrong_with_a_configuration_is_json_where_programs_read_it() {
    let wrong = "listen = []\nlisten_to = 1\n[log]\nformat = \"json\"\n";
    let (code, said) = quiet(wrong).fails();
    assert_eq!(code, 2);
    let line = parsed(said.trim());
    assert_eq!(line["level"], "ERROR");
    assert!(text(&line["fields"], "message").contains("listen_to"), "{line}");
    let (_, said) = quiet("listen_to = 1\n").fails();
    assert!(said.starts_with("aaep: "), "{said}");
}

#[test]
fn a_reload_changes_what_is_logged_and_says_what_it_took_over() {
    run(async {
        let hub = Hub::start(quiet("[log]\nlevel = \"warn\"\n"));
        let wrong = token("somebody");
        let refused = || async {
            let answer = client(&hub.base(), Some(&wrong)).get("agent/inputs").await.unwrap();
            answer.headers["x-request-id"].to_str().unwrap().to_owned()
        };
        let unlogged = refused().await;
        let config = hub.directory().join("aaep.toml");
        let before = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, before.replace("warn", "info")).unwrap();
        hub.signal("HUP");
        hub.logs(&["Taken over: log.level."]);
        hub.logs(&["were read again"]);
        let logged = refused().await;
        hub.logs(&["a request was refused", &logged]);
        assert!(!hub.log().iter().any(|line| line.contains(&unlogged)), "{:#?}", hub.log());
        // The same again takes over nothing.
        let skip = hub.log().len();
        hub.signal("HUP");
        hub.logs_after(skip, &["No key", "has changed"]);
    });
}

/// The value of a figure without labels.
fn figure(metrics: &str, name: &str) -> Option<u64> {
    let line = metrics.lines().find(|line| line.split(' ').next() == Some(name))?;
    line.split(' ').nth(1)?.parse().ok()
}

#[test]
fn an_event_that_was_refused_is_not_counted() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let agent = person.agent();
        let session = agent.open().await;
        agent.progress(&session, 10).await;
        let counted = async || {
            let answer = hub.outside(None).get("metrics").await.unwrap();
            figure(std::str::from_utf8(&answer.body).unwrap(), "aaep_events_total").unwrap()
        };
        let before = counted().await;
        assert!(before > 0);
        let unknown = json!({ "tool_call_id": "call_never", "tool": "files.read",
            "status": "success", "summary_normal": "Read." });
        let refused = agent.try_emit(&session, "tool.completed", unknown).await;
        assert_eq!(refused.status, 409, "{refused:?}");
        assert_eq!(counted().await, before);
    });
}

#[test]
fn figures_tell_of_memory_journal_disk_and_certificate() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let person = hub.person();
        person.agent().open().await;
        let answer = hub.outside(None).get("metrics").await.unwrap();
        let metrics = String::from_utf8(answer.body.to_vec()).unwrap();
        let found = |name: &str| figure(&metrics, name);
        assert!(found("aaep_journal_bytes") > Some(4096), "{metrics}");
        assert!(found("aaep_disk_free_bytes") > Some(1 << 20), "{metrics}");
        assert_eq!(found("aaep_journal_stuck"), Some(0));
        assert!(found("aaep_max_files") >= found("aaep_open_files"), "{metrics}");
        assert!(found("aaep_resident_memory_bytes") > Some(1 << 20), "{metrics}");
        assert_eq!(found("aaep_certificate_expiry_timestamp_seconds"), None, "there is none");
        // Everything that the dashboard shows is there, or would be with TLS.
        let dashboard = include_str!("../../../../packaging/grafana/aaep-hub.json");
        let dashboard: Value = serde_json::from_str(dashboard).unwrap();
        let asked = dashboard.to_string();
        let mut names: Vec<&str> = asked
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| word.starts_with("aaep_"))
            .collect();
        names.sort_unstable();
        names.dedup();
        assert!(names.len() > 15, "{names:?}");
        for name in names {
            let known = metrics.contains(&format!("# TYPE {name} "));
            assert!(known || name == "aaep_certificate_expiry_timestamp_seconds", "{name}");
        }
        // And every figure is explained.
        let docs = include_str!("../../../../docs/operating.md");
        for line in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let name = line.split(' ').next().unwrap();
            assert!(docs.contains(&format!("`{name}")), "{name} is not explained");
        }
    });
}

#[test]
fn a_system_that_lets_it_open_too_few_files_is_named_at_the_start() {
    let hub = Hub::start_by(tempfile::tempdir().unwrap(), |command| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -n 512; exec \"$@\"", "sh"]).arg(command.get_program());
        shell.args(command.get_args()).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    });
    let said = hub.logs(&["too few for 8192 connections"]);
    assert!(said.contains("512") && said.contains("ulimit -n"), "{said}");
}

/// A collector: takes what is posted to it, and reads it as OTLP.
fn collector() -> (String, Receiver<(String, ExportTraceServiceRequest)>) {
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", door.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in door.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim().to_lowercase();
                if line.is_empty() {
                    break;
                }
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if let Some(value) = line.strip_prefix("content-type:") {
                    assert_eq!(value.trim(), "application/x-protobuf");
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let read = ExportTraceServiceRequest::decode(&*body).unwrap();
            let done = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(done).unwrap();
            if sender.send((first, read)).is_err() {
                return;
            }
        }
    });
    (address, receiver)
}

fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    Some(match found.value.as_ref()?.value.as_ref()? {
        AnyValue::StringValue(text) => text.clone(),
        AnyValue::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    })
}

// covers: S8
#[test]
fn requests_are_spans_that_a_collector_understands() {
    let (address, spans) = collector();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let agent = run_and_give(async {
        // Also where nothing is logged.
        let hub = Hub::start(quiet(&format!("[log]\nlevel = \"error\"\notlp = \"{address}\"\n")));
        let person = hub.person();
        let mut headers = http::HeaderMap::new();
        let parent = format!("00-{trace}-00f067aa0ba902b7-01");
        headers.insert("traceparent", parent.parse().unwrap());
        let inputs = person.client("agent");
        let answer = inputs.request(http::Method::GET, "agent/inputs", headers, "").await.unwrap();
        assert_eq!(answer.status, 200);
        // Sent at the end at the latest.
        hub.signal("TERM");
        assert!(hub.ended().success());
        (person.name("agent"), answer.headers["x-request-id"].to_str().unwrap().to_owned())
    });
    let (name, id) = agent;
    let mut all = Vec::new();
    while let Ok((first, exported)) = spans.recv_timeout(PATIENCE / 12) {
        assert!(first.starts_with("POST /v1/traces "), "{first}");
        for resource in exported.resource_spans {
            let service = resource.resource.unwrap().attributes;
            assert!(service.iter().any(|attribute| attribute.key == "service.name"));
            all.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
        if all.iter().any(|span| attribute(span, "id").as_ref() == Some(&id)) {
            break;
        }
    }
    let span = all.iter().find(|span| attribute(span, "id").as_ref() == Some(&id));
    let span = span.unwrap_or_else(|| panic!("{all:#?}"));
    assert_eq!(span.name, "request");
    assert_eq!(attribute(span, "http.request.method").as_deref(), Some("GET"));
    assert_eq!(attribute(span, "url.path").as_deref(), Some("/aaep/v1/agent/inputs"));
    assert_eq!(attribute(span, "http.response.status_code").as_deref(), Some("200"));
    assert_eq!(attribute(span, "principal"), Some(name));
    // It belongs to the trace of the agent that asked.
    let hex: String = span.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, trace);
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
}

#[test]
fn a_collector_that_is_away_is_said_once_and_holds_nothing_up() {
    run(async {
        let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let hub = Hub::start(quiet(&format!("[log]\notlp = \"http://{away}\"\n")));
        let person = hub.person();
        assert_eq!(person.client("agent").get("agent/inputs").await.unwrap().status, 200);
        hub.logs(&["Spans cannot be sent"]);
        hub.signal("TERM");
        assert!(hub.ended().success());
    });
    let (_, said) = quiet("[log]\notlp = \"collector:4318\"\n").fails();
    assert!(said.contains("log.otlp") && said.contains("http://127.0.0.1:4318"), "{said}");
}

#[test]
fn a_backup_says_which_journal_it_is_and_can_be_verified() {
    run(async {
        let hub = Hub::start(Setup::durable());
        hub.person().agent().open().await;
        let aaep = |arguments: &[&str]| {
            let ended = Command::new(env!("CARGO_BIN_EXE_aaep"))
                .args(arguments)
                .env_clear()
                .env("HOME", hub.directory())
                .current_dir(hub.directory())
                .output()
                .unwrap();
            let said = String::from_utf8(ended.stdout).unwrap();
            (ended.status.code(), said, String::from_utf8(ended.stderr).unwrap())
        };
        let (code, said, error) = aaep(&["hub", "backup", "copy.db"]);
        assert_eq!(code, Some(0), "{error}");
        let journal = hub
            .said()
            .into_iter()
            .find_map(|line| Some(line.strip_prefix("Journal: ")?.to_owned()));
        let journal = journal.expect("it says where its journal is");
        assert!(said.starts_with(&format!("Copied {journal} to copy.db.\n")), "{said}");
        let line = said.lines().find(|line| line.starts_with("It is the journal ")).unwrap();
        let verified = said.lines().last().unwrap().strip_prefix("To verify it: aaep ").unwrap();
        let (code, told, error) = aaep(&verified.split(' ').collect::<Vec<_>>());
        assert_eq!(code, Some(0), "{line} {told} {error}");
        assert!(told.contains("each as it was written"), "{told}");
        // Not the journal, but the copy: a changed copy is found.
        let copy = hub.directory().join("copy.db");
        let mut bytes = std::fs::read(&copy).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(&copy, bytes).unwrap();
        assert_ne!(aaep(&["audit", "verify", "--file", "copy.db"]).0, Some(0));
        assert_eq!(aaep(&["audit", "verify"]).0, Some(0));
    });
}
