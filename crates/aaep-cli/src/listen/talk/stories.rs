//! People and agents for the tests of the conversation.

use std::sync::Arc;

use aaep_subscriber::inbox::{Answer, InboxError};
use aaep_subscriber::words::{Manner, Words};
use aaep_subscriber::{Account, Agent, Asks, Choice, Notification, Request, RequestOutcome};
use aaep_types::{DescribedBy, ReplyToken, ResponseKind, Reversibility, RiskLevel};
use serde_json::json;

use super::{By, Named, Output, SecondStep, Settings, Sound, Talk, Voice};
use crate::exit::Exit;

/// When everything begins.
const BEGINS: u64 = 1_000_000;

pub(crate) fn agent(name: &str) -> Agent {
    Agent { id: name.to_lowercase().into(), name: name.into() }
}

fn request(number: u32, asks: Asks) -> Request {
    Request {
        id: number.into(),
        number,
        agent: agent("Tidy"),
        event_id: format!("evt_{number}").into(),
        session_id: "sess_1".into(),
        reply_token: ReplyToken::parse(&format!("rpl_{number}")).unwrap(),
        asks,
        account: None,
        agent_says: None,
        timeout_seconds: 300,
        deadline_ms: BEGINS + 300_000,
        continues: None,
        language: None,
        json: "{}".into(),
    }
}

/// A request for consent to something grave.
pub(crate) fn consent(number: u32, action: &str) -> Request {
    let asks = Asks::Consent {
        action: action.into(),
        consequence: "It is gone for good.".into(),
        risk: RiskLevel::High,
        reversibility: Reversibility::Irreversible,
        silence_accepts: false,
    };
    request(number, asks)
}

/// The same request, with the hub's own account.
pub(crate) fn accounted(request: Request, described_by: DescribedBy) -> Request {
    let account = Account {
        tool: "transfer".into(),
        arguments: "euros: 9001\nto: Eve".into(),
        digest: "d".into(),
        described_by,
        shortened: false,
        redacted: false,
    };
    Request { account: Some(account), ..request }
}

/// The same request, but for what it asks.
pub(crate) fn with(mut request: Request, change: impl FnOnce(&mut Asks)) -> Request {
    change(&mut request.asks);
    request
}

/// A request for consent to something harmless.
pub(crate) fn mild(number: u32, action: &str) -> Request {
    with(consent(number, action), |asks| {
        if let Asks::Consent { risk, reversibility, consequence, .. } = asks {
            (*risk, *reversibility) = (RiskLevel::Low, Reversibility::Reversible);
            *consequence = "You can take it back.".into();
        }
    })
}

/// A question.
pub(crate) fn question(number: u32, kinds: &[ResponseKind], choices: &[&str]) -> Request {
    let choice = |label: &&str| Choice { value: label.to_lowercase(), label: (*label).to_owned() };
    let asks = Asks::Answer {
        question: "Where are you?".into(),
        context: None,
        kinds: kinds.to_vec(),
        choices: choices.iter().map(choice).collect(),
        default: None,
    };
    request(number, asks)
}

/// A conversation, and everything that was heard of it.
pub(crate) struct Story {
    pub(crate) talk: Talk,
    now: u64,
    heard: String,
}

impl Story {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::in_language("en", change)
    }

    pub(crate) fn in_language(language: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings {
            manner: Manner::default(),
            by: By::Sentence,
            quiet: false,
            second_step: SecondStep::Risky,
            lines: false,
            once: false,
            pause_ms: 500,
            standing: None,
            for_program: false,
            scan_ms: None,
            dictation: false,
        };
        change(&mut settings);
        let talk = Talk::new(Words::new(&[language]), settings);
        Self { talk, now: BEGINS, heard: String::new() }
    }

    pub(crate) fn happens(&mut self, notification: Notification) -> &mut Self {
        self.talk.happened(&notification, self.now);
        self.hear()
    }

    pub(crate) fn asked(&mut self, request: Request) -> &mut Self {
        self.happens(Notification::Asked(Arc::new(request))).after(1)
    }

    pub(crate) fn settled(&mut self, request: Request, outcome: RequestOutcome) -> &mut Self {
        let request = Arc::new(request);
        self.happens(Notification::Settled { request, outcome, announced: true })
    }

    /// An event of the session, without `aaep:agent.`.
    pub(crate) fn event(&mut self, kind: &str, summary: &str) -> &mut Self {
        self.event_of("Tidy", "sess_1", kind, summary)
    }

    pub(crate) fn event_of(
        &mut self,
        name: &str,
        session: &str,
        kind: &str,
        summary: &str,
    ) -> &mut Self {
        let json = json!({
            "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
            "type": format!("aaep:agent.{kind}"), "event_id": "evt_9", "session_id": session,
            "timestamp": "2026-05-24T14:22:11.342Z", "producer": { "agent_id": "tidy" },
            "localization_hints": { "primary_language": "en" }, "summary_normal": summary,
            "error_category": "transient", "cancelled_by": "user",
        });
        let critical = kind == "session.errored";
        let (agent, json) = (agent(name), json.to_string().into());
        self.happens(Notification::Event { agent, json, critical })
    }

    pub(crate) fn text(&mut self, text: &str, ends: bool) -> &mut Self {
        self.happens(Notification::Text {
            agent: agent("Tidy"),
            session_id: "sess_1".into(),
            output_id: "out_1".into(),
            text: text.into(),
            ends,
            after_gap: false,
        })
    }

    /// Somebody presses a key, or types a line, a second later.
    pub(crate) fn types(&mut self, text: &str) -> &mut Self {
        self.after(1).types_at_once(text)
    }

    pub(crate) fn types_at_once(&mut self, text: &str) -> &mut Self {
        self.heard += &format!("> {}\n", text.escape_debug());
        self.talk.typed(text, self.now);
        self.hear()
    }

    /// A program answers.
    pub(crate) fn named(
        &mut self,
        number: u32,
        answer: Option<Answer>,
        certain: bool,
    ) -> &mut Self {
        self.talk.named(Named { number, answer, certain }, self.now);
        self.hear()
    }

    /// The answer was not taken.
    pub(crate) fn refused(&mut self, number: u32, why: &InboxError) -> &mut Self {
        self.talk.refused(number, why);
        self.hear()
    }

    /// So many seconds pass.
    pub(crate) fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += seconds * 1000;
        self.talk.tick(self.now);
        self.hear()
    }

    fn hear(&mut self) -> &mut Self {
        while let Some(output) = self.talk.poll() {
            let line = match output {
                Output::Say(utterance) => utterance.line,
                Output::Waits(_) | Output::NoLongerWaits(_) => continue,
                Output::Voice(Voice::Interrupt) => continue,
                Output::Voice(voice) => format!("[voice: {voice:?}]"),
                Output::Sound(Sound::Blocked) => "[bell: blocked]".into(),
                Output::Sound(Sound::Done) => "[bell: done]".into(),
                Output::Sound(Sound::Error) => "[bell: error]".into(),
                Output::Sound(Sound::Waiting) => "[bell: waiting]".into(),
                Output::Reply { id, answer, .. } => {
                    format!("[reply {id}: {answer:?}]")
                }
                Output::MoreTime { id, seconds, .. } => {
                    format!("[more time for {id}: {seconds}]")
                }
                Output::Stop { session_id, .. } => format!("[stop {session_id}]"),
                Output::Quit(Exit::Good) => "[ends]".into(),
                Output::Quit(exit) => format!("[ends with {}]", exit as u8),
            };
            self.heard += &line;
            self.heard.push('\n');
        }
        self
    }

    /// Everything that was heard since this was last asked.
    pub(crate) fn heard(&mut self) -> String {
        std::mem::take(&mut self.heard)
    }

    /// It is heard so, word for word.
    #[track_caller]
    pub(crate) fn is(&mut self, expected: &str) -> &mut Self {
        let heard = self.heard();
        let expected: Vec<&str> =
            expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let lines: Vec<&str> = heard.lines().map(str::trim).collect();
        assert_eq!(lines, expected, "heard:\n{heard}");
        self
    }

    /// The answers that were sent, forgetting the rest.
    pub(crate) fn replies(&mut self) -> Vec<String> {
        let heard = self.heard();
        heard.lines().filter(|line| line.starts_with("[reply")).map(String::from).collect()
    }
}

/// What an answer looks like among what was heard.
pub(crate) fn reply(number: u32, answer: &Answer) -> Vec<String> {
    vec![format!("[reply {number}: {answer:?}]")]
}
