//! `aaep ask`: consent for shell scripts.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use aaep_agent::{
    Agent, Confirmation, Error, Kind, NotApproved, Producer, Remote, RiskLevel, Words, decided_by,
};
use aaep_subscriber::words::safe;
use serde_json::json;

use crate::arguments::{AskOptions, Undone};
use crate::discovery;
use crate::exit::{self, Exit};
use crate::lines::Visible;
use crate::signals::Signals;

/// How long a hub that does not answer is waited for before anything was asked.
const HUB_ANSWERS: Duration = Duration::from_secs(3);

/// The same afterwards: it may be restarting.
const HUB_COMES_BACK: Duration = Duration::from_secs(60);

/// How long goodbye may take.
const GOODBYE: Duration = Duration::from_secs(3);

/// What is said of a yes, once: of the end nothing else.
const TOLD_YES: &str = "The script was told yes, and goes on by itself.";

/// What came of it: how the command ends, the word for programs, and a sentence.
struct AskResult {
    exit: Exit,
    word: &'static str,
    text: String,
    by: Option<String>,
}

impl AskResult {
    fn new(exit: Exit, word: &'static str, text: impl Into<String>) -> Self {
        Self { exit, word, text: text.into(), by: None }
    }

    // enforces: D34
    /// The same where something that came over the wire is part of the text: shown as what it is, and
    /// on one line.
    fn heard(exit: Exit, word: &'static str, text: &str) -> Self {
        Self::new(exit, word, safe(text).text)
    }

    fn unable(why: impl Into<String>) -> Self {
        Self::new(Exit::Unable, "not_asked", why)
    }
}

pub(crate) fn run(options: &AskOptions, out: &mut impl Write) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(until_stopped(options));
    if options.json {
        let said =
            json!({ "decision": outcome.word, "decided_by": outcome.by, "text": outcome.text });
        writeln!(out, "{}", Visible(&said.to_string()))?;
    } else if outcome.exit == Exit::Unable {
        exit::say(&outcome.text);
    } else {
        writeln!(out, "{}", outcome.text)?;
    }
    Ok(outcome.exit)
}

/// Asks, unless somebody stops the command first: then the question is taken back.
async fn until_stopped(options: &AskOptions) -> AskResult {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(fault) => return AskResult::unable(fault.to_string()),
    };
    let agent = match agent(options) {
        Ok(agent) => agent,
        Err(why) => return AskResult::unable(why),
    };
    let outcome = tokio::select! {
        outcome = ask(&agent, options) => outcome,
        () = signals.stop() => {
            AskResult::unable("Stopped before there was an answer; the question was taken back.")
        }
    };
    let _ = tokio::time::timeout(GOODBYE, agent.close()).await;
    outcome
}

fn agent(options: &AskOptions) -> Result<Agent, String> {
    let found = discovery::hub(options.hub.as_deref())?;
    let mut remote = Remote::at(found.url);
    if let Some(certificate) = found.certificate {
        remote = remote.trust_pem(certificate);
    }
    if let Some(certificates) = discovery::certificates(options.ca.as_deref())? {
        remote = remote.trust_pem(certificates);
    }
    let identity = discovery::identity(options.cert.as_deref(), options.key.as_deref())?;
    if let Some(identity) = identity {
        remote = remote.identity(identity.chain_pem, identity.key_pem);
    }
    if options.trust_loopback {
        remote = remote.trust_loopback();
    }
    if let Some(token) = discovery::token(options.token_file.as_deref().map(Path::new))? {
        remote = remote.token(token);
    }
    let (name, tool) = (options.name.as_deref(), options.tool());
    let producer = Producer::new(tool).name(name.unwrap_or("A shell script"));
    let agent = Agent::connect(remote, producer).map_err(|error| error.to_string())?;
    Ok(agent.patience(HUB_ANSWERS))
}

async fn ask(agent: &Agent, options: &AskOptions) -> AskResult {
    let (question, consequence) = (options.question.as_str(), options.consequence());
    let tool = options.tool();
    match options.undone {
        Undone::No => {
            ask_for(agent, options, Confirmation::irreversible(tool, question, consequence)).await
        }
        Undone::WithEffort => {
            ask_for(agent, options, Confirmation::with_effort(tool, question, consequence)).await
        }
        Undone::Yes => {
            ask_for(agent, options, Confirmation::reversible(tool, question, consequence)).await
        }
    }
}

async fn ask_for<K: Kind>(
    agent: &Agent,
    options: &AskOptions,
    request: Confirmation<K>,
) -> AskResult {
    let mut request = request.risk(RiskLevel::from(options.risk));
    if let Some(seconds) = options.timeout {
        request = request.timeout_seconds(seconds);
    }
    if let Some(arguments) = &options.arguments {
        request = request.arguments_json(arguments.as_str());
    }
    // enforces: L13
    let opening = match &options.language {
        Some(tag) => agent.session(options.question.as_str()).language(tag.as_str()),
        None => agent.session(format!("A script asks: {}", options.question)),
    };
    let session = match opening.open().await {
        Ok(session) => session,
        Err(error) => return not_asked(error),
    };
    let parked = match session.park((), request).await {
        Ok(parked) => parked,
        Err(error) => return not_asked(error),
    };
    // All clones share it.
    drop(agent.clone().patience(HUB_COMES_BACK));
    if !options.json {
        exit::say("Asked. Waiting for an answer.");
    }
    let approval = match parked.decision().await {
        Ok(approval) => approval,
        Err(refusal) => {
            let outcome = refused(refusal);
            let _ = session.complete(ours("The script was told no.")).await;
            return outcome;
        }
    };
    let by = approval.by().to_owned();
    // The script acts by itself from here on; that it may is said before it knows.
    let spent = match session.invoke(parked, approval).await {
        Ok(((), call)) => call.succeed(ours(TOLD_YES)).await,
        Err(error) => Err(error),
    };
    if let Err(error) = spent {
        return not_asked(error);
    }
    let _ = session.complete(ours(TOLD_YES)).await;
    AskResult {
        by: Some(by.clone()),
        ..AskResult::heard(Exit::Good, "accepted", &format!("Accepted {}.", decided_by(&by)))
    }
}

/// A sentence of ours, which is English whatever the script speaks.
fn ours(sentence: &str) -> Words {
    Words::new(sentence).language("en")
}

/// Why there is no yes.
fn refused(refusal: Error) -> AskResult {
    let text = refusal.report();
    match refusal {
        Error::NotApproved(NotApproved::Rejected { by, .. }) => {
            AskResult { by: Some(by), ..AskResult::heard(Exit::Wrong, "rejected", &text) }
        }
        Error::NotApproved(NotApproved::TimedOut) => {
            AskResult::heard(Exit::Nobody, "timed_out", &text)
        }
        // A user who stops the agent says no.
        Error::SessionOver => AskResult::new(Exit::Wrong, "rejected", "The user stopped it."),
        _ => AskResult::heard(Exit::Unable, "not_asked", &text),
    }
}

fn not_asked(error: Error) -> AskResult {
    let text = match error {
        Error::Unavailable(why) => format!(
            "Nobody could be asked: {why}. Start a hub with `aaep hub`, or name one with --hub."
        ),
        other => format!("Nobody could be asked: {}", other.report()),
    };
    AskResult::heard(Exit::Unable, "not_asked", &text)
}
