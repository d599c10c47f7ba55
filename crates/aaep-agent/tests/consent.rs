//! The blocking contract, seen by an author and by a listener: nothing runs before a yes, and then
//! once.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)]

mod support;

use aaep_agent::{Confirmation, Error, Irreversible, NotApproved, RiskLevel, ToolError};
use serde_json::{Value, json};
use support::{Hub, LONG, Reaction, config};

struct Transfer {
    dollars: u32,
}

fn request() -> Confirmation<Irreversible> {
    Confirmation::irreversible("transfer_funds", "Transfer $500.", "It cannot be taken back.")
        .risk(RiskLevel::High)
        .arguments(&json!({ "amount": "500.00" }))
}

fn request_of(dollars: u32) -> Confirmation<Irreversible> {
    let action = format!("Transfer ${dollars}.");
    Confirmation::irreversible("transfer_funds", action, "It cannot be taken back.")
        .arguments(&json!({ "amount": dollars.to_string() }))
}

fn place(events: &[Value], name: &str) -> usize {
    let found = events.iter().position(|event| event["type"] == format!("aaep:agent.{name}"));
    found.unwrap_or_else(|| panic!("{name} is missing in {events:#?}"))
}

fn has(events: &[Value], name: &str) -> bool {
    events.iter().any(|event| event["type"] == format!("aaep:agent.{name}"))
}

in_both_worlds! {
    // covers: C1, C27, T11, T12
    #[test]
    async fn an_accepted_action_is_announced_then_given_back_once(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        let agent = hub.agent();
        let session = agent.session("Moving money.").language("en").open().await.unwrap();
        let parked = session.park(Transfer { dollars: 500 }, request()).await.unwrap();
        let approval = parked.decision().await.unwrap();
        assert_eq!(approval.by(), "local");
        assert!(matches!(parked.decision().await, Err(Error::NotApproved(NotApproved::AlreadyGiven))));
        let (transfer, call) = session.invoke(parked, approval).await.unwrap();
        assert_eq!(transfer.dollars, 500);
        assert_eq!(call.arguments(), Some(r#"{"amount":"500.00"}"#));
        // It was said before we could run it.
        let events = person.hears_type("tool.invoked").await;
        assert!(place(&events, "awaiting.confirmation") < place(&events, "tool.invoked"));
        assert!(!has(&events, "tool.completed"));
        call.succeed("The money was moved.").await.unwrap();
        session.complete("Done.").await.unwrap();
        let events = person.judges(1).await;
        let invoked = &events[place(&events, "tool.invoked")];
        assert_eq!(invoked["irreversible"], true);
        assert_eq!(invoked["tool"], "transfer_funds");
        let completed = &events[place(&events, "session.completed")];
        assert_eq!(completed["tool_invocations_count"], 1);
    }

    // covers: C1, T11, T12, T13
    #[test]
    async fn one_expression_asks_announces_runs_and_completes(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        let agent = hub.agent();
        let session = agent.session("Moving money.").language("en").open().await.unwrap();
        let dollars = session
            .confirm("transfer_funds", "Transfer $500.", "It cannot be taken back.")
            .irreversible()
            .risk(RiskLevel::High)
            .args(&json!({ "amount": "500.00" }))
            .run(|call| async move {
                assert_eq!(call.arguments(), Some(r#"{"amount":"500.00"}"#));
                assert_eq!(call.by(), "local");
                assert!(!call.key().is_empty() && !call.id().is_empty());
                Ok::<_, std::io::Error>(500)
            })
            .await
            .unwrap();
        assert_eq!(dollars, 500);
        session.complete("Done.").await.unwrap();
        let events = person.judges(1).await;
        let order = ["awaiting.confirmation", "tool.invoked", "tool.completed"];
        assert!(order.map(|name| place(&events, name)).is_sorted(), "{events:#?}");
        assert_eq!(events[place(&events, "tool.completed")]["status"], "success");
    }

    // covers: C2, C3
    #[test]
    async fn what_one_expression_asks_does_not_run_without_a_yes(hub: &Hub) {
        let person = hub.person(|_| Reaction::Reject).await;
        let agent = hub.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let ran = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let work = ran.clone();
        let refused = session
            .confirm("transfer_funds", "Transfer $500.", "It cannot be taken back.")
            .irreversible()
            .run(move |_| {
                work.store(true, std::sync::atomic::Ordering::SeqCst);
                async { Ok::<_, std::io::Error>(()) }
            })
            .await
            .unwrap_err();
        let said_no = matches!(&refused, Error::NotApproved(NotApproved::Rejected { .. }));
        assert!(said_no, "{refused}");
        session.complete("Nothing was moved.").await.unwrap();
        assert!(!has(&person.judges(1).await, "tool.invoked"));
        assert!(!ran.load(std::sync::atomic::Ordering::SeqCst));
    }

    // covers: T15
    #[test]
    async fn work_that_fails_or_panics_is_told_and_its_error_is_the_source(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        let agent = hub.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let failed = session
            .confirm("transfer_funds", "Transfer $500.", "It cannot be taken back.")
            .irreversible()
            .run(move |_| async move { Err::<(), _>(denied()) })
            .await
            .unwrap_err();
        assert!(failed.tool_error::<std::io::Error>().is_some(), "{failed:?}");
        let panicked = session
            .confirm("transfer_funds", "Transfer $600.", "It cannot be taken back.")
            .irreversible()
            .run(|call| {
                assert!(call.id().is_empty(), "broken");
                async { Ok::<_, std::io::Error>(()) }
            })
            .await
            .unwrap_err();
        assert!(matches!(panicked, Error::Tool(ToolError::Panicked(_))), "{panicked:?}");
        session.complete("Nothing was moved.").await.unwrap();
        let events = person.judges(1).await;
        let ends = events.iter().filter(|event| event["type"] == "aaep:agent.tool.completed");
        assert_eq!(ends.map(|event| &event["status"]).collect::<Vec<_>>(), ["error", "error"]);
    }

    // covers: C2, T24
    #[test]
    async fn a_rejected_action_never_runs(hub: &Hub) {
        let person = hub.person(|_| Reaction::Reject).await;
        let agent = hub.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let parked = session.park((), request()).await.unwrap();
        let refused = parked.decision().await.unwrap_err();
        assert!(matches!(&refused, Error::NotApproved(NotApproved::Rejected { by, .. }) if by == "local"), "{refused}");
        drop(parked);
        session.complete("Nothing was moved.").await.unwrap();
        assert!(!has(&person.judges(1).await, "tool.invoked"));
    }

    // covers: C14, D11
    #[test]
    async fn silence_means_no_unless_the_action_is_easily_taken_back(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Moving things.").open().await.unwrap();
        let parked = session.park((), request().timeout_seconds(1)).await.unwrap();
        assert!(matches!(parked.decision().await, Err(Error::NotApproved(NotApproved::TimedOut))));
        let harmless = Confirmation::reversible("move_file", "Move the file.", "Moving it back is easy.")
            .risk(RiskLevel::Low)
            .accept_on_silence()
            .timeout_seconds(1);
        let parked = session.park("file", harmless).await.unwrap();
        let approval = parked.decision().await.unwrap();
        assert_eq!(approval.by(), "timeout");
        let (file, call) = session.invoke(parked, approval).await.unwrap();
        assert_eq!(file, "file");
        call.succeed("Moved.").await.unwrap();
        session.complete("Done.").await.unwrap();
        person.judges(1).await;
    }

    // covers: T12, C26
    #[test]
    async fn an_approval_fits_no_other_action(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        let agent = hub.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let small = session.park(5, request_of(5)).await.unwrap();
        let large = session.park(5000, request_of(5000)).await.unwrap();
        let approval = small.decision().await.unwrap();
        let Err(Error::Misuse(misuse)) = session.invoke(large, approval).await else {
            panic!("it was invoked");
        };
        assert_eq!(misuse.rule.id, "T12");
        // An approval that fits, in another session.
        let other = agent.session("Something else.").open().await.unwrap();
        let approval = small.decision().await;
        assert!(matches!(approval, Err(Error::NotApproved(NotApproved::AlreadyGiven))));
        drop(small);
        let third = session.park((), request()).await.unwrap();
        let approval = third.decision().await.unwrap();
        let Err(Error::Misuse(misuse)) = other.invoke(third, approval).await else {
            panic!("it was invoked");
        };
        assert_eq!(misuse.rule.id, "C26");
        session.complete("Nothing was moved.").await.unwrap();
        other.complete("Nothing was done.").await.unwrap();
        assert!(!has(&person.judges(2).await, "tool.invoked"));
    }

    // covers: C4
    #[test]
    async fn the_same_is_not_asked_twice(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let parked = session.park((), request()).await.unwrap();
        let Err(Error::Misuse(misuse)) = session.park((), request()).await else {
            panic!("it was asked twice");
        };
        assert_eq!(misuse.rule.id, "C4");
        // Other arguments in the same words: nobody could tell them apart.
        let Err(Error::Misuse(misuse)) = session.park((), request().arguments(&1)).await else {
            panic!("it was asked in the same words");
        };
        assert_eq!(misuse.rule.id, "C4");
        drop(parked);
        session.complete("Done.").await.unwrap();
        let events = person.judges(1).await;
        let asked = events.iter().filter(|event| event["reply_token"].is_string()).count();
        assert_eq!(asked, 1);
    }

    // covers: C24, T24
    #[test]
    async fn what_is_dropped_is_withdrawn_or_said_to_be_given_up(hub: &Hub) {
        let person = hub.person(|event| match event["action"].as_str() {
            Some("Transfer $500.") => Reaction::Accept,
            _ => Reaction::Silence,
        }).await;
        let agent = hub.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let waiting = Confirmation::irreversible("send", "Send the mail.", "It is sent.");
        drop(session.park((), waiting).await.unwrap());
        person.hears("the withdrawal", |event| {
            event["extensions"]["outcome"]["outcome"] == "cancelled"
        }).await;
        let parked = session.park((), request()).await.unwrap();
        let approval = parked.decision().await.unwrap();
        drop((parked, approval));
        person.hears("that it is given up", |event| {
            event["summary_normal"]
                == "The agent gave up what you approved, so this was not done: Transfer $500."
        }).await;
        session.complete("Nothing was moved.").await.unwrap();
        assert!(!has(&person.judges(1).await, "tool.invoked"));
    }

    // covers: C4
    #[test]
    async fn asking_too_often_is_refused_with_a_reason(hub: &Hub) {
        let person = hub.person(|_| Reaction::Reject).await;
        let agent = hub.agent();
        let session = agent.session("Asking a thousand times.").open().await.unwrap();
        let mut refused = None;
        for number in 0..1000 {
            match session.park((), request_of(number)).await {
                Ok(parked) => drop(parked),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        let Some(Error::Refused(refused)) = refused else { panic!("never refused") };
        assert_eq!((refused.status, refused.rule.as_deref()), (429, Some("C4")));
        assert!(refused.text.contains("answers on trust"), "{refused}");
        session.complete("Enough.").await.unwrap();
        person.judges(1).await;
    }

    // covers: C24, I13
    #[test]
    async fn a_user_who_stops_the_session_ends_everything_in_it(hub: &Hub) {
        let person = hub.person(|_| Reaction::Stop).await;
        let agent = hub.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let parked = session.park((), request()).await.unwrap();
        let refused = parked.decision().await.unwrap_err();
        assert!(matches!(refused, Error::SessionOver), "{refused}");
        session.stopped().await;
        assert!(session.is_stopped());
        assert!(session.was_stopped_by_user().await);
        let stranger = agent.session("Something else.").open().await.unwrap();
        assert!(!stranger.was_stopped_by_user().await, "it is open");
        stranger.complete("Done.").await.unwrap();
        assert!(matches!(session.thinking("More.").await, Err(Error::SessionOver)));
        assert!(matches!(session.park((), request()).await, Err(Error::SessionOver)));
        assert!(matches!(session.complete("Done.").await, Err(Error::SessionOver)));
        let events = person.judges(2).await;
        let by: Vec<&Value> = events.iter().filter_map(|event| event.get("cancelled_by")).collect();
        assert_eq!(by, ["user"]);
    }
}

// covers: D41
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_that_was_not_used_in_time_is_a_clear_error() {
    let mut config = config();
    config.limits.approval_seconds = 3;
    let hub = Hub::embedded_with(config).await;
    let person = hub.person(|_| Reaction::Accept).await;
    let agent = hub.agent();
    let session = agent.session("Moving money.").open().await.unwrap();
    let late = session.park((), request_of(5)).await.unwrap();
    let unread = session.park((), request_of(6)).await.unwrap();
    let approval = late.decision().await.unwrap();
    // The hub says by itself when its time is over, of each by its own event.
    let expired = |event: &Value| event["extensions"]["outcome"]["outcome"] == "expired";
    let asked = |event: &Value| event["extensions"]["outcome"]["request_event_id"].clone();
    let events = person.hears("an approval that expired", expired).await;
    let first = asked(events.iter().find(|event| expired(event)).unwrap());
    person.hears("the other", |event| expired(event) && asked(event) != first).await;
    let Err(Error::Refused(refused)) = session.invoke(late, approval).await else {
        panic!("a late invoke is refused");
    };
    assert_eq!(refused.status, 409);
    assert!(refused.text.ends_with("is spent; ask again."), "{refused}");
    assert!(matches!(unread.decision().await, Err(Error::NotApproved(NotApproved::Expired))));
}
