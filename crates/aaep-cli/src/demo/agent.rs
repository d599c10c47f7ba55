//! The demo's agent: everything that is said to it becomes a session of its own.

use std::sync::Arc;

use aaep_agent::{Agent, InputEvent, Session};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::scripts::{self, Ended};
use super::topics::Topic;

/// Sessions at once; what is said beyond that waits.
const SESSIONS: usize = 64;

/// Works until it is told to stop; then everything that runs is given up, and that is said.
pub(super) async fn work(agent: Agent, stop: impl Future<Output = ()>) {
    let mut running = JoinSet::new();
    tokio::select! {
        () = listen(&agent, &mut running) => {}
        () = stop => {}
    }
    running.shutdown().await;
}

async fn listen(agent: &Agent, running: &mut JoinSet<()>) {
    let room = Arc::new(Semaphore::new(SESSIONS));
    let mut inputs = agent.inputs();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        while running.try_join_next().is_some() {}
        match inputs.next().await {
            Ok(InputEvent::UserInput(text)) => {
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
            let one = |text| one(agent, Topic::of(text), text);
            let (job, question, transfer) =
                tokio::join!(one("a long job"), one("ask me"), one("transfer"));
            job.and(question).and(transfer)
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
