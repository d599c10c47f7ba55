//! What the demo's agent does. Nothing of it is real: no money moves and no mail is sent.

use std::convert::Infallible;
use std::time::Duration;

use aaep_agent::{
    Confirmation, Error, ErrorCategory, Handoff, Kind, Progress, Question, RiskLevel, Session,
    TargetKind, Words,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::topics::{EXAMPLES, Topic, amount, recipient};

/// How a script ends; an error means that its session ended early, and was heard to.
pub(super) type Ended = Result<(), Error>;

/// Between two steps, so that people can follow.
const PACE: Duration = Duration::from_millis(150);

/// The longest that an answer is waited for, in seconds, if somebody says how long.
const LONGEST_QUESTION: u32 = 300;

/// Between two steps of the long job.
const JOB_STEP: Duration = Duration::from_millis(800);

/// What a session is about, in a sentence.
pub(super) fn about(topic: Topic) -> &'static str {
    match topic {
        Topic::Balance => "Looking up your balance.",
        Topic::Transfer => "Preparing a transfer.",
        Topic::Email => "Preparing an email.",
        Topic::Delete => "Preparing to delete a record.",
        Topic::Book => "Looking for a room.",
        Topic::Sentences => "Writing three sentences.",
        Topic::AskMe => "Looking at the weather.",
        Topic::Fail => "Trying something that will not work.",
        Topic::HandOff => "Looking for a person to take over.",
        Topic::LongJob => "Making a backup.",
        Topic::GiveUp => "Starting something.",
        Topic::MissingTool => "Looking for a tool.",
        Topic::Secrets => "Calling a tool.",
        Topic::Explain => "Explaining how rainbows form.",
        Topic::Moon => "Telling a fact about the moon.",
        Topic::Several | Topic::AskAlways | Topic::Help | Topic::Hello => "Answering you.",
    }
}

pub(super) async fn play(session: Session, topic: Topic, text: &str) -> Ended {
    sleep(PACE).await;
    match topic {
        Topic::Balance => balance(session).await,
        Topic::Transfer => transfer(session, text).await,
        Topic::Email => email(session).await,
        Topic::Delete => delete(session).await,
        Topic::Book => book(session).await,
        Topic::Sentences => stream(session, SENTENCES, "Three sentences were written.").await,
        Topic::AskMe => weather(session).await,
        Topic::Fail => fail(session).await,
        Topic::HandOff => hand_off(session).await,
        Topic::LongJob => long_job(session).await,
        Topic::GiveUp => session.cancel("Given up, as you wished. Nothing was changed.").await,
        Topic::MissingTool => missing_tool(session).await,
        Topic::Secrets => secrets(session).await,
        Topic::Explain => explain(session).await,
        Topic::Moon => stream(session, MOON, "That was a fact about the moon.").await,
        Topic::AskAlways => stream(session, ASKS_ALWAYS, "Nothing was done.").await,
        Topic::Help => help(session).await,
        Topic::Several | Topic::Hello => stream(session, HELLO, "Answered.").await,
    }
}

const HELLO: &str = "Hello! I am a demonstration. Say help to hear what I can do.";
const MOON: &str = "The moon moves away from the earth by about four centimetres a year.";
const ASKS_ALWAYS: &str = "I ask before everything that matters. Tell me what to do.";
const SENTENCES: &str =
    "An agent acts. A person hears of it. Nothing grave happens before they said yes.";
const RAINBOW: &str = "Sunlight enters a drop of rain and bends. \
    It is thrown back at the far side of the drop. It bends again when it leaves. \
    Each colour bends by its own angle. So each colour comes to you from drops at its own height.";

/// Streams a text, as a model would: in pieces that are no words.
async fn stream(session: Session, text: &str, summary: &'static str) -> Ended {
    write(&session, text).await?;
    session.complete(summary).await
}

async fn write(session: &Session, text: &str) -> Ended {
    let mut output = session.output()?;
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(7) {
        output.write(&String::from_iter(piece)).await?;
        tokio::task::yield_now().await;
    }
    output.finish().await.map(drop)
}

async fn help(session: Session) -> Ended {
    let mut text = String::from("I understand a few words.");
    for (said, does) in EXAMPLES {
        text.push_str(&format!(" “{said}” {does}."));
    }
    stream(session, &text, "That is all I can do.").await
}

/// Uses a tool that needs no question. Its result does not matter here.
async fn look(session: &Session, tool: &str, says: &str, found: &'static str) -> Ended {
    let work = async {
        sleep(PACE).await;
        Ok::<(), Infallible>(())
    };
    let call = session.tool(tool).summary(says).risk(RiskLevel::Low);
    match call.run_saying(work, |()| found.into()).await {
        Err(Error::Tool(_)) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn balance(session: Session) -> Ended {
    let found = "There are 1,234.56 euros in your account.";
    look(&session, "bank.balance", "Asking the bank.", found).await?;
    session.complete(found).await
}

/// Asks, and does it if somebody says yes. What is done is only said.
async fn consented<K: Kind>(
    session: Session,
    request: Confirmation<K>,
    arguments: Value,
    done: impl Into<Words> + Clone,
) -> Ended {
    let request = request.arguments(&arguments);
    let parked = session.park(arguments, request).await?;
    let approval = match parked.decision().await {
        Ok(approval) => approval,
        Err(Error::NotApproved(why)) => {
            return session.complete(format!("Nothing was done. {why}")).await;
        }
        Err(error) => return Err(error),
    };
    let (_pretended, call) = session.invoke(parked, approval).await?;
    sleep(PACE).await;
    call.succeed(done.clone()).await?;
    session.complete(done).await
}

async fn transfer(session: Session, text: &str) -> Ended {
    let amount = amount(text).unwrap_or_else(|| "20".into());
    let recipient = recipient(text).unwrap_or_else(|| "Ann".into());
    let request = Confirmation::irreversible(
        "bank.transfer",
        format!("Transfer {amount} euros to {recipient}."),
        "The money leaves your account at once, and cannot be called back.",
    );
    let arguments = json!({ "amount": amount, "currency": "EUR", "recipient": recipient });
    let done = format!("{amount} euros were sent to {recipient}. This was only a demonstration.");
    let mut request = request.risk(RiskLevel::High);
    if let Some(seconds) = seconds_to_wait(text) {
        request = request.timeout_seconds(seconds);
    }
    if text.contains("take it back") {
        return taken_back(session, request, arguments).await;
    }
    consented(session, request, arguments, done).await
}

/// How long somebody says that an answer is waited for.
fn seconds_to_wait(text: &str) -> Option<u32> {
    let number = text.split_once("wait for ")?.1;
    let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().map(|seconds: u32| seconds.clamp(1, LONGEST_QUESTION))
}

/// Asks, and does not want it any more before anybody answers.
async fn taken_back<K: Kind>(
    session: Session,
    request: Confirmation<K>,
    arguments: Value,
) -> Ended {
    let request = request.arguments(&arguments);
    let parked = session.park(arguments, request).await?;
    sleep(PACE * 2).await;
    drop(parked);
    // Long enough for an answer that comes too late.
    sleep(JOB_STEP).await;
    session.complete("It is no longer needed. Nothing was done.").await
}

async fn email(session: Session) -> Ended {
    let request = Confirmation::irreversible(
        "mail.send",
        "Send an email to test@example.com.",
        "What was sent cannot be called back.",
    );
    let arguments = json!({ "to": "test@example.com", "subject": "Hello" });
    let done = "The email was sent. This was only a demonstration.";
    consented(session, request.risk(RiskLevel::Medium), arguments, done).await
}

async fn delete(session: Session) -> Ended {
    let request = Confirmation::irreversible(
        "records.delete",
        "Delete the record 12345.",
        "The record is gone for good.",
    );
    let done = "The record was deleted. This was only a demonstration.";
    consented(session, request.risk(RiskLevel::High), json!({ "record": "12345" }), done).await
}

async fn book(session: Session) -> Ended {
    let request = Confirmation::with_effort(
        "rooms.book",
        "Book the small meeting room, tomorrow at 2 in the afternoon.",
        "Others cannot have the room then. You can cancel until tomorrow morning.",
    );
    let arguments = json!({ "room": "small", "day": "tomorrow", "hour": 14 });
    let done = "The room is booked. This was only a demonstration.";
    consented(session, request.risk(RiskLevel::Medium), arguments, done).await
}

async fn weather(session: Session) -> Ended {
    let question =
        Question::text("Where are you?").context("The weather is not the same everywhere.");
    let place = match session.ask(question).await {
        Ok(place) => place,
        Err(Error::Unanswered(why)) => {
            return session.complete(format!("Without a place there is no weather. {why}")).await;
        }
        Err(error) => return Err(error),
    };
    let place = aaep_types::cut(&place, 60);
    look(&session, "weather.now", "Asking for the weather.", "The weather is known.").await?;
    session.complete(format!("In {place} the sun shines. This was only a demonstration.")).await
}

async fn fail(session: Session) -> Ended {
    let work = async {
        sleep(PACE).await;
        Err::<(), _>("the other side does not answer")
    };
    let _ = session.tool("network.try").summary("Trying to reach the other side.").run(work).await;
    let what = "The other side does not answer. Nothing was changed. Try again later.";
    session.fail(ErrorCategory::Transient, what).await
}

async fn missing_tool(session: Session) -> Ended {
    let what = "There is no such tool. Nothing was changed. Ask for something else.";
    session.fail(ErrorCategory::Permanent, what).await
}

async fn secrets(session: Session) -> Ended {
    let work = async {
        sleep(PACE).await;
        Ok::<(), Infallible>(())
    };
    let call = session.tool("web.fetch").summary("Fetching a page.");
    // What looks like a secret is not repeated, not even its name.
    let call = call.args_summary("an address; what may be a secret was left out");
    let _ = call.run_saying(work, |()| "The page was fetched.".into()).await;
    session.complete("The page was fetched. What may be a secret was not repeated.").await
}

async fn hand_off(session: Session) -> Ended {
    let reason = "You asked for a person. Somebody is being called.";
    session.hand_off(Handoff::to(TargetKind::Human, reason)).await?;
    sleep(PACE).await;
    session.complete("A person takes over. This was only a demonstration.").await
}

async fn explain(session: Session) -> Ended {
    session.thinking("Thinking about light and water.").await?;
    sleep(PACE).await;
    stream(session, RAINBOW, "That is how rainbows form.").await
}

async fn long_job(session: Session) -> Ended {
    const STEPS: u32 = 5;
    let parts = ["letters", "pictures", "music", "settings", "the rest"];
    for (step, part) in (1..=STEPS).zip(parts) {
        let far = Progress::step(step, STEPS).description(format!("Copying {part}."));
        session.progress(far.eta_seconds(STEPS - step)).await?;
        tokio::select! {
            () = sleep(JOB_STEP) => {}
            () = session.stopped() => return Err(Error::SessionOver),
        }
    }
    session.complete("The backup is complete. This was only a demonstration.").await
}
