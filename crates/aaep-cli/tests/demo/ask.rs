//! `aaep ask`: consent for scripts.

use std::process::Child;

use crate::support::*;
use crate::{Ended, aaep, demo, ended};

/// Asks the demo's hub.
fn ask(hub: &Hub, options: &[&str]) -> Child {
    let mut command = aaep(&["ask", "Delete the build?"]);
    command.args(options).env("AAEP_URL", hub.base()).env("HOME", hub.directory());
    command.spawn().unwrap()
}

async fn answered(hub: &Hub, options: &[&str], decision: &str) -> (Value, Ended) {
    let mut ear = Ear::subscribe(hub.anonymous()).await;
    let child = ask(hub, options);
    let request = ear.event("awaiting.confirmation").await;
    ear.decide(&request, decision).await;
    let ended = ended(child).await;
    ear.event("session.completed").await;
    ear.is_lawful();
    (request, ended)
}

#[test]
fn a_script_with_a_name_asks_under_it() {
    run(async {
        let hub = demo(&[]);
        let (request, _) = answered(&hub, &[], "reject").await;
        assert_eq!(request["producer"]["agent_name"], "A shell script");
        let (request, _) = answered(&hub, &["--name", "deployer"], "reject").await;
        assert_eq!(request["producer"]["agent_name"], "deployer");
    });
}

// covers: L13
#[test]
fn a_question_is_labelled_with_its_language_and_ours_with_english() {
    run(async {
        let hub = demo(&[]);
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        let options = ["--language", "fr", "--consequence", "C’est perdu."];
        let child = ask(&hub, &options);
        let started = ear.event("session.started").await;
        let request = ear.event("awaiting.confirmation").await;
        ear.decide(&request, "accept").await;
        let invoked = ear.event("tool.invoked").await;
        let over = ear.event("session.completed").await;
        for (event, language) in
            [(&started, "fr"), (&request, "fr"), (&invoked, "fr"), (&over, "en")]
        {
            assert_eq!(event["localization_hints"]["primary_language"], language, "{event}");
        }
        assert_eq!(started["summary_normal"], "Delete the build?", "nothing English around it");
        assert_eq!(ended(child).await.code, 0);
        ear.is_lawful();
        let half = ended(ask(&hub, &["--language", "fr"])).await;
        assert_eq!(half.code, 2, "{}", half.err);
        assert!(half.err.contains("--consequence"), "{}", half.err);
    });
}

// covers: C1, C12, T27
#[test]
fn yes_is_0_no_is_1_and_silence_is_3() {
    run(async {
        let hub = demo(&[]);
        let (request, yes) = answered(&hub, &[], "accept").await;
        assert_eq!((yes.code, yes.out.as_str()), (0, "Accepted on this machine.\n"), "{}", yes.err);
        assert_eq!(request["action"], "Delete the build?");
        assert_eq!(
            (&request["risk_level"], &request["irreversible"]),
            (&json!("high"), &json!(true))
        );
        let options = ["--risk", "low", "--undone", "yes", "--consequence", "It is built again."];
        let (request, no) = answered(&hub, &options, "reject").await;
        assert_eq!((no.code, no.out.as_str()), (1, "Rejected on this machine.\n"), "{}", no.err);
        assert_eq!(
            (&request["risk_level"], &request["irreversible"]),
            (&json!("low"), &json!(false))
        );
        assert_eq!(request["consequence"], "It is built again.");
        let silence = ended(ask(&hub, &["--timeout", "1"])).await;
        assert_eq!(silence.code, 3, "{}{}", silence.out, silence.err);
    });
}

#[test]
fn json_says_the_same_for_programs() {
    run(async {
        let hub = demo(&[]);
        let (_, yes) =
            answered(&hub, &["--json", "--arguments", r#"{"path":"build"}"#], "accept").await;
        let said: Value = serde_json::from_str(&yes.out).unwrap();
        assert_eq!((&said["decision"], &said["decided_by"]), (&json!("accepted"), &json!("local")));
        assert_eq!(yes.err, "");
        let silence = ended(ask(&hub, &["--json", "--timeout", "1"])).await;
        let said: Value = serde_json::from_str(&silence.out).unwrap();
        assert_eq!((silence.code, &said["decision"]), (3, &json!("timed_out")));
    });
}

#[test]
fn whoever_could_not_ask_ends_with_2_and_says_why() {
    run(async {
        let hub = demo(&[]);
        let nobody = ended(ask(&hub, &["--hub", "http://127.0.0.1:1"])).await;
        assert_eq!((nobody.code, nobody.out.as_str()), (2, ""));
        assert!(nobody.err.contains("Start a hub with `aaep hub`"), "{}", nobody.err);
        let nonsense = ended(ask(&hub, &["--arguments", "nonsense"])).await;
        assert_eq!(nonsense.code, 2, "{}", nonsense.err);
        let timeout = ended(ask(&hub, &["--timeout", "0"])).await;
        assert_eq!(timeout.code, 2, "{}", timeout.err);
        let file = ended(ask(&hub, &["--token-file", "/nowhere"])).await;
        assert_eq!(file.code, 2);
        assert!(file.err.contains("cannot read the token in /nowhere"), "{}", file.err);
        let hub_url = ended(ask(&hub, &["--hub", "nonsense"])).await;
        assert_eq!(hub_url.code, 2, "{}", hub_url.err);
    });
}

// covers: C24, T1
#[test]
fn a_script_that_is_stopped_takes_its_question_back() {
    run(async {
        let hub = demo(&[]);
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        let child = ask(&hub, &[]);
        ear.event("awaiting.confirmation").await;
        let mut kill = std::process::Command::new("kill");
        kill.arg("-INT").arg(child.id().to_string());
        assert!(kill.status().unwrap().success());
        let stopped = ended(child).await;
        assert_eq!(stopped.code, 2, "{}{}", stopped.out, stopped.err);
        assert!(stopped.err.contains("the question was taken back"), "{}", stopped.err);
        ear.event("session.cancelled").await;
        ear.is_lawful();
    });
}
