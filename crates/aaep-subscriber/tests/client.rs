//! The client against a real hub: every transport, lost connections, two listeners, more time, stop.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

#[path = "support/hub.rs"]
mod hub;

use std::time::Duration;

use aaep_agent::{Error, NotApproved, Question};
use aaep_subscriber::inbox::{Answer, InboxError, Settings, TextBy};
use aaep_subscriber::{Asks, Notification, RequestOutcome};
use hub::{House, Listener, transfer};

// covers: C28, H24, H26, C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_every_transport_a_session_is_heard_and_answered() {
    let house = House::start().await;
    for way in house.ways() {
        let name = way.name.clone();
        let mut listener = Listener::at(way).await;
        let agent = house.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        listener.until_event("session.started").await;
        let mut output = session.output().unwrap();
        output.write("First I look. Then I").await.unwrap();
        output.write(" move it.").await.unwrap();
        output.finish().await.unwrap();
        let ends = |told: &Notification| matches!(told, Notification::Text { ends: true, .. });
        listener.until(ends).await;
        let texts = listener.told.iter().filter_map(|told| match told {
            Notification::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(texts.collect::<String>(), "First I look. Then I move it.", "{name}");

        let parked = session.park(500, transfer()).await.unwrap();
        let request = listener.asked().await;
        assert!(
            matches!(&request.asks, Asks::Consent { action, .. } if action == "Transfer $500.")
        );
        assert_eq!(&*request.agent.name, "Test agent");
        let left = listener.client.time_left(&request);
        assert!(!left.is_zero() && left <= request.timeout(), "{left:?}");
        assert_eq!(listener.client.open_requests().len(), 1);
        listener.client.answer(request.id, Answer::Accept).unwrap();
        let approval = parked.decision().await.unwrap();
        assert_eq!(listener.settled().await, RequestOutcome::Accepted);
        let (dollars, call) = session.invoke(parked, approval).await.unwrap();
        assert_eq!(dollars, 500);
        listener.until_event("tool.invoked").await;
        assert_eq!(listener.client.doing()[0].tool.as_deref(), Some("transfer"));
        call.succeed("Moved.").await.unwrap();

        let asked = session.pose(Question::number("How many coins?")).await.unwrap();
        let request = listener.asked().await;
        let wrong = listener.client.answer(request.id, Answer::Text("many".into()));
        assert!(matches!(wrong, Err(InboxError::WrongKind(_))));
        listener.client.answer(request.id, Answer::Number(7.0)).unwrap();
        assert_eq!(asked.answer().await.unwrap(), 7.0);
        assert_eq!(listener.settled().await, RequestOutcome::Answered);
        session.complete("Done.").await.unwrap();
        listener.until_event("session.completed").await;
        let told = listener.close().await;
        let lost = told
            .iter()
            .any(|told| matches!(told, Notification::Lost { .. } | Notification::Silence { .. }));
        assert!(!lost, "{name}: {told:#?}");
        agent.close().await;
    }
}

// covers: C25, D30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_listeners_one_answers_and_the_other_is_told() {
    let house = House::start().await;
    let mut listeners = Vec::new();
    for way in house.ways() {
        listeners.push(Listener::at(way).await);
    }
    let agent = house.agent();
    let session = agent.session("Moving money.").open().await.unwrap();
    let parked = session.park((), transfer()).await.unwrap();
    for listener in &mut listeners {
        listener.asked().await;
    }
    listeners[0].client.answer(1.into(), Answer::Accept).unwrap();
    let _approval = parked.decision().await.unwrap();
    assert_eq!(listeners[0].settled().await, RequestOutcome::Accepted);
    for listener in &mut listeners[1..] {
        assert_eq!(listener.settled().await, RequestOutcome::AcceptedElsewhere);
        assert_eq!(listener.client.answer(1.into(), Answer::Reject), Err(InboxError::NotWaiting));
    }
    // Both at once: whichever is faster, both hear the same outcome.
    let parked = session.park((), transfer().arguments_json("2")).await.unwrap();
    for listener in &mut listeners {
        listener.asked().await;
    }
    listeners[0].client.answer(2.into(), Answer::Reject).unwrap();
    // It may have heard already what became of it.
    let second = listeners[1].client.answer(2.into(), Answer::Accept);
    assert!(matches!(second, Ok(()) | Err(InboxError::NotWaiting)), "{second:?}");
    let accepted = parked.decision().await.is_ok();
    assert!(second.is_ok() || !accepted);
    let wanted = match accepted {
        true => [RequestOutcome::AcceptedElsewhere, RequestOutcome::Accepted],
        false => [RequestOutcome::Rejected, RequestOutcome::RejectedElsewhere],
    };
    assert_eq!([listeners[0].settled().await, listeners[1].settled().await], wanted);
}

// covers: D32, C25
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_time_is_given_and_the_answer_counts() {
    let house = House::start().await;
    for way in house.ways() {
        let mut listener = Listener::at(way).await;
        let agent = house.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let parked = session.park((), transfer().timeout_seconds(60)).await.unwrap();
        let first = listener.asked().await;
        listener.client.more_time(first.id, Duration::from_secs(900)).unwrap();
        assert_eq!(listener.settled().await, RequestOutcome::Superseded);
        let second = listener.asked().await;
        assert_eq!((second.continues, second.timeout_seconds), (Some(first.number), 900));
        listener.client.answer(second.id, Answer::Reject).unwrap();
        assert!(matches!(
            parked.decision().await,
            Err(Error::NotApproved(NotApproved::Rejected { .. }))
        ));
        assert_eq!(listener.settled().await, RequestOutcome::Rejected);
        session.complete("Done.").await.unwrap();
        listener.close().await;
    }
}

// covers: C25
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_stopped_and_its_questions_end_with_it() {
    let house = House::start().await;
    for way in house.ways() {
        let mut listener = Listener::at(way).await;
        let agent = house.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let parked = session.park((), transfer()).await.unwrap();
        let request = listener.asked().await;
        listener.client.stop(&request.session_id).unwrap();
        assert!(parked.decision().await.is_err());
        assert_eq!(listener.settled().await, RequestOutcome::Cancelled);
        listener.until_event("session.cancelled").await;
        session.stopped().await;
        assert!(listener.client.doing().is_empty());
        listener.close().await;
    }
}

// covers: H24
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terms_are_renegotiated_with_a_real_hub() {
    let house = House::start().await;
    for way in house.ways() {
        let mut listener = Listener::at(way).await;
        let agent = house.agent();
        let settings = Settings {
            replies: false,
            text: TextBy::End,
            exclude: vec!["aaep:agent.tool.*".into()],
            ..Settings::default()
        };
        listener.client.renegotiate(settings).unwrap();
        let session = agent.session("Moving money.").open().await.unwrap();
        // Until the hub has agreed, answers count; from then on they are not even sent.
        for round in 0.. {
            let parked = session.park((), transfer().arguments_json(round.to_string())).await;
            let request = listener.asked().await;
            match listener.client.answer(request.id, Answer::Reject) {
                Ok(()) => drop(parked.unwrap().decision().await),
                Err(refused) => {
                    assert_eq!(refused, InboxError::MayNotReply);
                    break;
                }
            }
        }
        session.complete("Done.").await.unwrap();
        listener.until_event("session.completed").await;
        assert_eq!(listener.client.settings().text, TextBy::End);
        listener.close().await;
    }
}

// covers: C25, C28, H24, I14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_restarts_in_mid_question_loses_nothing() {
    let mut house = House::start().await;
    for way in house.ways() {
        let mut listener = Listener::at(way).await;
        let agent = house.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let parked = session.park((), transfer()).await.unwrap();
        let request = listener.asked().await;
        house.goes().await;
        listener.until(|told| matches!(told, Notification::Lost { .. })).await;
        // Answered while nobody is there.
        listener.client.answer(request.id, Answer::Accept).unwrap();
        assert_eq!(
            listener.client.answer(request.id, Answer::Reject),
            Err(InboxError::AlreadyAnswered)
        );
        house.comes_back().await;
        listener.until(|told| matches!(told, Notification::Connected { again: true, .. })).await;
        let approval = parked.decision().await.unwrap();
        assert_eq!(listener.settled().await, RequestOutcome::Accepted);
        let ((), call) = session.invoke(parked, approval).await.unwrap();
        call.succeed("Moved.").await.unwrap();
        session.complete("Done.").await.unwrap();
        listener.until_event("session.completed").await;
        assert_eq!(listener.times_asked(), 1, "asked once");
        listener.close().await;
    }
}

// covers: C25, H24
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_after_the_hub_came_back() {
    let mut house = House::start().await;
    for way in house.ways() {
        let mut listener = Listener::at(way).await;
        let agent = house.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let parked = session.park((), transfer()).await.unwrap();
        let request = listener.asked().await;
        house.goes().await;
        house.comes_back().await;
        listener.until(|told| matches!(told, Notification::Connected { again: true, .. })).await;
        assert_eq!(listener.client.open_requests().len(), 1);
        listener.client.answer(request.id, Answer::Reject).unwrap();
        assert!(matches!(
            parked.decision().await,
            Err(Error::NotApproved(NotApproved::Rejected { .. }))
        ));
        assert_eq!(listener.settled().await, RequestOutcome::Rejected);
        assert_eq!(listener.times_asked(), 1);
        session.complete("Done.").await.unwrap();
        listener.close().await;
    }
}

// covers: H24
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_hubs_are_heard_at_once() {
    let (one, two) = (House::start().await, House::start().await);
    let hubs = vec![one.ways().remove(0).named("one"), two.ways().pop().unwrap().named("two")];
    let mut listener = Listener::with(hubs, Settings::default()).await;
    let mut kept = Vec::new();
    for house in [&one, &two] {
        let agent = house.agent();
        let session = agent.session("Moving money.").open().await.unwrap();
        let parked = session.park((), transfer()).await.unwrap();
        let request = listener.asked().await;
        listener.client.answer(request.id, Answer::Accept).unwrap();
        let approval = parked.decision().await.unwrap();
        assert_eq!(listener.settled().await, RequestOutcome::Accepted);
        kept.push((session, parked, approval));
    }
    assert_eq!(listener.client.doing().len(), 2);
}

// covers: D4, C28
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_answers_do_not_count_the_user_is_told_so() {
    let house = House::start_with(false).await;
    let mut listener = Listener::at(house.ways().remove(0)).await;
    assert!(matches!(listener.told[0], Notification::Connected { may_reply: false, .. }));
    let agent = house.agent();
    let session = agent.session("Moving money.").open().await.unwrap();
    let _parked = session.park((), transfer()).await.unwrap();
    let request = listener.asked().await;
    let refused = listener.client.answer(request.id, Answer::Accept);
    assert_eq!(refused, Err(InboxError::MayNotReply));
    // By the socket of the same user they count.
    if cfg!(unix) {
        let mut trusted = Listener::at(house.ways().pop().unwrap()).await;
        let request = trusted.asked().await;
        trusted.client.answer(request.id, Answer::Reject).unwrap();
        assert_eq!(trusted.settled().await, RequestOutcome::Rejected);
        assert_eq!(listener.settled().await, RequestOutcome::RejectedElsewhere);
    }
}
