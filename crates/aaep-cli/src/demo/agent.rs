//! The demo's agent: everything that is said to it becomes a session of its own.

use std::sync::Arc;

use aaep_agent::{Agent, Input, Session};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::scripts::{self, Ended};
use super::topics::Topic;

/// Sessions at once; what is said beyond that waits.
const SESSIONS: usize = 64;

/// Works until it is dropped.
pub(super) async fn work(agent: Agent) {
    let room = Arc::new(Semaphore::new(SESSIONS));
    let mut inputs = agent.inputs();
    let mut running = JoinSet::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        while running.try_join_next().is_some() {}
        match inputs.next().await {
            Ok(Input::Said(text)) => {
                let agent = agent.clone();
                running.spawn(async move {
                    answer(&agent, &text).await;
                    drop(place);
                });
            }
            // A session knows by itself that it ended.
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "the demo's agent hears nothing any more");
                return;
            }
        }
    }
}

async fn answer(agent: &Agent, text: &str) {
    let ended = match Topic::of(text) {
        Topic::Several => {
            let all = ["a long job", "ask me", "transfer"];
            let mut running = JoinSet::new();
            for text in all {
                let agent = agent.clone();
                running.spawn(async move { one(&agent, Topic::of(text), text).await });
            }
            let mut last = Ok(());
            while let Some(ended) = running.join_next().await {
                last = ended.unwrap_or(Ok(())).and(last);
            }
            last
        }
        topic => one(agent, topic, text).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a session of the demo ended early");
    }
}

async fn one(agent: &Agent, topic: Topic, text: &str) -> Ended {
    let session: Session = agent.session(scripts::about(topic)).language("en").open().await?;
    scripts::play(session, topic, text).await
}
