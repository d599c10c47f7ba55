//! gRPC: the same people, the same limits and the same refusals as over HTTP.

use std::sync::Arc;

use aaep_transport::client::{ClientError, Options};
use aaep_transport::grpc::{self, GrpcClient};
use aaep_transport::link::Options as LinkOptions;

use crate::support::*;

/// A hub that speaks gRPC too.
pub(crate) fn hub() -> Arc<Hub> {
    Hub::start(Setup::default().set("AAEP_GRPC", "127.0.0.1:0"))
}

async fn calls(hub: &Hub, token: &str) -> GrpcClient {
    GrpcClient::connect(&hub.grpc(), people_options(token)).await.unwrap()
}

fn people_options(token: &str) -> Options {
    Options {
        token: Some(aaep_transport::client::Token::parse(token).unwrap()),
        ..Options::default()
    }
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

// covers: W11, C12, I6
#[test]
fn a_person_hears_and_answers_on_one_stream_both_ways() {
    run(async {
        let person = hub().person();
        let mut ear = Ear::grpc(&person.hub, &person.token("reader"), true).await;
        let agent = person.agent();
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
        // Goodbye ends the call, and nobody else's.
        let close = json!({ "type": "subscription.close", "subscription_id": ear.subscription,
            "timestamp": now() });
        let mut other = person.phone().await;
        ear.send(&close.to_string()).await;
        ear.until_end().await;
        agent.open().await;
        other.event("session.started").await;
    });
}

// covers: W11, D5, H1
#[test]
fn calls_of_their_own_open_listen_reply_and_go_on_where_they_left_off() {
    run(async {
        let person = hub().person();
        let mut calls = calls(&person.hub, &person.token("reader")).await;
        let accepted = json_of(&calls.open(request(everything())).await.unwrap());
        assert_eq!(accepted["type"], "subscription.accepted");
        let id = text(&accepted, "subscription_id").to_owned();
        let mut heard = calls.listen(Some(&id), None).await.unwrap();
        let agent = person.agent();
        let session = agent.open().await;
        let asked = agent.ask(&session).await;
        let question = loop {
            let event = json_of(&soon("an event", heard.next()).await.unwrap().unwrap());
            if event["type"] == "aaep:agent.awaiting.confirmation" {
                break event;
            }
        };
        // A wrong token and the right one are answered alike.
        for token in ["rpl_00000000000000000000000000000000", text(&question, "reply_token")] {
            let answer = calls.reply(decision(token, &id, "reject")).await.unwrap();
            assert!(answer.is_empty(), "{answer:?}");
        }
        assert_eq!(agent.outcome(&asked).await, "rejected");
        drop(heard);
        agent.complete(&session).await;
        let last = text(&question, "event_id").to_owned();
        let mut again = calls.listen(Some(&id), Some(&last)).await.unwrap();
        loop {
            let event = json_of(&soon("an event", again.next()).await.unwrap().unwrap());
            assert_ne!(event["event_id"], question["event_id"], "it was heard before");
            if event["type"] == "aaep:agent.session.completed" {
                break;
            }
        }
        // The manifest names agents only to those who show a token.
        let listed = json_of(&calls.manifest().await.unwrap());
        assert!(listed.to_string().contains(&person.name("agent")), "{listed}");
        let mut anybody =
            GrpcClient::connect(&person.hub.grpc(), Options::default()).await.unwrap();
        let open = json_of(&anybody.manifest().await.unwrap());
        assert!(!open.to_string().contains(&person.name("agent")), "{open}");
    });
}

// covers: W11, S5, S6, W6, I29
#[test]
fn what_http_refuses_grpc_refuses_with_the_same_words() {
    run(async {
        let hub = hub();
        let person = hub.person();
        let refused = |result: Result<_, ClientError>| match result {
            Err(ClientError::Refused(status, said)) => (status.as_u16(), said),
            other => panic!("it was not refused: {:?}", other.map(|_: bytes::Bytes| ())),
        };
        let wrong = format!("aaep_{}", "w".repeat(43));
        let (status, said) = refused(calls(&hub, &wrong).await.open(request(everything())).await);
        assert_eq!(status, 401, "{said}");
        let (url, options) = (hub.grpc(), people_options(&wrong));
        let opened = grpc::connect(&url, true, &options, LinkOptions::default());
        assert!(opened.await.is_err());
        // An agent hears its own sessions, and answers nothing.
        let agents = person.token("agent");
        let granted = calls(&hub, &agents).await.open(request(everything())).await.unwrap();
        let granted = json_of(&granted);
        assert_eq!(granted["honored_capabilities"]["supports_confirmation_reply"], false);
        let mut reader = calls(&hub, &person.token("reader")).await;
        let (status, said) = refused(reader.reply("{}").await);
        assert!(status == 400 && said.contains("\"rule\""), "{said}");
        let long = json!({ "type": "confirmation.reply", "x": "x".repeat(66_000) }).to_string();
        let (_, said) = refused(reader.reply(long).await);
        assert!(said.contains("limits.reply_bytes"), "{said}");
        let unknown = reader.listen(Some("sub_00000000000000000000000000000000"), None).await;
        assert!(matches!(unknown, Err(ClientError::Refused(status, _)) if status == 404));
        // After all that the connection is as good as before.
        assert_eq!(
            json_of(&reader.open(request(everything())).await.unwrap())["type"],
            "subscription.accepted"
        );
        // A message that is no JSON does not end a conversation (D5).
        let mut ear = Ear::grpc(&hub, &person.token("reader"), true).await;
        assert!(ear.try_send("hello").await);
        person.agent().open().await;
        ear.event("session.started").await;
    });
}

// covers: W11, D4, D27
#[test]
fn without_a_handshake_events_follow_at_once() {
    run(async {
        let person = hub().person();
        let mut ear = Ear::grpc(&person.hub, &person.token("reader"), false).await;
        let mut calls = calls(&person.hub, &person.token("reader")).await;
        let mut heard = calls.listen(None, None).await.unwrap();
        // Both listen before anything is said.
        let agent = person.agent();
        let first = soon("the first event", async {
            loop {
                let session = agent.open().await;
                let wait = std::time::Duration::from_millis(500);
                if let Ok(Ok(Some(event))) = tokio::time::timeout(wait, heard.next()).await {
                    return (session, json_of(&event));
                }
            }
        });
        let (session, event) = first.await;
        assert!(event["session_id"].is_string(), "{event}");
        agent.complete(&session).await;
        ear.event("session.completed").await;
    });
}

// covers: W11, W3
#[test]
fn a_hub_that_stops_ends_every_call() {
    run(async {
        let hub = hub();
        let person = hub.person();
        let mut ear = Ear::grpc(&hub, &person.token("reader"), true).await;
        hub.signal("TERM");
        ear.until_end().await;
        assert!(hub.ended().success());
    });
}

// covers: I30, W11
#[cfg(target_os = "linux")]
#[test]
fn a_yes_of_the_asking_process_over_grpc_counts_only_where_that_is_allowed() {
    run(async {
        // The second is the control: the same replies count where a hub is told that they may.
        for (own_replies, becomes) in [("false", "pending"), ("true", "accepted")] {
            let setup = Setup::default().set("AAEP_GRPC", "127.0.0.1:0");
            let hub = Hub::start(setup.set("AAEP_DEVELOPMENT__OWN_REPLIES", own_replies));
            let person = hub.person();
            let agent = person.agent();
            let session = agent.open().await;
            let token = person.token("reader");

            let asked = agent.ask(&session).await;
            let mut calls = calls(&hub, &token).await;
            let accepted = json_of(&calls.open(request(everything())).await.unwrap());
            let id = text(&accepted, "subscription_id").to_owned();
            let mut heard = calls.listen(Some(&id), None).await.unwrap();
            let question = loop {
                let event = json_of(&soon("an event", heard.next()).await.unwrap().unwrap());
                if event["type"] == "aaep:agent.awaiting.confirmation" {
                    break event;
                }
            };
            let yes = decision(text(&question, "reply_token"), &id, "accept");
            assert!(calls.reply(yes).await.unwrap().is_empty());
            assert_eq!(agent.look(&asked, 0).await["status"], becomes, "Reply");

            let asked = agent.ask_for(&session, &deletion("new.txt")).await;
            let mut ear = Ear::grpc(&hub, &token, true).await;
            let question = loop {
                let question = ear.event("awaiting.confirmation").await;
                if question["action"] == "Delete new.txt" {
                    break question;
                }
            };
            ear.decide(&question, "accept").await;
            // Messages of a link are taken one after the other: the reply was judged before this.
            let terms = json!({ "type": "subscription.renegotiate",
                "subscription_id": ear.subscription, "capabilities": { "languages": ["en"] } });
            ear.send(&terms.to_string()).await;
            ear.message("subscription.accepted").await;
            assert_eq!(agent.look(&asked, 0).await["status"], becomes, "Subscribe");
        }
    });
}
