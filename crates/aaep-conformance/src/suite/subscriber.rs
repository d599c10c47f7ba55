//! Checks of a subscriber: the suite is the producer that it listens to.
//!
//! What it announces is seen through a small observer protocol, or is what it prints. Every summary has
//! words of its own, so that it is found however it is put. The person who uses it is played: without
//! that, nothing is ever answered.

mod announcing;
mod answering;
mod doors;
mod serve;
mod session;
mod stage;
mod subject;
mod subscribing;

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::producer::now;
use super::report::{Report, Side};
use session::Session;
use stage::Stage;

pub use subject::{Keys, Subject, Watch};

/// Somewhere to listen, before the subscriber is told where.
#[derive(Debug)]
pub struct Listening {
    subject: Subject,
    stage: Arc<Stage>,
    url: String,
    task: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs every check of the subscriber's level. It ends by its deadline, whatever the subscriber does.
pub async fn run(subject: &Subject) -> Report {
    match Listening::start(subject).await {
        Ok(listening) => listening.run().await,
        Err(why) => {
            let mut report = Report::new(Side::Subscriber, &subject.listen, subject.level, now());
            report.cut_short = Some(why);
            report
        }
    }
}

impl Listening {
    /// Listens where the subject says.
    pub async fn start(subject: &Subject) -> Result<Self, String> {
        let beside = subject.listen.starts_with("http://");
        if matches!(subject.watch, Watch::Observer) && !beside {
            return Err(format!(
                "at {} there is no place for an observer: name a program to run behind --",
                subject.listen
            ));
        }
        let stage = Arc::new(Stage::default());
        let (url, task) = serve::listen(&subject.listen, Arc::clone(&stage)).await?;
        Ok(Self { subject: subject.clone(), stage, url, task })
    }

    /// Where the subscriber has to come to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs every check.
    pub async fn run(self) -> Report {
        let began = Instant::now();
        let name = match &self.subject.watch {
            Watch::Observer => "the subscriber that came".to_owned(),
            Watch::Command { command, .. } => command.join(" "),
        };
        let level = self.subject.level.clamp(1, 3);
        let mut report = Report::new(Side::Subscriber, &name, level, now());
        let deadline = self.subject.deadline;
        report.cut_short = match timeout(deadline, self.every(&mut report)).await {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why),
            Err(_) => Some(format!("it took longer than {} seconds.", deadline.as_secs())),
        };
        report.seconds = began.elapsed().as_secs_f64();
        report
    }

    async fn every(&self, report: &mut Report) -> Result<(), String> {
        let person = match &self.subject.watch {
            Watch::Observer => Person::Observed,
            Watch::Command { command, keys } => {
                Person::Types(Box::new(Typing::begin(command, keys, &self.url, &self.stage)?))
            }
        };
        let (stage, subject) = (&*self.stage, &self.subject);
        if !stage.somebody(0, subject.patience * 3).await {
            return Err(format!("nobody came to {}.", self.url));
        }
        // What it says on connecting is over by then.
        sleep(subject.quiet).await;
        let mut run = Run { stage, subject, report, person, questions: 0 };
        run.announcing().await;
        if subject.level >= 2 {
            run.answering().await;
        }
        if subject.level >= 3 {
            run.subscribing().await;
        }
        Ok(())
    }
}

/// The person who uses the subscriber.
enum Person {
    /// An observer reads what they do.
    Observed,
    Types(Box<Typing>),
}

/// A program that is run, and typed to.
struct Typing {
    child: Child,
    input: Mutex<ChildStdin>,
    keys: Keys,
}

impl Typing {
    fn begin(
        command: &[String],
        keys: &Keys,
        url: &str,
        stage: &Arc<Stage>,
    ) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("name a program to run")?;
        let mut child = Command::new(program)
            .args(arguments.iter().map(|argument| argument.replace("{url}", url)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot run {program}: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the program has no input and output".into());
        };
        let stage = Arc::clone(stage);
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                stage.announced(&line);
            }
        });
        Ok(Self { child, input: Mutex::new(input), keys: keys.clone() })
    }

    async fn type_line(&self, line: &str) {
        let mut input = self.input.lock().await;
        // Who does not read it any more is found out by what does not come.
        let _ = input.write_all(format!("{line}\n").as_bytes()).await;
        let _ = input.flush().await;
    }
}

struct Run<'a> {
    stage: &'a Stage,
    subject: &'a Subject,
    report: &'a mut Report,
    person: Person,
    /// How many questions were asked so far.
    questions: u32,
}

/// A question that was asked.
struct Question {
    token: String,
    /// The words that name it.
    action: String,
    number: u32,
}

/// What the person does.
enum Act<'a> {
    Accept,
    Reject,
    Answer(&'a str),
}

impl Run<'_> {
    async fn quiet(&self) {
        sleep(self.subject.quiet).await;
    }

    async fn hears(&self, from: usize, words: &str) -> bool {
        self.stage.hears(from, words, self.subject.patience).await.is_some()
    }

    /// Plays a session of which only this summary matters, and finds whether it is announced.
    async fn says(&self, summary: &str) -> bool {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Beginning.");
        session.complete(summary);
        self.hears(from, summary).await
    }

    /// The check holds if what follows is still announced.
    async fn survives(&mut self, check: &'static str, summary: &str) {
        let alive = self.says(summary).await;
        self.report.holds(check, alive, "After it, nothing is announced any more.");
    }

    async fn act(&self, question: &Question, act: Act<'_>) {
        match &self.person {
            Person::Observed => {
                let order = match act {
                    Act::Accept => json!({ "do": "accept", "about": question.action }),
                    Act::Reject => json!({ "do": "reject", "about": question.action }),
                    Act::Answer(text) => {
                        json!({ "do": "answer", "about": question.action, "text": text })
                    }
                };
                self.stage.order(order);
            }
            Person::Types(typing) => {
                let (line, text) = match act {
                    Act::Accept => (&typing.keys.accept, ""),
                    Act::Reject => (&typing.keys.reject, ""),
                    Act::Answer(text) => (&typing.keys.answer, text),
                };
                let line = line.replace("{n}", &question.number.to_string());
                typing.type_line(&line.replace("{text}", text)).await;
            }
        }
    }

    async fn leave(&mut self) {
        match &mut self.person {
            Person::Observed => self.stage.order(json!({ "do": "quit" })),
            Person::Types(typing) => {
                let quit = typing.keys.quit.clone();
                typing.type_line(&quit).await;
                let _ = timeout(Duration::from_secs(5), typing.child.wait()).await;
            }
        }
    }

    /// Asks for consent to this in a session, and waits until it is announced.
    async fn ask(&mut self, session: &Session<'_>, action: &str, consequence: &str) -> Question {
        self.questions += 1;
        let token = session::token();
        session.ask(&token, action, consequence);
        Question { token, action: action.into(), number: self.questions }
    }

    /// The one reply with this token, if one comes.
    async fn reply(&self, token: &str) -> Option<Value> {
        let mine = |said: &Value| said["reply_token"] == token;
        self.stage.says(0, self.subject.patience, mine).await
    }
}
