//! Which subscriber is tried, how it is watched, and how the person who uses it is played.

use std::time::Duration;

/// A subscriber.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Where the suite listens for it: `http://127.0.0.1:8709/aaep/v1`, `ws://127.0.0.1:8709/aaep/v1/ws`,
    /// `grpc://127.0.0.1:8709` or `unix:/path/of/a.sock`. Port 0 takes a free one.
    pub listen: String,
    /// The level to check, 1 to 3.
    pub level: u8,
    /// How it is watched.
    pub watch: Watch,
    /// How long nothing has to happen before nothing counts as having happened.
    pub quiet: Duration,
    /// How long to wait for something that should happen.
    pub patience: Duration,
    /// How long the whole run may take.
    pub deadline: Duration,
}

/// How what it announces is seen, and how the person does something.
#[derive(Clone, Debug)]
pub enum Watch {
    /// It, or a program beside it, speaks the observer protocol: what is announced is posted to
    /// `observer`, what the person does is read there. It needs HTTP.
    Observer,
    /// The suite runs it. `{url}` in the arguments is where it listens; what it prints is its transcript,
    /// and what the person does is typed.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// What is typed.
        keys: Keys,
    },
}

/// What the person types; `{n}` is the number of the question, `{text}` the answer. Each line is followed
/// by Enter.
#[derive(Clone, Debug)]
pub struct Keys {
    /// To say yes.
    pub accept: String,
    /// To say no.
    pub reject: String,
    /// To answer a question.
    pub answer: String,
    /// To leave.
    pub quit: String,
}

impl Default for Keys {
    /// What `aaep listen --line` takes.
    fn default() -> Self {
        Self {
            accept: "yes {n}".into(),
            reject: "no {n}".into(),
            answer: "answer {text}".into(),
            quit: "quit".into(),
        }
    }
}

impl Subject {
    /// A subscriber that comes to this address, with an observer.
    pub fn new(listen: &str, level: u8) -> Self {
        Self {
            listen: listen.into(),
            level,
            watch: Watch::Observer,
            quiet: Duration::from_millis(700),
            patience: Duration::from_secs(8),
            deadline: Duration::from_secs(180),
        }
    }
}
