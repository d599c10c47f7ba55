//! Replies that must not count, and that nobody can tell from those that do.

use crate::support::*;

/// Posts a reply and gives the raw answer.
fn post(hub: &Hub, token: Option<&str>, reply: &str) -> Reply {
    let mut raw = Raw::connect(hub);
    raw.send(raw.post("replies", token, reply));
    raw.reply()
}

// covers: I6, C12, D5, S1, S2, C8, C13, C26, D29, D9, D8, C10
#[test]
fn a_forged_reply_is_answered_byte_for_byte_like_an_honest_one_and_does_nothing() {
    run(async {
        let person = Hub::shared().person();
        let stranger = person.hub.person();
        let hub = person.hub.clone();
        let (agent, mut ear, other) =
            (person.agent(), person.reader().await, stranger.reader().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let question = ear.event("awaiting.confirmation").await;
        let token = text(&question, "reply_token").to_owned();
        let honest = decision(&token, &ear.subscription, "accept");
        let foreign = decision(&token, &other.subscription, "accept");
        let unknown = decision(&format!("rpl_{}", "0".repeat(32)), &ear.subscription, "accept");
        let with = |name: &str, value: Value| {
            let mut reply: Value = serde_json::from_str(&honest).unwrap();
            reply[name] = value;
            reply.to_string()
        };
        let (reader, thief) = (person.token("reader"), stranger.token("reader"));
        let mut answers = Vec::new();
        for (who, reply) in [
            (Some(&*thief), &honest),
            (Some(&*thief), &foreign),
            (Some(&*reader), &foreign),
            (Some(&*reader), &unknown),
            (Some(&*person.token("phone")), &honest),
            (Some(&*person.token("agent")), &honest),
            (Some(&*token_of("auditor")), &honest),
            (Some(&*token_of("admin")), &honest),
            (None, &honest),
            (Some(&*reader), &with("timestamp", json!("1999-12-31T23:59:59.000Z"))),
            (Some(&*reader), &with("timestamp", json!(stamp(3600)))),
            (Some(&*reader), &answer(&token, &ear.subscription, json!("accept"))),
            (Some(&*reader), &answer(&token, &ear.subscription, json!(true))),
        ] {
            answers.push(post(&hub, who, reply));
        }
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        answers.push(post(&hub, Some(&reader), &honest));
        assert_eq!(agent.outcome(&request).await, "accepted");
        // Replays, and second thoughts.
        answers.push(post(&hub, Some(&reader), &honest));
        answers.push(post(&hub, Some(&reader), &with("decision", json!("reject"))));
        let expected = answers[0].without_date();
        assert_eq!((answers[0].status, answers[0].body.len()), (204, 0));
        for answer in &answers {
            assert_eq!(answer.without_date(), expected);
        }
        assert_eq!(agent.invoke(&request, "{}").await.status, 200);
        // After all that there was one question, one outcome, one call.
        post(&hub, Some(&reader), &honest);
        assert_eq!(agent.invoke(&request, "{}").await.status, 409);
        agent.complete(&session).await;
        ear.event("session.completed").await;
        let count = |kind: &str| ear.heard.iter().filter(|text| text.contains(kind)).count();
        assert_eq!(count("agent.tool.invoked\""), 1);
        assert_eq!(count("\"outcome\":\"accepted\""), 1);
        // The same token in another session of the same person is worth nothing.
        let next = agent.open().await;
        let request = agent.ask(&next).await;
        post(&hub, Some(&reader), &honest);
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        ear.is_lawful();
    });
}

fn token_of(name: &str) -> String {
    token(name)
}

// covers: C10, D8, I17
#[test]
fn a_yes_to_something_else_is_a_no() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let request = agent.ask(&agent.open().await).await;
        let question = ear.event("awaiting.confirmation").await;
        let reply = json!({ "type": "confirmation.reply", "reply_token": question["reply_token"],
            "decision": "accept", "modified_action": { "action": "Delete everything" },
            "subscription_id": ear.subscription, "timestamp": now() });
        ear.send(&reply.to_string()).await;
        assert_eq!(agent.outcome(&request).await, "rejected");
        assert_eq!(agent.invoke(&request, "{}").await.status, 409);
    });
}

// covers: C11, D5, E1, S2
#[test]
fn what_can_be_read_in_two_ways_is_no_reply() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let request = agent.ask(&agent.open().await).await;
        let question = ear.event("awaiting.confirmation").await;
        let honest = decision(text(&question, "reply_token"), &ear.subscription, "accept");
        let twice = honest.replace("\"decision\":", "\"decision\":\"reject\",\"decision\":");
        let escaped =
            honest.replace("\"decision\":", "\"decision\":\"reject\",\"deci\\u0073ion\":");
        let mut not_utf8 = honest.clone().into_bytes();
        let at = honest.find("accept").unwrap();
        not_utf8[at] = 0xff;
        let lone = honest.replace("\"accept\"", "\"accept\",\"decided_by\":\"\\ud800\"");
        let overlong = [b"{\"\xc0\xaf\":1}".as_slice(), honest.as_bytes()].concat();
        let broken: [&[u8]; 12] = [
            twice.as_bytes(),
            escaped.as_bytes(),
            &not_utf8,
            lone.as_bytes(),
            &overlong,
            &[honest.as_bytes(), b"{}"].concat(),
            &[b"\xef\xbb\xbf", honest.as_bytes()].concat(),
            &[honest.as_bytes(), b"\0"].concat(),
            &honest.as_bytes()[..honest.len() - 1],
            honest.replace("accept", "Accept").leak().as_bytes(),
            honest.replace('{', "{\"extra\":1,").leak().as_bytes(),
            honest.replace('"', "'").leak().as_bytes(),
        ];
        let client = person.client("reader");
        for bytes in broken {
            let answer = client.post("replies", bytes.to_vec()).await.unwrap();
            assert_eq!(answer.status, 400, "{:?}", String::from_utf8_lossy(bytes));
            let answer = client.post("messages", bytes.to_vec()).await.unwrap();
            assert_eq!(answer.status, 400, "{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
}

/// Guesses: where each has an answer, which in a flood comes once a second, and where none has.
const GUESSES: [usize; 2] = [20, 100_000];

/// How many are on their way at once.
const BATCH: usize = 10;

/// Tokens that nobody gave out.
fn guesses() -> impl Iterator<Item = String> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    std::iter::repeat_with(move || {
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        format!("rpl_{:016x}{:016x}", next(), next())
    })
}

/// Guesses over HTTP; the answer that all of them had.
fn guess(hub: &Hub, token: &str, subscription: &str) -> (String, Vec<u8>) {
    let (mut raw, mut guesses, mut seen) = (Raw::connect(hub), guesses(), None);
    for _ in 0..GUESSES[0] / BATCH {
        let replies = guesses.by_ref().take(BATCH).map(|guess| {
            raw.post("replies", Some(token), &decision(&guess, subscription, "accept"))
        });
        let batch: String = replies.collect();
        raw.send(batch);
        for _ in 0..BATCH {
            let answer = raw.reply().without_date();
            assert_eq!(*seen.get_or_insert_with(|| answer.clone()), answer);
        }
    }
    seen.unwrap()
}

// covers: C6, C12, D5, I6, S2
#[test]
fn a_hundred_thousand_guessed_tokens_hit_nothing_and_show_nothing() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let question = ear.event("awaiting.confirmation").await;
        // The guesser is the person's own other device, whose subscription may reply.
        let token = person.token("phone");
        let mut phone = Ear::web_socket(&person.hub, Some(&token), true).await;
        phone.event("awaiting.confirmation").await;
        let (hub, id) = (person.hub.clone(), phone.subscription.clone());
        let guessing = tokio::task::spawn_blocking(move || guess(&hub, &token, &id));
        for guess in guesses().take(GUESSES[1]) {
            phone.send(&decision(&guess, &phone.subscription.clone(), "accept")).await;
            phone.heard.clear();
        }
        let seen = guessing.await.unwrap();
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        let honest = decision(text(&question, "reply_token"), &ear.subscription, "accept");
        let answer = post(&person.hub, Some(&person.token("reader")), &honest);
        assert_eq!(answer.without_date(), seen);
        assert_eq!(agent.outcome(&request).await, "accepted");
        // On the other way nothing was said but what everybody heard.
        assert_eq!(phone.next().await["type"], "aaep:agent.state.changed");
    });
}

// covers: D5, D40, I6, I7
#[test]
fn beyond_the_rate_every_answer_is_the_same_and_one_that_counts_still_does() {
    run(async {
        let hub = Hub::start(Setup::default().limit("replies_per_second", 1));
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let request = agent.ask(&agent.open().await).await;
        let question = ear.event("awaiting.confirmation").await;
        let unknown = decision(&format!("rpl_{}", "1".repeat(32)), &ear.subscription, "accept");
        let honest = decision(text(&question, "reply_token"), &ear.subscription, "accept");
        let (mut raw, reader) = (Raw::connect(&hub), person.token("reader"));
        // In one breath; beyond the rate each waits for the record of its second.
        let guess = raw.post("replies", Some(&reader), &unknown);
        let honest = raw.post("replies", Some(&reader), &honest);
        raw.send(guess.repeat(4) + &honest + &guess.repeat(2));
        let started = std::time::Instant::now();
        let answers: Vec<_> = (0..7).map(|_| raw.reply().without_date()).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        // Valid or not, they were held alike: six of them, at most one in each second.
        assert!(started.elapsed() > std::time::Duration::from_secs(4));
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
}

// covers: D40, I7, I29
#[test]
fn a_valid_no_counts_after_seventy_junk_replies_of_the_same_principal_or_of_another() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        for (number, flooder) in ["reader", "phone", "same connection"].into_iter().enumerate() {
            let session = agent.open().await;
            let request = agent.ask_for(&session, &deletion(&number.to_string())).await;
            let question = ear.event("awaiting.confirmation").await;
            let device = if flooder == "phone" { "phone" } else { "reader" };
            let token = person.token(device);
            let mut flood = Ear::web_socket(&person.hub, Some(&token), true).await;
            for guess in guesses().take(70) {
                flood.send(&decision(&guess, &flood.subscription.clone(), "accept")).await;
            }
            if flooder == "same connection" {
                flood.decide(&question, "reject").await;
            } else {
                ear.decide(&question, "reject").await;
            }
            assert_eq!(agent.outcome(&request).await, "rejected", "{flooder}");
        }
    });
}

// covers: S4, W7
#[test]
fn a_stolen_subscription_id_looks_like_one_that_nobody_has() {
    run(async {
        let person = Hub::shared().person();
        let stranger = person.hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        ear.event("session.started").await;
        let hub = person.hub.clone();
        let thief = stranger.token("reader");
        let unknown = format!("sub_{}", "0".repeat(32));
        let steal = |id: &str| {
            let mut answers = Vec::new();
            let mut raw = Raw::connect(&hub);
            raw.send(
                raw.head("GET", &format!("events?subscription_id={id}"), Some(&thief), &[])
                    + "\r\n",
            );
            answers.push(raw.reply().without_date());
            for message in [
                json!({ "type": "subscription.close", "subscription_id": id }),
                json!({ "type": "subscription.renegotiate", "subscription_id": id,
                    "capabilities": { "event_filters": { "exclude": ["aaep:*"] } } }),
                json!({ "type": "control:cancel", "session_id": session,
                    "subscription_id": id, "timestamp": now() }),
            ] {
                answers.push(post(&hub, Some(&thief), &message.to_string()).without_date());
            }
            answers
        };
        let stolen = steal(&ear.subscription);
        assert_eq!(stolen, steal(&unknown));
        assert!(stolen[0].0.starts_with("HTTP/1.1 404 "), "{stolen:?}");
        // Their own other device cannot take it either: a stream belongs to its principal.
        let path = format!("events?subscription_id={}", ear.subscription);
        assert_eq!(person.client("phone").get(&path).await.unwrap().status, 404);
        agent.progress(&session, 10).await;
        ear.event("progress.updated").await;
        agent.complete(&session).await;
        ear.event("session.completed").await;
    });
}

// covers: D4, S1
#[test]
fn replies_from_loopback_without_a_token_count_only_under_the_development_option() {
    run(async {
        for (option, outcome) in [(false, "pending"), (true, "accepted")] {
            let toml = format!("[development]\nlocal_replies = {option}");
            let hub = Hub::start(Setup::default().toml(&toml));
            let warning =
                hub.logs(&["Any program on this machine"].map(|_| "rogram on this machine"));
            assert_eq!(warning.contains("approve in your name"), option, "{warning}");
            let agent = hub.local_agent();
            for way in 0..3 {
                let mut ear = match way {
                    0 => Ear::listen(hub.anonymous()).await,
                    1 => Ear::subscribe(hub.anonymous()).await,
                    _ => Ear::web_socket(&hub, None, false).await,
                };
                let request = agent.ask(&agent.open().await).await;
                let question = ear.event("awaiting.confirmation").await;
                ear.decide(&question, "accept").await;
                // The next call comes after it, whichever way it came.
                ear.send(
                    &json!({ "type": "subscription.close", "subscription_id": ear.subscription })
                        .to_string(),
                )
                .await;
                ear.until_end().await;
                assert_eq!(agent.look(&request, 0).await["status"], outcome, "{way}");
                agent.withdraw(&request).await;
            }
        }
    });
}

// covers: S6
#[test]
fn agents_and_auditors_hear_and_never_answer() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let agent = person.agent();
        for who in [person.token("agent"), token("auditor")] {
            let capabilities = json!({ "supports_confirmation_reply": true });
            let client = client(&hub.base(), Some(&who));
            let answer = client.post("subscriptions", request(capabilities.clone())).await.unwrap();
            let honored = &body(&answer)["honored_capabilities"];
            assert_eq!(honored["supports_confirmation_reply"], false, "{honored}");
            let mut ear = Ear::subscribe_for(client, capabilities).await;
            let request = agent.ask(&agent.open().await).await;
            let question = ear.event("awaiting.confirmation").await;
            ear.decide(&question, "accept").await;
            assert_eq!(agent.look(&request, 0).await["status"], "pending");
        }
        // Agents do not talk to agents, and only agents open sessions.
        let said = json!({ "kind": "user_input", "text": "Do it." }).to_string();
        assert!(agent.inputs(0).await.is_empty());
        assert_eq!(person.client("helper").post("messages", said).await.unwrap().status, 202);
        assert!(agent.inputs(0).await.is_empty());
        for who in ["auditor", "admin"] {
            let client = client(&hub.base(), Some(&token(who)));
            let answer = client.post("agent/sessions", agent.opening().to_string()).await.unwrap();
            assert_eq!(answer.status, 403);
        }
    });
}
