//! A chat loop: whatever people say is answered in a session of its own, and the answer is streamed
//! while it is made. The model is a toy; put yours in its place.
//!
//! ```console
//! $ cargo run -p aaep-agent --example chat -- http://127.0.0.1:8707
//! $ curl -d '{"kind":"user_input","text":"Good morning!"}' -H 'content-type: application/json' \
//!     http://127.0.0.1:8707/aaep/v1/messages
//! ```
//!
//! "goodbye" ends it.
#![allow(missing_docs, clippy::disallowed_methods)] // an example is a program

mod common;

use std::time::Duration;

use aaep_agent::{Agent, Error, InputEvent, Inputs, Producer, Question};
use tokio::sync::mpsc;

/// How soon the toy's tokens follow each other.
const PACE: Duration = Duration::from_millis(5);

/// Answers until somebody says goodbye; says how often it answered.
pub async fn run(agent: &Agent, mut inputs: Inputs) -> Result<usize, Box<dyn std::error::Error>> {
    let mut answered = 0;
    loop {
        let said = match inputs.next().await? {
            InputEvent::UserInput(said) => said,
            _ => continue,
        };
        println!("Heard: {said}");
        if said.trim().eq_ignore_ascii_case("goodbye") {
            return Ok(answered);
        }
        answer(agent, said).await?;
        answered += 1;
    }
}

async fn answer(agent: &Agent, said: String) -> Result<(), Box<dyn std::error::Error>> {
    let session = agent.session(format!("Answering: {said}")).language("en").open().await?;
    session.thinking("Thinking about what you said.").await?;
    let name = if said.contains("my name") {
        let question = Question::text("What is your name?").timeout_seconds(60);
        match session.ask(question).await {
            Ok(name) => name,
            Err(Error::Unanswered(_)) => "friend".into(),
            Err(Error::SessionOver) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    } else {
        "friend".into()
    };
    let mut tokens = toy_model(&said, &name);
    let mut output = session.output()?;
    loop {
        tokio::select! {
            token = tokens.recv() => match token {
                Some(token) => output.write(&token).await?,
                None => break,
            },
            // The user has heard enough.
            () = session.stopped() => return Ok(()),
        }
    }
    output.finish().await?;
    session.complete("Answered.").await?;
    Ok(())
}

/// Streams an answer in pieces that are no words, as models do.
fn toy_model(said: &str, name: &str) -> mpsc::Receiver<String> {
    let text = format!(
        "Hello, {name}! You said: “{said}”. That has {} words. Say “goodbye” when you had enough. 👋🏽",
        said.split_whitespace().count()
    );
    let (sender, receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(3) {
            tokio::time::sleep(PACE).await;
            if sender.send(piece.iter().collect()).await.is_err() {
                return;
            }
        }
    });
    receiver
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let producer = Producer::new("chat").name("Chat");
    let place = common::Place::find(std::env::args().nth(1), producer).await?;
    println!("Say something to the hub's `messages`.");
    run(&place.agent, place.agent.inputs()).await?;
    place.leave().await
}
