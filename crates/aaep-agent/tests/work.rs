//! Sessions, tools, outputs, questions: everything has an end, and everybody hears it.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)]

mod support;

use std::time::Duration;

use aaep_agent::{
    Confirmation, Error, ErrorCategory, Handoff, InputEvent, Progress, Question, RiskLevel,
    TargetKind, ToolError, ToolStatus, Unanswered, Words,
};
use serde_json::{Value, json};
use support::{Hub, LONG, Reaction};

fn of_type<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    let wanted = format!("aaep:agent.{name}");
    events.iter().filter(|event| event["type"] == wanted.as_str()).collect()
}

in_both_worlds! {
    // covers: T1, T3, T4, T6
    #[test]
    async fn a_session_ends_as_its_author_says(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("One.").open().await.unwrap();
        let words = Words::new("It is done.").terse("Done.").detailed("It is done, all of it.");
        session.complete(words).await.unwrap();
        let session = agent.session("Two.").language("de").open().await.unwrap();
        session.cancel("Nicht mehr nötig.").await.unwrap();
        let session = agent.session("Three.").open().await.unwrap();
        session.fail(ErrorCategory::Transient, "The network is gone.").await.unwrap();
        let events = person.judges(3).await;
        let completed = of_type(&events, "session.completed")[0];
        assert_eq!(completed["summary_detailed"], "It is done, all of it.");
        let cancelled = of_type(&events, "session.cancelled")[0];
        assert_eq!(cancelled["cancelled_by"], "producer");
        assert_eq!(cancelled["localization_hints"]["primary_language"], "de");
        assert_eq!(of_type(&events, "session.errored")[0]["error_category"], "transient");
    }

    // covers: T1
    #[test]
    async fn a_dropped_session_is_cancelled_and_a_panicking_one_fails(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        drop(agent.session("Dropped.").open().await.unwrap());
        let session = agent.session("Panicking.").open().await.unwrap();
        let panicked = tokio::spawn(async move {
            let _session = session;
            panic!("a fault in the program");
        });
        assert!(panicked.await.unwrap_err().is_panic());
        agent.close().await;
        let events = person.judges(2).await;
        assert_eq!(of_type(&events, "session.cancelled").len(), 1);
        assert_eq!(of_type(&events, "session.errored").len(), 1);
    }

    // covers: L13, D39
    #[test]
    async fn sentences_of_the_library_are_labelled_as_english_in_any_session(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        let agent = hub.agent();
        let session = agent.session("Je range.").language("fr-CA").open().await.unwrap();
        session.tool("search").run(async { Ok::<_, Error>(()) }).await.unwrap();
        let step = Progress::step(2, 5).description("Copie en cours.");
        session.progress(step).await.unwrap();
        session.progress(Progress::percent(50)).await.unwrap();
        let words = Words::new("Mo ń wá a.").language("yo");
        let call = session.tool("look").summary(words).begin().await.unwrap();
        call.succeed("Trouvé.").await.unwrap();
        drop(session);
        agent.close().await;
        let events = person.judges(1).await;
        let said = |event: &Value| {
            let language = &event["localization_hints"]["primary_language"];
            (event["summary_normal"].as_str().unwrap().to_owned(), language.as_str().unwrap().to_owned())
        };
        let of = |kind: &str| of_type(&events, kind).into_iter().map(said).collect::<Vec<_>>();
        let pair = |text: &str, language: &str| (text.to_owned(), language.to_owned());
        assert_eq!(of("tool.invoked"), [pair("The agent uses search.", "en"), pair("Mo ń wá a.", "yo")]);
        assert_eq!(of("tool.completed"), [pair("search is done.", "en"), pair("Trouvé.", "fr-CA")]);
        let progress = [pair("Copie en cours.", "fr-CA"), pair("50 percent done.", "en")];
        assert_eq!(of("progress.updated"), progress);
        let end = of("session.cancelled");
        assert_eq!(end, [pair("The agent gave this up without finishing it.", "en")]);
    }

    // covers: T1
    #[test]
    async fn whoever_goes_away_while_waiting_leaves_nothing_open(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        // The future is polled once and then dropped, wherever it is then.
        macro_rules! once {
            ($future:expr) => {{
                let future = $future;
                tokio::pin!(future);
                let _ = std::future::poll_fn(|context| {
                    std::task::Poll::Ready(future.as_mut().poll(context).is_ready())
                })
                .await;
            }};
        }
        once!(agent.session("Abandoned.").open());
        let session = agent.session("Staying.").open().await.unwrap();
        once!(session.tool("search").begin());
        once!(session.park((), Confirmation::irreversible("send", "Send it.", "It is sent.")));
        once!(session.pose(Question::text("Your name?")));
        agent.close().await;
        once!(session.complete("Done."));
        agent.close().await;
        let events = person.judges(2).await;
        assert_eq!(of_type(&events, "session.completed").len(), 1);
        assert_eq!(of_type(&events, "session.cancelled").len(), 1);
        let completed = of_type(&events, "tool.completed");
        // It depends on how far it came whether it was begun.
        let status = completed[0]["status"].as_str().unwrap();
        assert!(matches!(status, "error" | "timeout"), "{completed:?}");
        assert_eq!(completed.len(), of_type(&events, "tool.invoked").len());
    }

    #[test]
    async fn words_that_the_hub_refuses_end_the_session_all_the_same(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("One.").open().await.unwrap();
        let Err(Error::Refused(refused)) = session.complete("pay \u{202e}005$").await else {
            panic!("it was not refused");
        };
        assert_eq!(refused.rule.as_deref(), Some("D34"));
        agent.close().await;
        assert_eq!(of_type(&person.judges(1).await, "session.cancelled").len(), 1);
    }

    // covers: T15, D34
    #[test]
    async fn words_that_the_hub_refuses_leave_the_status_of_a_tool_as_it_was(hub: &Hub) {
        let person = hub.person(|_| Answer::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Looking.").open().await.unwrap();
        let call = session.tool("look").begin().await.unwrap();
        let Err(Error::Refused(refused)) = call.succeed("Found \u{202e}hsac.").await else {
            panic!("it was not refused");
        };
        assert_eq!(refused.rule.as_deref(), Some("D34"));
        let named = session.tool("look");
        let found = named.run_saying(async { Ok::<_, String>(7) }, |_| "\u{202e}7".into()).await;
        assert_eq!(found.unwrap(), 7);
        session.complete("Done.").await.unwrap();
        let events = person.judges(1).await;
        for completed in of_type(&events, "tool.completed") {
            assert_eq!(completed["status"], "success", "{completed:#}");
            assert_eq!(completed["summary_normal"], "look is over; the words for it were refused.");
        }
        assert_eq!(of_type(&events, "tool.completed").len(), 2);
    }

    // covers: T11, T13, T15, T33
    #[test]
    async fn every_tool_comes_back_once_however_it_ends(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Working.").open().await.unwrap();
        let done = session
            .tool("search")
            .summary("Looking for flights.")
            .args_summary("to Lagos, in May")
            .risk(RiskLevel::Low)
            .run_saying(async { Ok::<_, String>(7) }, |found| format!("{found} flights found.").into())
            .await;
        assert_eq!(done.unwrap(), 7);
        let failed = session.tool("search").run(async { Err::<(), _>("no \u{1b}[31mnetwork") }).await;
        assert!(matches!(failed, Err(Error::Tool(ToolError::Failed(why))) if why.to_string() == "no \u{1b}[31mnetwork"));
        let slow = session.tool("search").timeout(Duration::from_millis(50));
        let slow = slow.run(std::future::pending::<Result<(), String>>()).await;
        assert!(matches!(slow, Err(Error::Tool(ToolError::TimedOut))));
        let broken = session.tool("search").run(async { panic!("secret detail") as Result<(), String> });
        let broken = broken.await;
        assert!(matches!(&broken, Err(Error::Tool(ToolError::Panicked(why))) if why == "secret detail"), "{broken:?}");
        drop(session.tool("search").begin().await.unwrap());
        let call = session.tool("search").begin().await.unwrap();
        call.complete(ToolStatus::Success, "Found.").await.unwrap();
        session.complete("Done.").await.unwrap();
        let events = person.judges(1).await;
        let statuses: Vec<_> = of_type(&events, "tool.completed")
            .iter()
            .map(|event| event["status"].as_str().unwrap())
            .collect();
        assert_eq!(statuses, ["success", "error", "timeout", "error", "timeout", "success"]);
        let texts = serde_json::to_string(&events).unwrap();
        assert!(texts.contains("7 flights found.") && texts.contains("search failed: no [31mnetwork"));
        assert!(!texts.contains("secret detail"));
        let completed = of_type(&events, "session.completed")[0];
        assert_eq!(completed["tool_invocations_count"], 6);
    }

    #[test]
    async fn a_tool_is_given_up_when_the_session_is_stopped(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Working.").open().await.unwrap();
        let (begun, wait) = tokio::sync::oneshot::channel::<()>();
        let id = session.id();
        let stop = async {
            wait.await.unwrap();
            person.hears_type("tool.invoked").await;
            person.stops(id.as_str()).await;
        };
        let work = session.tool("search").run(async move {
            begun.send(()).unwrap();
            std::future::pending::<Result<(), String>>().await
        });
        let (result, ()) = tokio::join!(work, stop);
        assert!(matches!(result, Err(Error::SessionOver)), "{result:?}");
        drop(session);
        person.judges(1).await;
    }

    // covers: T11
    #[test]
    async fn a_tool_that_cannot_be_announced_does_not_run_and_nothing_stays_open(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Working.").open().await.unwrap();
        let Err(Error::Refused(refused)) = session.tool("no such name!").begin().await else {
            panic!("a name that is none was taken");
        };
        assert_eq!(refused.status, 400);
        let unread = session.tool("search").arguments_json("{oops").begin().await;
        assert!(matches!(unread, Err(Error::Misuse { .. })), "no JSON, and taken");
        let (ran, runs) = tokio::sync::oneshot::channel();
        let work = async move { ran.send(()).map_err(|()| "nobody listens") };
        assert!(matches!(session.tool("no such name!").run(work).await, Err(Error::Refused(_))));
        assert!(runs.await.is_err(), "it ran");
        session.complete("Done.").await.unwrap();
        person.judges(1).await;
    }

    // covers: T17, T18, T31, D19
    #[test]
    async fn an_output_arrives_whole_and_complete(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Telling.").open().await.unwrap();
        let text = "Grüße aus Ọ̀ṣogbo! 👨‍👩‍👧 Ein Satz. Noch einer.\n\nEin Absatz, 你好。 ".repeat(40);
        let mut output = session.output().unwrap().content_type("text/plain");
        for token in text.split_inclusive(|character: char| !character.is_ascii_lowercase()) {
            output.write(token).await.unwrap();
        }
        let length = output.finish().await.unwrap();
        assert_eq!(length, text.chars().count() as u64);
        // Two at once, one of them dropped and one still open when the session ends.
        let mut first = session.output().unwrap();
        let mut second = session.output().unwrap().language("fr");
        first.write("One").await.unwrap();
        second.write("Un").await.unwrap();
        drop(first);
        let empty = session.output().unwrap();
        assert_eq!(empty.finish().await.unwrap(), 0);
        session.complete("Told.").await.unwrap();
        assert!(matches!(second.write(" deux").await, Err(Error::SessionOver)));
        let events = person.judges(1).await;
        let outputs = of_type(&events, "output.streaming");
        let of = |id: &Value| -> String {
            let mine = outputs.iter().filter(|event| event["output_id"] == *id);
            mine.map(|event| event["chunk"].as_str().unwrap()).collect()
        };
        assert_eq!(of(&outputs[0]["output_id"]), text);
        let complete = outputs.iter().filter(|event| event["complete"] == true).count();
        assert_eq!(complete, 3);
        let french = outputs.iter().find(|event| event["language"] == "fr").unwrap();
        assert_eq!(french["chunk"], "Un");
    }

    // covers: C20, T22, T32, D17
    #[test]
    async fn questions_have_answers_of_their_type(hub: &Hub) {
        let person = hub.person(|event| match event["question"].as_str().unwrap() {
            "Name?" => Reaction::Say(json!("Folake")),
            "Sure?" => Reaction::Say(json!(true)),
            "How many?" => Reaction::Say(json!(2.5)),
            "Which?" => Reaction::Say(event["choices"][1]["value"].clone()),
            "Stop?" => Reaction::Stop,
            _ => Reaction::Silence,
        })
        .await;
        let agent = hub.agent();
        let session = agent.session("Asking.").open().await.unwrap();
        assert_eq!(session.ask(Question::text("Name?").context("For the ticket.")).await.unwrap(), "Folake");
        assert!(session.ask(Question::yes_no("Sure?")).await.unwrap());
        assert_eq!(session.ask(Question::number("How many?")).await.unwrap(), 2.5);
        #[derive(Debug, PartialEq)]
        enum Seat { Aisle, Window }
        let seat = Question::choice("Which?").or("Aisle", Seat::Aisle).or("Window", Seat::Window);
        assert_eq!(session.ask(seat).await.unwrap(), Seat::Window);
        let quick = |text: &str| Question::text(text).timeout_seconds(1);
        let silent = session.ask(quick("Anybody?")).await;
        assert!(matches!(silent, Err(Error::Unanswered(Unanswered::TimedOut))), "{silent:?}");
        let assumed = session.ask(quick("Anybody at all?").default("nobody")).await;
        assert_eq!(assumed.unwrap(), "nobody");
        let refused = session.ask(Question::<()>::choice("Only one?").or("This", ())).await;
        let Err(Error::Refused(refused)) = refused else { panic!("{refused:?}") };
        assert_eq!(refused.rule.as_deref(), Some("T22"));
        let over = session.ask(Question::yes_no("Stop?")).await;
        assert!(matches!(over, Err(Error::SessionOver)), "{over:?}");
        person.judges(1).await;
    }

    // covers: T9, T10, T23, T25, T32
    #[test]
    async fn progress_states_and_handing_over_are_heard(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("A long job.").open().await.unwrap();
        session.thinking("Thinking about the order.").await.unwrap();
        for percent in 0..=100 {
            session.progress(Progress::percent(percent)).await.unwrap();
        }
        session.progress(Progress::step(2, 3).description("Copying.").eta_seconds(9)).await.unwrap();
        session.state("deciding", "Choosing one.").await.unwrap();
        let call = session.tool("copy").begin().await.unwrap();
        // While a tool runs the state stays, and nobody is bothered.
        session.thinking("Meanwhile.").await.unwrap();
        call.succeed("Copied.").await.unwrap();
        session.hand_off(
            Handoff::to(TargetKind::Human, "I cannot judge this.")
                .uri("https://example.org/help")
                .context(&json!({ "order": 7 })),
        ).await.unwrap();
        session.complete("Handed over.").await.unwrap();
        let events = person.judges(1).await;
        assert_eq!(of_type(&events, "progress.updated").len(), 22);
        let handoff = of_type(&events, "handoff.requested")[0];
        assert_eq!(handoff["packaged_context"]["order"], 7);
        let states: Vec<_> = of_type(&events, "state.changed")
            .iter()
            .map(|event| event["to_state"].as_str().unwrap())
            .collect();
        assert_eq!(states, ["thinking", "deciding", "calling_tool", "handing_off"]);
    }

    #[test]
    async fn what_people_say_reaches_the_agent(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let mut inputs = agent.inputs();
        let said = async {
            // Nobody takes input before the agent asks for it.
            while person.says("What is my balance?").await != 202 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let (input, ()) = tokio::join!(inputs.next(), said);
        assert_eq!(input.unwrap(), InputEvent::UserInput("What is my balance?".into()));
        assert_eq!(person.says("And now?").await, 202);
        assert_eq!(inputs.next().await.unwrap(), InputEvent::UserInput("And now?".into()));
    }
}
