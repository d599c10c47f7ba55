//! Everyday administration: figures for those who hear nothing, agent ids, sessions, shutting out.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use crate::support::*;

fn aaep(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(arguments).env_clear().env("HOME", home).stdin(Stdio::null());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs `aaep admin` with somebody's token.
fn admin_as(hub: &Hub, who: &str, arguments: &[&str]) -> (bool, String) {
    let file = hub.directory().join(format!("{who}.token"));
    std::fs::write(&file, token(who)).unwrap();
    let (base, file) = (hub.base(), file.to_str().unwrap().to_owned());
    let fixed = ["admin", "--hub", &base, "--token-file", &file];
    let output = aaep(hub.directory(), &[&fixed[..], arguments].concat());
    (output.status.success(), said(&output))
}

fn admin(hub: &Hub, arguments: &[&str]) -> String {
    let (good, said) = admin_as(hub, "admin", arguments);
    assert!(good, "{arguments:?}: {said}");
    said
}

/// What the audit says of acts of administration, as `act what to`.
fn acts(hub: &Hub) -> Vec<String> {
    let config = hub.directory().join("aaep.toml");
    let arguments = ["audit", "export", "--kind", "administered", "--config"];
    let output = aaep(hub.directory(), &[&arguments[..], &[config.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let of = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {} {}", of("by"), of("act"), of("what"), of("to")).trim_end().to_owned()
    };
    String::from_utf8_lossy(&output.stdout).lines().map(line).collect()
}

fn reload_after(hub: &Hub, act: impl FnOnce()) {
    let before = hub.log().len();
    act();
    hub.logs_after(before, &["were read again"]);
}

// covers: S6
#[test]
fn whoever_reads_figures_hears_nothing() {
    run(async {
        let hub = Hub::start(Setup::durable());
        reload_after(&hub, || {
            let config = hub.directory().join("aaep.toml");
            let config = config.to_str().unwrap();
            let made = ["token", "new", "graphs", "--role", "metrics", "--user", "ops", "--config"];
            let output = aaep(hub.directory(), &[&made[..], &[config]].concat());
            assert!(output.status.success(), "{}", said(&output));
        });
        let shown = std::fs::read_to_string(hub.directory().join("tokens/graphs")).unwrap();
        let shown = shown.trim();
        let root = client(&hub.base().replace("/aaep/v1", ""), Some(shown));
        let figures = root.get("metrics").await.unwrap();
        assert_eq!(figures.status, 200);
        assert!(String::from_utf8_lossy(&figures.body).contains("aaep_"));
        let api = client(&hub.base(), Some(shown));
        for path in ["events", "status", "admin/agents", "agent/inputs"] {
            assert_eq!(api.get(path).await.unwrap().status, 403, "{path}");
        }
        let subscribed = api.post("subscriptions", request(everything())).await.unwrap();
        assert_eq!(subscribed.status, 403, "{subscribed:?}");
        assert_eq!(acts(&hub), ["configuration let_in graphs"]);
    });
}

// covers: S4, S9
#[test]
fn an_administrator_shuts_somebody_out_from_anywhere_and_lets_them_in_again() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let person = hub.person();
        let name = person.name("phone");
        let status =
            async |device: &str| person.client(device).get("status").await.unwrap().status.as_u16();
        assert_eq!(status("phone").await, 200);
        assert!(admin(&hub, &["deny", &name]).contains("is shut out"));
        assert_eq!((status("phone").await, status("reader").await), (401, 200));
        assert!(admin(&hub, &["allow", &name]).contains("is let in again"));
        assert_eq!(status("phone").await, 200);
        let (good, why) = admin_as(&hub, "admin", &["allow", &name]);
        assert!(!good && why.contains("is not denied"), "{why}");
        assert!(!admin_as(&hub, "auditor", &["deny", &name]).0);
        assert_eq!(status("phone").await, 200);
        let expected =
            ["admin denied", "configuration shut_out", "admin allowed", "configuration let_in"];
        assert_eq!(acts(&hub), expected.map(|act| format!("{act} {name}")));
    });
}

// covers: S5
#[test]
fn an_agent_id_is_released_and_handed_over_also_across_a_restart() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let (first, second) = (hub.person(), hub.person());
        let id = "shared-cook";
        let opening = json!({"producer": {"agent_id": id}, "summary_normal": "Cooking."});
        let open = async |person: &Person| {
            let client = person.client("agent");
            client.post("agent/sessions", opening.to_string()).await.unwrap()
        };
        let opened = open(&first).await;
        assert_eq!(opened.status, 201, "{opened:?}");
        assert_ne!(open(&second).await.status, 201, "it is the first one's");
        let listed = admin(&hub, &["agents"]);
        let name = first.name("agent");
        assert!(listed.contains(&format!("{id}: {name} of ")), "{listed}");
        assert!(listed.contains("1 open session"), "{listed}");
        // Not while somebody speaks under it.
        let (good, why) = admin_as(&hub, "admin", &["release", id]);
        assert!(!good && why.contains("End them first"), "{why}");
        let session = text(&body(&opened), "session_id").to_owned();
        assert!(admin(&hub, &["sessions"]).contains(&session));
        admin(&hub, &["end", &session]);
        let to = second.name("agent");
        admin(&hub, &["hand-over", id, &to]);
        assert_ne!(open(&first).await.status, 201, "it is the second one's now");
        // After a restart it still is.
        let directory = hub.shared_directory();
        hub.signal("TERM");
        assert!(hub.ended().success());
        let hub = Hub::start_in(Setup::durable(), directory);
        let (first, second) = (first.at(&hub), second.at(&hub));
        let open = async |person: &Person| {
            let client = person.client("agent");
            client.post("agent/sessions", opening.to_string()).await.unwrap()
        };
        assert_ne!(open(&first).await.status, 201);
        let again = open(&second).await;
        assert_eq!(again.status, 201, "{again:?}");
        admin(&hub, &["end", text(&body(&again), "session_id")]);
        admin(&hub, &["release", id]);
        assert_eq!(open(&first).await.status, 201, "it was nobody's");
        let user = &to;
        let acts = acts(&hub);
        assert_eq!(acts.len(), 4, "{acts:?}");
        assert_eq!(acts[0], format!("admin ended_session {session}"));
        assert!(acts[1].starts_with(&format!("admin handed_over {id} {user} of ")), "{acts:?}");
        assert_eq!(acts[3], format!("admin released {id}"));
        // Nobody else may, and what cannot be is said.
        for who in ["auditor", &first.name("agent"), &first.name("reader")] {
            let (good, _) = admin_as(&hub, who, &["agents"]);
            assert!(!good, "{who}");
        }
        for (arguments, why) in [
            (&["release", "nobody"][..], "belongs to nobody"),
            (&["hand-over", id, "stranger"], "no such principal"),
            (&["hand-over", id, "auditor"], "Only an agent"),
            (&["end", "sess_0"], "no such session"),
            (&["end", "../x"], "is no session"),
        ] {
            let (good, told) = admin_as(&hub, "admin", arguments);
            assert!(!good && told.contains(why), "{arguments:?}: {told}");
        }
    });
}

// covers: S4, I13
#[test]
fn an_ended_session_takes_its_questions_with_it_and_everybody_is_told() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let person = hub.person();
        let mut ear = Ear::subscribe(person.client("reader")).await;
        let agent = person.agent();
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let question = ear.event("awaiting.confirmation").await;
        admin(&hub, &["end", &session]);
        let over = ear.event("session.cancelled").await;
        assert_eq!(over["cancelled_by"], "system");
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "cancelled");
        let told = agent.inputs(5).await;
        assert!(told.iter().any(|input| input.to_string().contains(&session)), "{told:?}");
        ear.is_lawful();
    });
}

// covers: S4
#[test]
fn a_principal_that_is_denied_hears_nothing_more_at_once_whatever_it_shows() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let person = hub.person();
        let name = person.name("reader");
        let change = |hub: &Arc<Hub>, what: &str| {
            reload_after(hub, || {
                let config = hub.directory().join("aaep.toml");
                let config = config.to_str().unwrap();
                let output = aaep(hub.directory(), &["token", what, &name, "--config", config]);
                assert!(output.status.success(), "{}", said(&output));
            });
        };
        let mut ear = Ear::subscribe(person.client("reader")).await;
        change(&hub, "deny");
        ear.until_end().await;
        assert_eq!(person.client("reader").get("status").await.unwrap().status, 401);
        change(&hub, "allow");
        assert_eq!(person.client("reader").get("status").await.unwrap().status, 200);
        let expected =
            [format!("configuration shut_out {name}"), format!("configuration let_in {name}")];
        assert_eq!(acts(&hub), expected);
        let config = hub.directory().join("aaep.toml");
        let again = ["token", "allow", &name, "--config", config.to_str().unwrap()];
        let output = aaep(hub.directory(), &again);
        assert!(said(&output).contains("is not denied"), "{}", said(&output));
    });
}
