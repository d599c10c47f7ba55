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
