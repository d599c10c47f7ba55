//! What authors do wrong, or let happen: a clear error with its rule, and nothing that stays open.
//! What the compiler refuses is in `misuse/`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)]

mod support;

use aaep_agent::{
    Confirmation, Error, Handoff, Irreversible, Progress, Question, TargetKind, ToolError,
};
use serde_json::{Value, json};
use support::{Hub, LONG, Reaction};

fn of_type<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    let wanted = format!("aaep:agent.{name}");
    events.iter().filter(|event| event["type"] == wanted.as_str()).collect()
}

fn request(number: usize) -> Confirmation<Irreversible> {
    Confirmation::irreversible("send", format!("Send letter {number}."), "It is gone.")
        .arguments(&number)
}

const CARD: &str = "4111 1111 1111 1111";
const KEY: &str = "sk-abcd1234efgh5678ijkl";

in_both_worlds! {
    // covers: T14
    #[test]
    async fn no_secret_leaves_in_any_text(hub: &Hub) {
        let person = hub.person(|event| match event["question"].is_string() {
            true => Reaction::Say(json!("1")),
            false => Reaction::Accept,
        }).await;
        let agent = hub.agent();
        let told = || format!("With card {CARD} and password=hunter2, key {KEY}.");
        let session = agent.session(told()).open().await.unwrap();
        session.thinking(told()).await.unwrap();
        let tool = session.tool("pay").summary(told()).args_summary(told());
        let failed = tool.run(async move { Err::<(), _>(told()) }).await;
        assert!(matches!(failed, Err(Error::Tool(ToolError::Failed(text))) if text.to_string().contains(CARD)), "the author's own");
        session.progress(Progress::described(told())).await.unwrap();
        let mut output = session.output().unwrap();
        for token in told().chars().collect::<Vec<_>>().chunks(3) {
            output.write(&token.iter().collect::<String>()).await.unwrap();
        }
        output.finish().await.unwrap();
        let choice = Question::choice(told()).context(told()).or(told(), 1).or("Other", 2);
        assert_eq!(session.ask(choice).await.unwrap(), 1);
        let action = Confirmation::irreversible("pay", told(), told()).arguments(CARD);
        let parked = session.park((), action).await.unwrap();
        let approval = parked.decision().await.unwrap();
        let ((), call) = session.invoke(parked, approval).await.unwrap();
        // What runs has the real thing; what is said has not.
        assert!(call.arguments().unwrap().contains(CARD));
        call.succeed(told()).await.unwrap();
        session.hand_off(Handoff::to(TargetKind::Human, told())).await.unwrap();
        session.complete(told()).await.unwrap();
        let events = person.judges(1).await;
        let texts = serde_json::to_string(&events).unwrap();
        for secret in [CARD, "hunter2", KEY] {
            assert!(!texts.contains(secret), "{secret} got out: {events:#?}");
        }
        assert!(texts.matches("[card number removed]").count() >= 12);
        let output: String = of_type(&events, "output.streaming")
            .iter()
            .map(|event| event["chunk"].as_str().unwrap())
            .collect();
        assert_eq!(output, "With card [card number removed] and password=[password removed], key [key removed].");
    }

    // covers: D34, T18
    #[test]
    async fn text_that_deceives_is_refused_by_its_rule_and_nothing_stays_open(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Telling.").open().await.unwrap();
        let mut output = session.output().unwrap();
        output.write("This is fine. ").await.unwrap();
        output.flush().await.unwrap();
        output.write("pay \u{202e}005$ now. ").await.unwrap();
        let Err(Error::Misuse(misuse)) = output.finish().await else { panic!("it was taken") };
        assert_eq!(misuse.rule.id, "D34");
        let mut nonsense = session.output().unwrap().language("no such language!");
        nonsense.write("Hello.").await.unwrap();
        let refused = nonsense.finish().await;
        assert!(matches!(&refused, Err(Error::Refused(refused)) if refused.rule.is_some()), "{refused:?}");
        let asked = session.ask(Question::text("Which\u{202e}?")).await;
        let Err(Error::Refused(refused)) = asked else { panic!("{asked:?}") };
        assert_eq!(refused.rule.as_deref(), Some("D34"));
        session.complete("Told.").await.unwrap();
        let events = person.judges(1).await;
        let outputs = of_type(&events, "output.streaming");
        assert_eq!(outputs.last().unwrap()["complete"], true, "{outputs:#?}");
    }

    // covers: C4, I13
    #[test]
    async fn a_thousand_open_questions_are_bounded_and_all_end(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Asking a thousand times.").open().await.unwrap();
        let mut open = Vec::new();
        let mut refusals = 0;
        for number in 0..1000 {
            match session.park(number, request(number)).await {
                Ok(parked) => open.push(parked),
                Err(Error::Refused(refused)) => {
                    assert_eq!((refused.status, refused.rule.as_deref()), (429, Some("C4")));
                    refusals += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!((1..=64).contains(&open.len()), "{}", open.len());
        assert_eq!(open.len() + refusals, 1000);
        let asked = open.len();
        drop(open);
        session.complete("Enough.").await.unwrap();
        let events = person.judges(1).await;
        let ended = events.iter().filter(|event| event["extensions"]["outcome"]["outcome"] == "cancelled");
        assert_eq!(ended.count(), asked);
        assert!(of_type(&events, "tool.invoked").is_empty());
    }

    // covers: T15
    #[test]
    async fn a_panic_in_a_confirmed_action_is_told_without_its_words(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        let agent = hub.agent();
        let session = agent.session("Sending.").open().await.unwrap();
        let parked = session.park((), request(1)).await.unwrap();
        let approval = parked.decision().await.unwrap();
        let ((), call) = session.invoke(parked, approval).await.unwrap();
        let ended = call.run(async { panic!("at 0x7f") as Result<(), String> }).await;
        assert!(matches!(ended, Err(Error::Tool(ToolError::Panicked(why))) if why == "at 0x7f"));
        session.complete("It did not work.").await.unwrap();
        let events = person.judges(1).await;
        let completed = of_type(&events, "tool.completed");
        assert_eq!((completed.len(), &completed[0]["status"]), (1, &json!("error")));
        assert!(!serde_json::to_string(&events).unwrap().contains("0x7f"));
    }

    // covers: C3, T31
    #[test]
    async fn other_work_goes_on_while_an_action_waits(hub: &Hub) {
        let person = hub.person(|event| match event["action"].as_str() {
            Some("Send letter 1.") => Reaction::Silence,
            _ => Reaction::Accept,
        }).await;
        let agent = hub.agent();
        let session = agent.session("Sending.").open().await.unwrap();
        let parked = session.park((), request(1)).await.unwrap();
        session.tool("search").run(async { Ok::<_, String>(()) }).await.unwrap();
        let mut output = session.output().unwrap();
        output.write("One moment, ").await.unwrap();
        output.flush().await.unwrap();
        output.write("please.").await.unwrap();
        output.finish().await.unwrap();
        session.progress(Progress::percent(50)).await.unwrap();
        drop(parked);
        session.complete("Not sent.").await.unwrap();
        let events = person.judges(1).await;
        let tools = of_type(&events, "tool.invoked");
        assert!(tools.iter().all(|event| event["tool"] == "search"), "{tools:#?}");
        let granular = of_type(&events, "output.streaming");
        assert_eq!(granular[0]["coalesce_hint"], "word");
    }

    // covers: T1
    #[test]
    async fn a_thousand_dropped_things_leave_nothing_open(hub: &Hub) {
        let person = hub.person(|_| Reaction::Silence).await;
        let agent = hub.agent();
        let session = agent.session("Dropping.").open().await.unwrap();
        for _ in 0..50 {
            drop(session.tool("search").begin().await.unwrap());
            let mut output = session.output().unwrap();
            output.write("x").await.unwrap();
        }
        drop(session);
        let many: Vec<_> = (0..20).map(|number| agent.session(format!("Session {number}.")).open()).collect();
        for opening in many {
            drop(opening.await.unwrap());
        }
        agent.close().await;
        let events = person.judges(21).await;
        assert_eq!(of_type(&events, "session.cancelled").len(), 21);
        assert_eq!(of_type(&events, "tool.completed").len(), 50);
        let complete = of_type(&events, "output.streaming").iter().filter(|event| event["complete"] == true).count();
        assert_eq!(complete, 50);
    }
}
