//! Whom the suite speaks with, and what it does to make things happen.

use std::time::Duration;

use aaep_types::profile::Profile;

/// A producer, and how it is spoken with.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its address: `http://127.0.0.1:8707/aaep/v1`, `ws://127.0.0.1:8707/aaep/v1/ws`,
    /// `grpc://127.0.0.1:8708`, `unix:/run/user/1000/aaep/aaep-hub.sock` or `stdio:` and a command.
    pub url: String,
    /// The level to check, 1 to 3.
    pub level: u8,
    /// How a session is begun.
    pub start: Start,
    /// Where sessions are begun and manifests are, if it is not where events come from: an HTTP address.
    pub control: Option<String>,
    /// The token of somebody who may answer, if one is needed.
    pub token: Option<String>,
    /// The token of somebody who may not.
    pub stranger: Option<String>,
    /// Where somebody comes in who may not, if not at `url`: everybody on a socket is the same user.
    pub stranger_url: Option<String>,
    /// Believe whatever listens on a loopback address.
    pub trust_loopback: bool,
    /// What to say.
    pub texts: Texts,
    /// A profile whose rules are checked besides (§7.10).
    pub profile: Option<Profile>,
    /// How long nothing has to happen before nothing counts as having happened.
    pub quiet: Duration,
    /// How long to wait for something that should happen.
    pub patience: Duration,
    /// How long the whole run may take.
    pub deadline: Duration,
}

/// How the target is made to begin a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// A text of [`Texts`] is said to it, as `{"kind":"user_input","text":…}`.
    UserInput,
    /// The text is posted to `sessions` as `{"user_message":…}`, as published producers have it.
    Sessions,
    /// The suite is the agent: it opens sessions over the agent API of a hub, with this token or a
    /// session secret.
    AgentApi {
        /// The token of an agent, if one is needed.
        token: Option<String>,
    },
    /// Nothing is done: somebody else makes it do things.
    Wait,
}

/// Something that a session should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Use a tool that needs no consent.
    Tool,
    /// Ask for consent to something that cannot be undone.
    Confirm,
    /// The same, with a timeout of a few seconds.
    Short,
    /// Ask for consent, and take the question back.
    Withdraw,
    /// Ask a question.
    Clarify,
    /// Stream some text.
    Stream,
    /// End with an error.
    Fail,
    /// Give up.
    Cancel,
    /// Tell how far it is.
    Progress,
    /// Say a lot in a short time.
    Flood,
}

impl Script {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Tool,
        Self::Confirm,
        Self::Short,
        Self::Withdraw,
        Self::Clarify,
        Self::Stream,
        Self::Fail,
        Self::Cancel,
        Self::Progress,
        Self::Flood,
    ];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Confirm => "confirm",
            Self::Short => "short",
            Self::Withdraw => "withdraw",
            Self::Clarify => "clarify",
            Self::Stream => "stream",
            Self::Fail => "fail",
            Self::Cancel => "cancel",
            Self::Progress => "progress",
            Self::Flood => "flood",
        }
    }
}

/// What a user says for each [`Script`].
#[derive(Clone, Debug)]
pub struct Texts([String; Script::ALL.len()]);

impl Default for Texts {
    /// What `aaep demo` and the reference producer understand.
    fn default() -> Self {
        Self(
            Script::ALL
                .iter()
                .map(|script| usual(*script).to_owned())
                .collect::<Vec<_>>()
                .try_into()
                .unwrap_or_default(),
        )
    }
}

fn usual(script: Script) -> &'static str {
    match script {
        Script::Tool => "balance",
        Script::Confirm => "transfer 20 euros to Ann",
        Script::Short => "transfer 20 euros to Ann, and wait for 1 second",
        Script::Withdraw => "transfer 20 euros to Ann, and take it back",
        Script::Clarify => "ask me something",
        Script::Stream => "three sentences",
        Script::Fail => "fail",
        Script::Cancel => "give up",
        Script::Progress => "a long job",
        Script::Flood => "help",
    }
}

impl Texts {
    /// What is said for this.
    pub fn of(&self, script: Script) -> &str {
        &self.0[script as usize]
    }

    /// Says something else for this.
    pub fn set(&mut self, script: Script, text: &str) {
        text.clone_into(&mut self.0[script as usize]);
    }
}

impl Target {
    /// A target without credentials, with the usual patience.
    pub fn new(url: &str, level: u8) -> Self {
        Self {
            url: url.into(),
            level,
            start: Start::UserInput,
            control: None,
            token: None,
            stranger: None,
            stranger_url: None,
            trust_loopback: false,
            texts: Texts::default(),
            profile: None,
            quiet: Duration::from_millis(400),
            patience: Duration::from_secs(10),
            deadline: Duration::from_secs(120),
        }
    }
}
