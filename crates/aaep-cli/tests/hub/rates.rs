//! The rate that was agreed on, and what may not wait for it (§5.6.1, decision D38).

use std::time::Instant;

use crate::support::*;

/// How many calls a `tool.completed` stands for.
fn calls(event: &Value) -> u64 {
    let said = text(event, "summary_normal");
    said.split_once(" × ").map_or(1, |(count, _)| count.parse().unwrap())
}

// covers: D38, I20, H3, H17
#[test]
fn a_question_overtakes_three_hundred_tool_events_and_the_end_is_not_late_for_it() {
    run(async {
        let person = Hub::shared().person();
        let agent = person.agent();
        let mut terms = everything();
        terms["max_events_per_second"] = json!(1);
        let mut ear = Ear::subscribe_for(person.client("reader"), terms).await;
        let begin = Instant::now();
        let session = agent.open().await;
        for _ in 0..150 {
            let invoked = json!({ "tool": "read", "summary_normal": "Reading." });
            agent.emit(&session, "tool.invoked", invoked).await;
            let completed =
                json!({ "tool": "read", "status": "success", "summary_normal": "Read." });
            agent.emit(&session, "tool.completed", completed).await;
        }
        let request = agent.ask(&session).await;
        ear.event("awaiting.confirmation").await;
        let asked = Instant::now();
        let heard = ear.heard.len() as u64;
        let most = begin.elapsed().as_secs() + 8;
        assert!(heard <= most, "{heard} events, at one a second {most} at most: {:?}", ear.heard);
        let events = ear.heard.iter().map(|json| serde_json::from_str::<Value>(json).unwrap());
        let ends = events.filter(|event| event["type"] == "aaep:agent.tool.completed");
        assert_eq!(ends.map(|end| calls(&end)).sum::<u64>(), 150, "{:?}", ear.heard);
        agent.withdraw(&request).await;
        agent.complete(&session).await;
        ear.event("session.completed").await;
        assert!(asked.elapsed().as_secs() < 15, "it came after {:?}", asked.elapsed());
        ear.is_lawful();
    });
}
