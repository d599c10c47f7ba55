//! What agents may say besides the payload of an event, and what is taken out of what they say.

use crate::support::*;

const CORE: &str = "https://aaep-protocol.org/context/v1";
const MEDICAL: &str = "https://example.org/medai/context/v1";

// covers: T14, S9
#[test]
fn secrets_are_taken_out_of_everything_an_agent_says_and_the_event_says_so() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), Ear::subscribe(person.client("reader")).await);
        let mut opening = agent.opening();
        opening["summary_normal"] = json!("Signing in with password=hunter2.");
        let answer = agent.post("agent/sessions", &opening).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let session = text(&body(&answer), "session_id").to_owned();
        let started = ear.event("session.started").await;
        assert_eq!(started["summary_normal"], "Signing in with password=[password removed].");
        assert_eq!(started["extensions"]["redaction"]["removed"], json!(["password"]));

        let mut asked = deletion("old.txt");
        asked["consequence"] = json!("Pays with 4111 1111 1111 1111.");
        asked["arguments"] = json!({ "card": "4111 1111 1111 1111" });
        let request = agent.ask_for(&session, &asked).await;
        let question = ear.event("awaiting.confirmation").await;
        assert_eq!(question["consequence"], "Pays with [card number removed].");
        assert_eq!(question["extensions"]["redaction"]["removed"], json!(["card_number"]));
        assert!(question["extensions"]["action"].is_object(), "{question}");
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        // What runs is what the agent meant: consent is bound to it.
        let granted = body(&agent.invoke(&request, "").await);
        assert_eq!(granted["arguments"]["card"], "4111 1111 1111 1111");
        let call = text(&granted, "tool_call_id").to_owned();
        let done = json!({ "tool": "delete_file", "tool_call_id": call, "status": "success",
            "summary_normal": "The token is ghp_abcdefghijklmnopqrstuvwxyz0123456789." });
        agent.emit(&session, "tool.completed", done).await;
        let done = ear.event("tool.completed").await;
        assert!(!done.to_string().contains("ghp_"), "{done}");

        let mut at = 0;
        for (chunk, complete) in [("The password=", false), ("hunter3", false), (" is old.", true)]
        {
            let piece = json!({ "chunk": chunk, "position": at, "complete": complete });
            agent.emit(&session, "output.streaming", piece).await;
            at += chunk.chars().count();
        }
        agent.complete(&session).await;
        ear.event("session.completed").await;
        let heard = ear.heard.join("\n");
        for secret in ["hunter2", "hunter3", "4111 1111", "ghp_abc"] {
            assert!(!heard.contains(secret), "{secret} was heard: {heard}");
        }
        ear.is_lawful();
    });
}

// covers: T14
#[test]
fn a_hub_that_refuses_secrets_says_where_one_is_and_nothing_is_heard() {
    run(async {
        let hub = Hub::start(Setup::default().toml("secrets = \"refuse\""));
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), Ear::subscribe(person.client("reader")).await);
        let session = agent.open().await;
        let said = json!({ "progress": { "description": "password=hunter2" } });
        let answer = agent.try_emit(&session, "progress.updated", said).await;
        assert_eq!(answer.status, 400);
        let refused = body(&answer);
        assert_eq!(refused["rule"], "T14");
        assert!(text(&refused, "text").contains("`progress`"), "{refused}");
        assert!(!refused.to_string().contains("hunter2"));
        agent.complete(&session).await;
        ear.event("session.completed").await;
        assert!(!ear.heard.join("").contains("hunter2"));
    });
}

// covers: T14, S4, E28
#[test]
fn only_those_who_may_speak_in_a_session_learn_that_a_piece_of_its_output_was_refused() {
    run(async {
        let hub = Hub::start(Setup::default().toml("secrets = \"refuse\""));
        let (person, stranger) = (hub.person(), hub.person());
        let (agent, mut ear) = (person.agent(), Ear::subscribe(person.client("reader")).await);
        let session = agent.open().await;
        let begun = json!({ "chunk": "The password=", "position": 0, "complete": false });
        agent.emit(&session, "output.streaming", begun).await;
        // One of these would complete a secret, the other is innocent.
        let piece = |chunk: &str| json!({ "chunk": chunk, "position": 13, "complete": false });
        let (guess, innocent) = (piece("hunter2, as ever."), piece("\n"));
        let mut others = vec![(person.helper(), None), (stranger.agent(), None)];
        for other in [person.helper(), stranger.agent()] {
            let id = other.opening()["producer"].clone();
            others.push((other, Some(id)));
        }
        for (other, producer) in &others {
            let told = |said: &Value| {
                let mut said = said.clone();
                if let Some(producer) = producer {
                    said["producer"] = producer.clone();
                }
                other.try_emit(&session, "output.streaming", said)
            };
            let (guessed, plain) = (told(&guess).await, told(&innocent).await);
            assert!(plain.status.is_client_error() && body(&plain)["rule"] != "T14", "{plain:?}");
            assert_eq!((guessed.status, body(&guessed)), (plain.status, body(&plain)));
        }
        // The agent itself is told why.
        let answer = agent.try_emit(&session, "output.streaming", guess).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(body(&answer)["rule"], "T14");
        agent.emit(&session, "output.streaming", innocent).await;
        agent.complete(&session).await;
        ear.event("session.completed").await;
        assert!(!ear.heard.join("").contains("hunter2"));
    });
}

fn hinted() -> Value {
    json!({
        "@context": [CORE, MEDICAL],
        "verbosity": "detailed",
        "urgency": "normal",
        "correlation_id": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "localization_hints": { "primary_language": "yo-NG", "fallback_chain": ["en"] },
        "extensions": { "medai": { "patient_data_accessed": true } },
    })
}

fn with(mut object: Value, more: Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

fn has_hints(event: &Value) {
    let hinted = hinted();
    for name in ["verbosity", "correlation_id"] {
        assert_eq!(event[name], hinted[name], "{event}");
    }
    assert!(event["@context"].as_array().unwrap().contains(&json!(MEDICAL)), "{event}");
    assert_eq!(event["extensions"]["medai"], hinted["extensions"]["medai"], "{event}");
    assert_eq!(event["localization_hints"]["primary_language"], "yo-NG", "{event}");
    assert_eq!(event["localization_hints"]["fallback_chain"], json!(["en"]), "{event}");
    assert_eq!(event["localization_hints"]["text_direction"], "auto", "{event}");
}

// covers: E12, E16, E17, E24, X4
#[test]
fn agents_fill_what_the_protocol_lets_them_fill() {
    run(async {
        let person = Hub::shared().person();
        let agent = person.agent();
        let mut asked = everything();
        asked["event_filters"] = json!({ "include": ["aaep:agent.*", "medai:*"] });
        let mut ear = Ear::subscribe_for(person.client("reader"), asked).await;
        let answer = agent.post("agent/sessions", &with(agent.opening(), hinted())).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let session = text(&body(&answer), "session_id").to_owned();
        has_hints(&ear.event("session.started").await);
        let progress = json!({ "progress": { "percent": 10 }, "summary_normal": "On." });
        agent.emit(&session, "progress.updated", with(progress, hinted())).await;
        let heard = ear.event("progress.updated").await;
        has_hints(&heard);
        assert_eq!(heard["urgency"], "normal");
        // A type of the extension's own.
        let own = with(
            json!({ "type": "medai:patient.consulted", "summary_normal": "The record was read.",
                "record": "r-7" }),
            hinted(),
        );
        let answer = agent.post(&format!("agent/sessions/{session}/events"), &own).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let heard = ear.message("medai:patient.consulted").await;
        has_hints(&heard);
        assert_eq!(heard["record"], "r-7");
        // A request, which is critical whatever else is said; and after more time was given.
        let mut hints = hinted();
        hints.as_object_mut().unwrap().remove("urgency");
        agent.ask_for(&session, &with(deletion("old.txt"), hints)).await;
        let asked = ear.event("awaiting.confirmation").await;
        has_hints(&asked);
        assert_eq!(asked["urgency"], "critical");
        let more = json!({ "type": "timing:extend", "reply_token": asked["reply_token"],
            "subscription_id": ear.subscription, "timestamp": asked["timestamp"], "seconds": 600 });
        ear.send(&more.to_string()).await;
        let again = ear.event("awaiting.confirmation").await;
        has_hints(&again);
        assert_eq!(again["extensions"]["timing"]["supersedes"], asked["event_id"]);
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: E13, E17, E24, X7, I20
#[test]
fn what_an_agent_may_not_say_is_refused_with_a_sentence_that_can_be_followed() {
    run(async {
        let person = Hub::shared().person();
        let agent = person.agent();
        let session = agent.open().await;
        let extended = |prefix: &str| json!({ "extensions": { prefix: { "a": 1 } } });
        let cases = [
            // Raised urgency gains no lane.
            (json!({ "urgency": "critical" }), "E13", "say `normal`"),
            (extended("medai"), "E17", "add the extension's address to `@context`"),
            (
                with(extended("outcome"), json!({ "@context": [CORE, "urn:aaep-rs:outcome:v1"] })),
                "X7",
                "Leave `extensions.outcome` out",
            ),
            (json!({ "@context": [MEDICAL] }), "E3", CORE),
            (json!({ "event_id": "evt_1" }), "E19", "Leave `event_id` out"),
            // One address declares one prefix, not any number of them.
            (
                json!({ "@context": [CORE, MEDICAL], "extensions": { "medai": {}, "fin": {} } }),
                "E17",
                "`@context`",
            ),
        ];
        for (said, rule, sentence) in cases {
            let event = with(json!({ "progress": { "percent": 1 } }), said);
            let answer = agent.try_emit(&session, "progress.updated", event.clone()).await;
            assert_eq!(answer.status, 400, "{event}");
            let refused = body(&answer);
            assert_eq!(refused["rule"], rule, "{event} {refused}");
            assert!(text(&refused, "text").contains(sentence), "{refused}");
        }
        let own = |kind: &str| json!({ "type": kind, "summary_normal": "x" });
        for (kind, rule) in
            [("medai:seen", "E24"), ("outcome:seen", "X7"), ("aaep:agent.new", "E5")]
        {
            let path = format!("agent/sessions/{session}/events");
            let answer = agent.post(&path, &own(kind)).await;
            assert_eq!((answer.status.as_u16(), &body(&answer)["rule"]), (400, &json!(rule)));
        }
        agent.complete(&session).await;
    });
}

// covers: L13, E14
#[test]
fn the_hubs_own_sentences_speak_the_sessions_language_or_say_theirs() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), Ear::subscribe(person.client("reader")).await);
        for (language, sentence, labelled) in [
            ("fr", "L’agent vous attend.", "fr"),
            ("yo-NG", "Aṣojú ń dúró dè ọ́.", "yo"),
            ("sw", "The agent waits for you.", "en"),
        ] {
            let mut opening = agent.opening();
            opening["language"] = json!(language);
            let answer = agent.post("agent/sessions", &opening).await;
            let session = text(&body(&answer), "session_id").to_owned();
            agent.ask(&session).await;
            let state = ear.event("state.changed").await;
            assert_eq!(state["summary_normal"], sentence);
            assert_eq!(state["localization_hints"]["primary_language"], labelled);
            assert!(state["summary_terse"].is_string() && state["verbosity"] == "normal");
            agent.complete(&session).await;
            ear.event("session.completed").await;
        }
    });
}

// covers: E28, S4, S5
#[test]
fn sub_agents_speak_in_an_orchestrators_session_each_through_its_own_principal() {
    run(async {
        let person = Hub::shared().person();
        let (agent, helper, mut ear) = (person.agent(), person.helper(), person.reader().await);
        let as_helper = |more: Value| with(json!({ "producer": { "agent_id": helper.id } }), more);
        let as_writer = |more: Value| {
            with(json!({ "producer": { "agent_id": format!("{}-writer", agent.id) } }), more)
        };
        let progress = || json!({ "progress": { "step": 1 }, "summary_normal": "On." });
        let mut opening = agent.opening();
        opening["sub_agents"] = json!([helper.id, format!("{}-writer", agent.id)]);
        let answer = agent.post("agent/sessions", &opening).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let session = text(&body(&answer), "session_id").to_owned();
        let started = ear.event("session.started").await;
        assert_eq!(started["extensions"]["team"]["agents"], opening["sub_agents"]);

        // The orchestrator for itself and for a sub-agent of its own; the helper for itself.
        agent.progress(&session, 1).await;
        agent.emit(&session, "progress.updated", as_writer(progress())).await;
        helper.emit(&session, "progress.updated", as_helper(progress())).await;
        let mut heard = Vec::new();
        for number in 1..=3 {
            let event = ear.event("progress.updated").await;
            assert_eq!(event["sequence_number"], number);
            heard.push(text(&event["producer"], "agent_id").to_owned());
        }
        assert_eq!(heard, [agent.id.clone(), format!("{}-writer", agent.id), helper.id.clone()]);

        // Nobody speaks for another's agent, nor for one that the session does not know.
        let refused = agent.try_emit(&session, "progress.updated", as_helper(progress())).await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["rule"]), (404, &json!("S5")));
        let refused = helper.try_emit(&session, "progress.updated", as_writer(progress())).await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["rule"]), (404, &json!("S5")));
        let stranger = with(json!({ "producer": { "agent_id": "stranger" } }), progress());
        let refused = agent.try_emit(&session, "progress.updated", stranger).await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["rule"]), (400, &json!("E28")));
        assert!(text(&body(&refused), "text").contains("`sub_agents`"));
        // Without its own name, and at the end, the session is its agent's alone; so it is for a
        // stranger, whatever name they give.
        assert_eq!(helper.try_emit(&session, "progress.updated", progress()).await.status, 404);
        let end = as_helper(json!({ "summary_normal": "Over." }));
        assert_eq!(helper.try_emit(&session, "session.completed", end).await.status, 404);
        let other = Hub::shared().person().helper();
        let theirs = with(json!({ "producer": { "agent_id": other.id } }), progress());
        assert_eq!(other.try_emit(&session, "progress.updated", theirs).await.status, 404);
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: E28, S4, I1
#[test]
fn a_sub_agent_asks_in_an_orchestrators_session_and_runs_what_it_asked_for_itself() {
    run(async {
        let person = Hub::shared().person();
        let (agent, helper, mut ear) = (person.agent(), person.helper(), person.reader().await);
        let mut opening = agent.opening();
        opening["sub_agents"] = json!([helper.id]);
        let answer = agent.post("agent/sessions", &opening).await;
        let session = text(&body(&answer), "session_id").to_owned();
        let as_helper = |more: Value| with(json!({ "producer": { "agent_id": helper.id } }), more);

        let request = helper.ask_for(&session, &as_helper(deletion("old.txt"))).await;
        let question = ear.event("awaiting.confirmation").await;
        assert_eq!(question["producer"]["agent_id"], json!(helper.id));
        // Both may look; nobody else of the same person may, and without its name neither may the helper ask.
        assert_eq!(text(&agent.look(&request, 0).await, "status"), "pending");
        assert_eq!(helper.try_ask(&session, &deletion("b.txt")).await.status, 404);
        let other = Hub::shared().person().helper();
        let path = format!("agent/requests/{}", text(&request, "request_id"));
        assert_eq!(other.client.get(&path).await.unwrap().status, 404);
        ear.decide(&question, "accept").await;
        assert_eq!(helper.outcome(&request).await, "accepted");

        // The yes is the helper's: the orchestrator cannot spend it.
        let refused = agent.invoke(&request, "{}").await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["rule"]), (409, &json!("E28")));
        assert_eq!(other.invoke(&request, "{}").await.status, 404);
        let begun = helper.invoke(&request, "{}").await;
        assert_eq!(begun.status, 200, "{begun:?}");
        let invoked = ear.event("tool.invoked").await;
        assert_eq!(invoked["producer"]["agent_id"], json!(helper.id));
        let done = json!({ "tool": "delete_file", "tool_call_id": body(&begun)["tool_call_id"],
            "status": "success", "summary_normal": "Deleted." });
        helper.emit(&session, "tool.completed", as_helper(done)).await;

        // What it no longer needs, it takes back.
        let second = helper.ask_for(&session, &as_helper(deletion("c.txt"))).await;
        assert_eq!(helper.withdraw(&second).await.status, 204);
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: S15, S8, S10
#[test]
fn what_a_role_is_not_to_hear_is_left_out_for_it_and_for_nobody_else() {
    run(async {
        let rule = "[[hearing]]\nrole = \"auditor\"\ntypes = [\"aaep:agent.session.*\", \"aaep:agent.output.*\"]\nleave_out = [\"summary_*\", \"chunk\"]";
        let hub = Hub::start(Setup::default().toml(rule));
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let mut auditor = Ear::subscribe(client(&hub.base(), Some(&token("auditor")))).await;
        let session = agent.open().await;
        let piece = json!({ "chunk": "The test was positive.", "position": 0, "complete": true });
        agent.emit(&session, "output.streaming", piece).await;
        agent.progress(&session, 10).await;
        agent.complete(&session).await;
        ear.event("session.completed").await;
        auditor.event("session.completed").await;
        assert!(ear.heard.join("").contains("The test was positive."));
        let told = auditor.heard.join("\n");
        assert!(!told.contains("positive") && !told.contains("Tidying"), "{told}");
        assert!(told.contains("Going on."), "other types are heard whole: {told}");
        assert_eq!(told.matches("not_for_this_role").count(), 3, "{told}");
        auditor.is_lawful();
    });
}

// covers: X6, X9
#[test]
fn a_hub_under_a_profile_refuses_what_breaks_it_and_names_the_profile_in_its_manifest() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let profile = include_str!("../../../../vectors/profiles/medical.json");
        std::fs::write(directory.path().join("medical.json"), profile).unwrap();
        let hub = Hub::start_in(Setup::default().toml("profile = \"medical.json\""), directory);
        let person = hub.person();
        let agent = person.agent();
        let session = agent.open().await;
        let call = json!({ "tool": "patient.read", "summary_normal": "Reading." });
        let refused = agent.try_emit(&session, "tool.invoked", call.clone()).await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["rule"]), (400, &json!("X9")));
        assert!(text(&body(&refused), "text").contains("MED1"));
        let marked = json!({ "@context": [CORE, MEDICAL],
            "extensions": { "medai": { "phi_categories": ["medications"] } } });
        agent.emit(&session, "tool.invoked", with(call, marked)).await;
        let mut hasty = deletion("old.txt");
        hasty["timeout_seconds"] = json!(60);
        let refused = agent.try_ask(&session, &hasty).await;
        assert!(text(&body(&refused), "text").contains("MED2"), "{refused:?}");
        agent.ask(&session).await;

        // MED3: once something was uncertain, a person takes over before the session is completed.
        let uncertain = json!({ "@context": [CORE, MEDICAL], "progress": { "step": 1 },
            "summary_normal": "Unsure.", "extensions": { "medai": { "confidence": "low" } } });
        agent.emit(&session, "progress.updated", uncertain).await;
        let over = || json!({ "summary_normal": "Over." });
        let refused = agent.try_emit(&session, "session.completed", over()).await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["rule"]), (409, &json!("X9")));
        let says = body(&refused);
        assert!(
            text(&says, "text").contains("handoff.requested")
                && text(&says, "text").contains("MED3")
        );
        let handoff = json!({ "reason": "Unsure.", "target_kind": "human", "summary_normal": "A person takes over." });
        agent.emit(&session, "handoff.requested", handoff).await;
        agent.complete(&session).await;
        // A session that fails may owe.
        let failing = agent.open().await;
        let uncertain = json!({ "@context": [CORE, MEDICAL], "progress": { "step": 1 },
            "summary_normal": "Unsure.", "extensions": { "medai": { "confidence": "low" } } });
        agent.emit(&failing, "progress.updated", uncertain).await;
        let failed = json!({ "summary_normal": "Failed.", "error_category": "permanent" });
        agent.emit(&failing, "session.errored", failed).await;

        // The hub has what the profile needs, says so, and honours it.
        let manifest = hub.socket().with_extension("manifest.json");
        let bytes = std::fs::read(manifest).unwrap();
        let in_force = aaep_types::profile::Profile::parse(profile.as_bytes()).unwrap();
        assert_eq!(in_force.lacking_in(&bytes), Vec::<String>::new());
        let manifest: Value = serde_json::from_slice(&bytes).unwrap();
        let mut asked = everything();
        asked["supported_extensions"] = json!([MEDICAL, "https://example.org/unknown/v1"]);
        let answer = person.client("reader").post("subscriptions", request(asked)).await.unwrap();
        let honored = body(&answer)["honored_capabilities"]["supported_extensions"].clone();
        assert_eq!(honored, json!([MEDICAL]));
        let claimed =
            json!([{ "profile": "https://example.org/profiles/medai/v1", "version": "1.0.0" }]);
        assert_eq!(manifest["profiles"], claimed);
    });
}
