//! Lost answers, restarts of the agent, a hub that forgot: nothing is done twice, and nothing that
//! nobody approved.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::sync::atomic::Ordering;
use std::time::Duration;

use aaep_agent::{
    Agent, Confirmation, Error, Irreversible, NotApproved, Question, SessionId, SessionTicket,
    Ticket,
};
use aaep_hub::config::{Config, HostName};
use serde_json::{Value, json};
use support::{Flaky, Hub, LONG, Person, Program, Reaction};

fn request(dollars: u32) -> Confirmation<Irreversible> {
    let action = format!("Transfer ${dollars}.");
    Confirmation::irreversible("transfer_funds", action, "It cannot be taken back.")
        .arguments(&json!({ "amount": dollars.to_string() }))
}

fn of_type<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    let wanted = format!("aaep:agent.{name}");
    events.iter().filter(|event| event["type"] == wanted.as_str()).collect()
}

/// Runs part of an agent's life in a runtime of its own, which then ends as in a crash: nothing that
/// is left gets to say anything.
async fn until_it_crashes<T: Send + 'static>(
    hub: &Hub,
    life: impl AsyncFnOnce(Agent) -> T + Send + 'static,
) -> T {
    // The agent takes the runtime that it is made in for its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let agent = {
        let _inside = runtime.enter();
        hub.agent()
    };
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let result = runtime.block_on(life(agent));
        runtime.shutdown_background();
        let _ = sender.send(result);
    });
    receiver.await.unwrap()
}

in_both_worlds! {
    // covers: I3
    #[test]
    async fn a_parked_action_is_taken_up_by_the_next_run(hub: &Hub) {
        let person = hub.person(|event| match event["question"].as_str() {
            Some("Your name?") => Reaction::Say(json!("Folake")),
            _ => Reaction::Accept,
        }).await;
        let (ticket, question) = until_it_crashes(hub, async |agent: Agent| {
            let session = agent.session("Moving money.").open().await.unwrap();
            let mut output = session.output().unwrap();
            output.write("One moment, please. And more").await.unwrap();
            output.flush().await.unwrap();
            let parked = session.park((), request(500)).await.unwrap();
            let asked = session.pose(Question::text("Your name?")).await.unwrap();
            // All that is stored.
            let stored = (parked.ticket().to_string(), asked.request().to_owned());
            std::mem::forget((session, parked, asked, output));
            stored
        }).await;
        let ticket: Ticket = ticket.parse().unwrap();
        let agent = hub.agent();
        let resumed = agent.resume(ticket.session()).await.unwrap();
        let session = resumed.session;
        assert!(resumed.calls.is_empty());
        let [(output, position)] = resumed.outputs[..] else { panic!("{:?}", resumed.outputs) };
        let mut output = session.output_at(output, position);
        output.write(" to come.").await.unwrap();
        output.finish().await.unwrap();
        let name = session.pose_again(&question, Question::text("Your name?")).unwrap();
        assert_eq!(name.answer().await.unwrap(), "Folake");
        let parked = session.park_again(&ticket, 500, request(500)).await.unwrap();
        let again = session.park_again(&ticket, 500, request(500)).await;
        assert!(matches!(again, Err(Error::Misuse(_))), "{again:?}");
        let approval = parked.decision().await.unwrap();
        let (dollars, call) = session.invoke(parked, approval).await.unwrap();
        assert_eq!(dollars, 500);
        call.succeed("Moved.").await.unwrap();
        session.complete("Done.").await.unwrap();
        let events = person.judges(1).await;
        assert_eq!(of_type(&events, "awaiting.confirmation").len(), 1);
        assert_eq!(of_type(&events, "tool.invoked").len(), 1);
    }

    // covers: I11
    #[test]
    async fn what_was_begun_runs_again_only_under_its_key(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        let (ticket, first) = until_it_crashes(hub, async |agent: Agent| {
            let session = agent.session("Moving money.").open().await.unwrap();
            let parked = session.park((), request(500)).await.unwrap();
            let ticket = parked.ticket();
            let approval = parked.decision().await.unwrap();
            let ((), call) = session.invoke(parked, approval).await.unwrap();
            let first = call.id().to_owned();
            assert_eq!(call.key(), Some(ticket.key()));
            std::mem::forget((session, call));
            (ticket, first)
        }).await;
        let agent = hub.agent();
        let resumed = agent.resume(ticket.session()).await.unwrap();
        let session = resumed.session;
        assert_eq!(resumed.calls.len(), 1);
        assert_eq!((&*resumed.calls[0].tool, &*resumed.calls[0].id), ("transfer_funds", &*first));
        // Without leave to run again, the agent is told that it was begun.
        let parked = session.park_again(&ticket, (), request(500)).await.unwrap();
        assert!(matches!(parked.decision().await, Err(Error::NotApproved(NotApproved::Begun))));
        drop(parked);
        // Other arguments than those that were confirmed are refused.
        let parked = session.park_again(&ticket, (), request(5000)).await.unwrap().rerun_if_begun();
        let approval = parked.decision().await.unwrap();
        let Err(Error::Refused(refused)) = session.invoke(parked, approval).await else {
            panic!("something else was invoked");
        };
        assert_eq!(refused.status, 422, "{refused}");
        // Under the same key it is the same call.
        let parked = session.park_again(&ticket, (), request(500)).await.unwrap().rerun_if_begun();
        let approval = parked.decision().await.unwrap();
        let ((), call) = session.invoke(parked, approval).await.unwrap();
        assert_eq!(call.id(), first);
        call.succeed("Moved.").await.unwrap();
        // And once it is complete, it is over.
        let parked = session.park_again(&ticket, (), request(500)).await.unwrap().rerun_if_begun();
        assert!(matches!(parked.decision().await, Err(Error::NotApproved(NotApproved::Begun))));
        drop(parked);
        session.complete("Done.").await.unwrap();
        assert_eq!(of_type(&person.judges(1).await, "tool.invoked").len(), 1);
    }

    #[test]
    async fn a_call_of_the_run_before_is_completed_with_what_was_found_out(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        let session = until_it_crashes(hub, async |agent: Agent| {
            let session = agent.session("Searching.").open().await.unwrap();
            let call = session.tool("search").begin().await.unwrap();
            let ticket = session.ticket().to_string();
            std::mem::forget((session, call));
            ticket
        }).await;
        let (agent, session) = (hub.agent(), session.parse::<SessionTicket>().unwrap());
        let mut resumed = agent.resume(session.clone()).await.unwrap();
        let call = resumed.session.take_up(resumed.calls.remove(0));
        call.fail("Nothing had been found when the agent broke off.").await.unwrap();
        resumed.session.complete("Done.").await.unwrap();
        person.judges(1).await;
        assert!(matches!(agent.resume(session).await, Err(Error::SessionOver)));
        let unknown = SessionId::from_bits(1);
        assert!(matches!(agent.resume(unknown).await, Err(Error::SessionOver)));
    }

    #[test]
    async fn a_ticket_of_nobody_is_refused(hub: &Hub) {
        let _person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Working.").open().await.unwrap();
        let none = format!("{}/req_{:032x}/key-1", session.id(), 7);
        let refused = session.park_again(&none.parse().unwrap(), (), request(5)).await;
        assert!(matches!(&refused, Err(Error::Refused(refused)) if refused.status == 404), "{refused:?}");
        let elsewhere = format!("{}/req_{:032x}/key-1", SessionId::from_bits(1), 7);
        let refused = session.park_again(&elsewhere.parse().unwrap(), (), request(5)).await;
        assert!(matches!(refused, Err(Error::Misuse(_))));
        session.complete("Done.").await.unwrap();
    }
}

// covers: I11, I2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_change_nothing() {
    let (listener, address) = Flaky::bind().await;
    let host = HostName::parse(&address.to_string()).unwrap();
    let hub = Hub::embedded_with(Config { allowed_hosts: vec![host], ..support::config() }).await;
    let Hub::Embedded(running) = &hub else { panic!("it is embedded") };
    let flaky = Flaky::start(listener, running.addresses()[0], 3);
    let person = hub.person(|_| Reaction::Accept).await;
    let agent = Agent::connect(flaky.url(), "test-agent").unwrap().patience(LONG);
    for round in 1..=8 {
        let session = agent.session(format!("Round {round}.")).open().await.unwrap();
        let mut output = session.output().unwrap();
        for token in ["One ", "two ", "three."] {
            output.write(token).await.unwrap();
            tokio::time::sleep(Duration::from_millis(110)).await;
        }
        output.finish().await.unwrap();
        session.tool("search").run(async { Ok::<_, String>(()) }).await.unwrap();
        let parked = session.park(round, request(round)).await.unwrap();
        let approval = parked.decision().await.unwrap();
        let (number, call) = session.invoke(parked, approval).await.unwrap();
        assert_eq!(number, round);
        call.succeed("Moved.").await.unwrap();
        drop(session.tool("search").begin().await.unwrap());
        session.complete("Done.").await.unwrap();
    }
    let events = person.judges(8).await;
    assert_eq!(of_type(&events, "session.started").len(), 8);
    assert_eq!(of_type(&events, "awaiting.confirmation").len(), 8);
    let dangerous = of_type(&events, "tool.invoked");
    assert_eq!(dangerous.iter().filter(|event| event["irreversible"] == true).count(), 8);
    assert!(flaky.lost.load(Ordering::Relaxed) > 20, "nothing was lost");
}

/// Waits until somebody has tried in vain to reach the hub that was here.
async fn knocked(port: u16) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    // Not before it speaks: until then it looks whose program listens here.
    let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_forgot_everything_approves_nothing() {
    let mut hub = Program::start(&[]).await;
    let agent = Agent::connect(hub.url.as_str(), "test-agent").unwrap();
    let session = agent.session("Moving money.").open().await.unwrap();
    let parked = session.park((), request(5)).await.unwrap();
    let port = hub.port();
    hub.kill().await;
    let decision = parked.decision();
    let restart = async {
        knocked(port).await;
        Program::start(&["--ephemeral", "--listen", &format!("127.0.0.1:{port}")]).await
    };
    let (decision, _hub) = tokio::join!(decision, restart);
    assert!(matches!(decision, Err(Error::NotApproved(NotApproved::Cancelled))), "{decision:?}");
    session.stopped().await;
    assert!(matches!(session.complete("Done.").await, Err(Error::SessionOver)));
}

// covers: I3, I11, C6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_was_killed_brings_every_question_back_to_its_agent() {
    let home = tempfile::tempdir().unwrap();
    let mut hub = Program::durable(home.path(), "127.0.0.1:0").await;
    let port = hub.port();
    let address = format!("127.0.0.1:{port}");
    let agent = Agent::connect(hub.url.as_str(), "test-agent").unwrap().patience(LONG);
    let session = agent.session("Moving money.").open().await.unwrap();
    let parked = session.park("the money", request(5)).await.unwrap();
    let open = session.tool("search").begin().await.unwrap();
    hub.kill().await;

    // It waits while there is no hub, and the answer comes from the next one.
    let restart = async {
        knocked(port).await;
        let hub = Program::durable(home.path(), &address).await;
        let person = Person::listens_to(&hub.url, |_| Reaction::Accept).await;
        (hub, person)
    };
    let (approval, (mut hub, person)) = tokio::join!(parked.decision(), restart);
    drop(person);
    hub.kill().await;

    // The yes is kept, and spent once.
    let restart = Program::durable(home.path(), &address);
    let (invoked, hub) = tokio::join!(session.invoke(parked, approval.unwrap()), restart);
    let (money, call) = invoked.unwrap();
    assert_eq!(money, "the money");
    let person = Person::listens_to(&hub.url, |_| Reaction::Accept).await;
    open.succeed("Found.").await.unwrap();
    call.succeed("Moved.").await.unwrap();
    session.complete("Done.").await.unwrap();
    // Numbers were skipped at each restart, so this is no whole stream.
    let events = person.hears_type("session.completed").await;
    let done = of_type(&events, "tool.completed");
    assert_eq!(done.len(), 2, "{events:#?}");
    assert!(of_type(&events, "awaiting.confirmation").is_empty(), "it is not asked again");
}

#[tokio::test]
async fn a_hub_that_is_not_there_is_said_in_time() {
    let agent = Agent::connect("http://127.0.0.1:9", "test-agent").unwrap();
    let agent = agent.patience(Duration::from_millis(300));
    let Err(Error::Unavailable(why)) = agent.session("Hello.").open().await else {
        panic!("there is no hub");
    };
    assert!(why.to_string().contains("cannot be reached"), "{why}");
}

/// A hub that takes every call and never answers: it may have done anything.
async fn silent_hub() -> String {
    use tokio::io::AsyncReadExt;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = [0; 4096];
            let _ = stream.read(&mut bytes).await;
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn doubt_is_said_only_where_something_was_sent_that_changes_something() {
    let url = silent_hub().await;
    let agent = Agent::connect(url.as_str(), "test-agent").unwrap();
    let agent = agent.patience(Duration::from_millis(300));
    let error = agent.session("Hello.").open().await.unwrap_err();
    assert!(matches!(error, Error::InDoubt(_)), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(error.report().contains("nobody knows"), "{}", error.report());
    // Nobody is in doubt about a question that changes nothing.
    let error = agent.resume(SessionId::parse("sess_1").unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    assert!(!error.report().contains("nobody knows"), "{}", error.report());
}

/// A port at which nobody listens.
fn nobody() -> String {
    let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", door.local_addr().unwrap())
}

#[tokio::test]
async fn an_agent_without_a_hub_says_so_and_what_to_do() {
    let agent = Agent::connect(&*nobody(), "lonely").unwrap();
    // Long before the patience of one whose hub is away for a while.
    let opened = tokio::time::timeout(aaep_agent::PATIENCE / 2, agent.session("Waiting.").open());
    let why = opened.await.expect("it does not wait").unwrap_err();
    assert!(matches!(why, Error::Unavailable(_)), "{why:?}");
    assert!(why.report().contains("start a hub with `aaep hub`"), "{}", why.report());
}
