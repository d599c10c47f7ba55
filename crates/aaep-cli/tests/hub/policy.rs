//! A policy in force: no agent asks for less than it says.

use crate::support::*;

const POLICY: &str = r#"
[[rule]]
tool = "notes.add"
risk_level = "medium"
reversibility = "reversible"
verdict = "announce"

[[rule]]
tool = "files.delete"
where = { path = { matches = "/tmp/*" } }
risk_level = "low"
reversibility = "reversible_with_effort"
verdict = "announce"

[[rule]]
tool = "mail.send"
risk_level = "medium"
reversibility = "irreversible"
action = "Send a mail to {to}"
consequence = "It cannot be called back."
"#;

fn with_policy(policy: &str) -> (Setup, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("policy.toml"), policy).unwrap();
    (Setup::default().toml("policy = \"policy.toml\""), directory)
}

// covers: T27, C15, I9
#[test]
fn an_agent_that_makes_light_of_something_is_asked_about_as_the_policy_says() {
    run(async {
        let (setup, directory) = with_policy(POLICY);
        let hub = Hub::start_in(setup, directory);
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), Ear::subscribe(person.client("reader")).await);
        let session = agent.open().await;
        let light = json!({ "kind": "confirmation", "tool": "disk.wipe", "arguments": {"disk": 1},
            "action": "Tidy up", "consequence": "Nothing much.", "summary_normal": "Tidy up?",
            "risk_level": "low", "irreversible": false, "timeout_seconds": 1,
            "default_decision": "accept" });
        let asked = agent.ask_for(&session, &light).await;
        let heard = ear.event("awaiting.confirmation").await;
        assert_eq!(heard["risk_level"], "high", "{heard}");
        assert_eq!(
            (&heard["irreversible"], &heard["default_decision"]),
            (&json!(true), &json!("reject"))
        );
        assert_eq!(heard["timeout_seconds"], 300);
        assert_eq!(agent.look(&asked, 0).await["status"], "pending");
        // An agent that leaves the words to the policy.
        let bare =
            json!({ "kind": "confirmation", "tool": "mail.send", "arguments": {"to": "ann"} });
        agent.ask_for(&session, &bare).await;
        let heard = ear.event("awaiting.confirmation").await;
        assert_eq!(heard["action"], "Send a mail to \"ann\"");
        assert_eq!(
            (&heard["risk_level"], &heard["irreversible"]),
            (&json!("medium"), &json!(true))
        );
    });
}

const TRANSFER: &str = r#"
[[rule]]
tool = "transfer"
risk_level = "high"
reversibility = "irreversible"
action = "Transfer {euros} euros to {to}"
consequence = "The money leaves your account at once."
"#;

/// "Save a note about lunch." over a transfer.
fn lunch(tool: &str) -> Value {
    json!({ "kind": "confirmation", "tool": tool, "arguments": {"euros": "9001", "to": "Eve"},
        "action": "Save a note about lunch.", "consequence": "You can delete it any time.",
        "summary_normal": "Save a note about lunch.", "summary_normal_de": "Eine Notiz sichern.",
        "risk_level": "high", "irreversible": true, "timeout_seconds": 300,
        "default_decision": "reject" })
}

// covers: I31
#[test]
fn an_agent_that_says_lunch_and_means_nine_thousand_euros_is_not_believed() {
    run(async {
        let (setup, directory) = with_policy(TRANSFER);
        let hub = Hub::start_in(setup, directory);
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), Ear::subscribe(person.client("reader")).await);
        let session = agent.open().await;
        let asked = agent.ask_for(&session, &lunch("transfer")).await;
        let heard = ear.event("awaiting.confirmation").await;
        assert_eq!(heard["action"], "Transfer 9001 euros to \"Eve\"", "{heard}");
        assert_eq!(heard["consequence"], "The money leaves your account at once.");
        assert!(!heard["summary_normal"].to_string().contains("lunch"), "{heard}");
        assert_eq!(heard.get("summary_normal_de"), None);
        assert_eq!(
            heard["extra_context"],
            json!({ "agent_says": "Save a note about lunch. You can delete it any time." })
        );
        let account = json!({ "tool": "transfer", "arguments": "euros: 9001\nto: Eve",
            "digest": asked["digest"], "described_by": "policy" });
        assert_eq!(heard["extensions"]["action"], account);
        // What no template describes keeps the agent's words; the account says what would run.
        let asked = agent.ask_for(&session, &lunch("wire")).await;
        let heard = ear.event("awaiting.confirmation").await;
        assert_eq!(heard["action"], "Save a note about lunch.");
        let account = json!({ "tool": "wire", "arguments": "euros: 9001\nto: Eve",
            "digest": asked["digest"], "described_by": "agent" });
        assert_eq!(heard["extensions"]["action"], account);
        ear.is_lawful();
    });
}

// covers: I31, T14, D34
#[test]
fn the_account_of_a_hostile_action_is_readable_bounded_and_survives_a_kill() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), Ear::subscribe(person.client("reader")).await);
        let session = agent.open().await;
        let mut asking = lunch("transfer");
        asking["arguments"] = json!({ "note": "x".repeat(100_000), "password": "hunter2",
            "to": "\u{202e}evE\nto: Bob", "deep": [[{"a b": 1}]] });
        let asked = agent.ask_for(&session, &asking).await;
        let heard = ear.event("awaiting.confirmation").await;
        let account = heard["extensions"]["action"].clone();
        let lines = text(&account, "arguments").to_owned();
        assert!(lines.contains("\npassword: [password removed]\n"), "{lines}");
        assert!(lines.contains("\nto: [U+202E]evE[U+000A]to: Bob"), "{lines}");
        assert!(lines.contains("deep[0][0].\"a b\": 1"), "{lines}");
        assert!(lines.chars().count() <= 2000);
        assert_eq!((&account["shortened"], &account["redacted"]), (&json!(true), &json!(true)));
        // An agent cannot write it itself.
        let mut forged = lunch("other");
        forged["extensions"] = json!({ "action": { "tool": "note" } });
        assert_eq!(agent.try_ask(&session, &forged).await.status.as_u16(), 400);
        hub.kill();
        let again = Hub::start_in(Setup::durable(), hub.shared_directory());
        let mut ear = Ear::subscribe(person.at(&again).client("reader")).await;
        let heard_again = ear.event("awaiting.confirmation").await;
        assert_eq!(heard_again["event_id"], asked["event_id"]);
        assert_eq!(heard_again["extensions"]["action"], account);
    });
}

// covers: T12, T27, T14
#[test]
fn a_tool_that_must_be_asked_about_cannot_be_announced_as_running() {
    run(async {
        let (setup, directory) = with_policy(POLICY);
        let hub = Hub::start_in(setup, directory);
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), Ear::subscribe(person.client("reader")).await);
        let session = agent.open().await;
        let invoked = |tool: &str, arguments: Value| {
            json!({ "tool": tool, "arguments": arguments, "risk_level": "low",
                "irreversible": false, "summary_normal": "It runs." })
        };
        let refused = [
            ("disk.wipe", json!({}), "No rule covers this call"),
            ("mail.send", json!({ "to": "ann" }), "Rule 3, in line 15, counts"),
            ("files.delete", json!({ "path": "/home/ann" }), "Rule 2, in line 8, does not count"),
        ];
        for (tool, arguments, why) in refused {
            let answer = agent.try_emit(&session, "tool.invoked", invoked(tool, arguments)).await;
            assert_eq!(answer.status.as_u16(), 409, "{answer:?}");
            let told = body(&answer);
            assert_eq!(told["rule"], "T27");
            assert!(text(&told, "text").contains(why), "{told}");
        }
        let unsaid = json!({ "tool": "files.delete", "summary_normal": "It runs." });
        let answer = agent.try_emit(&session, "tool.invoked", unsaid).await;
        assert_eq!(answer.status.as_u16(), 409, "nobody said the arguments");
        agent
            .emit(&session, "tool.invoked", invoked("files.delete", json!({"path": "/tmp/x"})))
            .await;
        agent.emit(&session, "tool.invoked", invoked("notes.add", json!({"text": "milk"}))).await;
        let heard = [ear.event("tool.invoked").await, ear.event("tool.invoked").await];
        assert_eq!(
            (&heard[0]["tool"], &heard[1]["tool"]),
            (&json!("files.delete"), &json!("notes.add"))
        );
        assert_eq!(heard[1]["risk_level"], "medium", "never less than the policy says");
        assert!(heard.iter().all(|event| event.get("arguments").is_none()), "{heard:?}");
    });
}

#[test]
fn a_policy_that_is_none_keeps_the_hub_from_starting_and_from_forgetting_the_old_one() {
    run(async {
        let (setup, directory) = with_policy("[[rule]]\ntool = \"x\"\nverdict = \"silent\"\n");
        let (code, said) = setup.fails_in(directory.path());
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains("policy.toml: It is no policy.") && said.contains("aaep policy check"),
            "{said}"
        );
        let missing = Setup::default().toml("policy = \"nowhere.toml\"").fails();
        assert!(missing.1.contains("nowhere.toml: It cannot be read"), "{missing:?}");

        let (setup, directory) = with_policy(POLICY);
        let hub = Hub::start_in(setup, directory);
        let agent = hub.person().agent();
        let session = agent.open().await;
        let wipe = json!({ "tool": "disk.wipe", "summary_normal": "It runs." });
        let mut tries = Vec::new();
        for (policy, says) in [
            ("nonsense", "Everything stays as it was."),
            (
                "[[rule]]\ntool = \"disk.*\"\nrisk_level = \"low\"\nreversibility = \"reversible\"\nverdict = \"announce\"\n",
                "were read again",
            ),
        ] {
            std::fs::write(hub.directory().join("policy.toml"), policy).unwrap();
            let lines = hub.log().len();
            hub.signal("HUP");
            hub.logs_after(lines, &[says]);
            tries
                .push(agent.try_emit(&session, "tool.invoked", wipe.clone()).await.status.as_u16());
        }
        assert_eq!(tries, [409, 201]);
    });
}
