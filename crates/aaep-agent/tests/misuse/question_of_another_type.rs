//! An answer has the type of its question.
use aaep_agent::{Question, Session};

async fn confused(session: &Session) {
    let _yes: bool = session.ask(Question::number("How many?")).await.unwrap(); //~ E0308
    let _ = Question::yes_no("Sure?").default("yes"); //~ E0308
}

fn main() {}
