//! Whom the suite speaks with, and what it says to make things happen.

use std::time::Duration;

use aaep_transport::client::{HttpClient, Options, Token};

/// A producer, and how it is spoken with: `GET {url}/events` and `POST {url}/messages`.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its address, such as `http://127.0.0.1:8707/aaep/v1`.
    pub url: String,
    /// The level to check, 1 or 2.
    pub level: u8,
    /// The token of somebody who may answer, if one is needed.
    pub token: Option<String>,
    /// The token of somebody who may not.
    pub stranger: Option<String>,
    /// Believe whatever listens on a loopback address.
    pub trust_loopback: bool,
    /// What to say.
    pub texts: Texts,
    /// How long nothing has to happen before nothing counts as having happened.
    pub quiet: Duration,
    /// How long to wait for something that should happen.
    pub patience: Duration,
    /// How long the whole run may take.
    pub deadline: Duration,
}

/// What a user says to make the target do something, sent as `{"kind":"user_input","text":…}`.
#[derive(Clone, Debug)]
pub struct Texts {
    /// Use a tool that needs no consent.
    pub tool: String,
    /// Ask for consent to something that cannot be undone.
    pub confirm: String,
    /// The same, with a timeout of a few seconds.
    pub short: String,
    /// Ask a question.
    pub clarify: String,
    /// Stream some text.
    pub stream: String,
    /// End with an error.
    pub fail: String,
    /// Give up.
    pub cancel: String,
    /// Tell how far it is.
    pub progress: String,
}

impl Default for Texts {
    /// What `aaep demo` and the reference producer understand.
    fn default() -> Self {
        Self {
            tool: "balance".into(),
            confirm: "transfer 20 euros to Ann".into(),
            short: "transfer 20 euros to Ann, and wait for 1 second".into(),
            clarify: "ask me something".into(),
            stream: "three sentences".into(),
            fail: "fail".into(),
            cancel: "give up".into(),
            progress: "a long job".into(),
        }
    }
}

impl Target {
    /// A target without credentials, with the usual patience.
    pub fn new(url: &str, level: u8) -> Self {
        Self {
            url: url.into(),
            level,
            token: None,
            stranger: None,
            trust_loopback: false,
            texts: Texts::default(),
            quiet: Duration::from_millis(400),
            patience: Duration::from_secs(10),
            deadline: Duration::from_secs(120),
        }
    }

    pub(super) fn client(&self, token: Option<&str>) -> Result<HttpClient, String> {
        let token = token.map(Token::parse).transpose().map_err(|error| error.to_string())?;
        let options = Options {
            token,
            trust_loopback: self.trust_loopback,
            connect: self.patience,
            answer: self.patience,
            silence: self.deadline,
            ..Options::default()
        };
        HttpClient::new(&self.url, options).map_err(|error| error.to_string())
    }
}
