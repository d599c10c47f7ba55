//! Doors: programs that are driven over a protocol that fails closed, in place of their hooks.
//!
//! Some programs speak the Agent Client Protocol themselves. Before the others stands a door: to
//! [`crate::acp`] it is an agent of that protocol, to the program it speaks the program's own.
//!
//! | program | what it speaks |
//! |---|---|
//! | Claude Code | JSON lines, with questions as control requests: `claude` |
//! | Codex | its app-server: `codex` |
//! | the others | the Agent Client Protocol |
//!
//! opencode's own server would do as well, but on a port of the machine: whatever runs as the same user
//! could answer its questions, the agent's own commands included.

mod claude;
mod client;
mod codex;

use std::io;
use std::path::PathBuf;

use tokio::io::{AsyncBufRead, AsyncWrite};

use crate::host::Host;

/// How a program is started so that it asks over a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// What is written behind the program's name.
    pub arguments: Vec<String>,
    /// What is set in its environment.
    pub environment: Vec<(&'static str, String)>,
}

/// A program that asks over a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Door(Host);

/// What opencode asks about: everything but looking.
const OPENCODE_ASKS: &str = r#"{"permission":{"*":"ask","read":"allow","list":"allow","glob":"allow","grep":"allow","todoread":"allow","todowrite":"allow"}}"#;

impl Door {
    /// Programs that have one.
    pub const ALL: [Self; 7] = [
        Self(Host::Claude),
        Self(Host::Codex),
        Self(Host::Gemini),
        Self(Host::Opencode),
        Self(Host::Copilot),
        Self(Host::Qwen),
        Self(Host::Kimi),
    ];

    /// The door of this program, if it has one.
    pub fn of(host: Host) -> Option<Self> {
        Self::ALL.into_iter().find(|door| door.0 == host)
    }

    /// The program.
    pub fn host(self) -> Host {
        self.0
    }

    /// What the program speaks, for people.
    pub fn protocol(self) -> &'static str {
        match self.0 {
            Host::Claude => "its permission protocol over standard input and output",
            Host::Codex => "its app-server",
            _ => "the Agent Client Protocol",
        }
    }

    /// How it is started; an earlier session is taken up again if it is named here.
    pub fn start(self, earlier: Option<&str>) -> Start {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let mut start = Start { arguments: Vec::new(), environment: Vec::new() };
        match self.0 {
            Host::Claude => {
                start.arguments = words(&[
                    "-p",
                    "--input-format",
                    "stream-json",
                    "--output-format",
                    "stream-json",
                    "--verbose",
                    "--permission-prompt-tool",
                    "stdio",
                    "--permission-mode",
                    "default",
                ]);
                if let Some(earlier) = earlier {
                    start.arguments.extend(["--resume".to_owned(), earlier.to_owned()]);
                }
            }
            Host::Codex => start.arguments = words(&["app-server"]),
            Host::Opencode => {
                start.arguments = words(&["acp"]);
                start.environment = vec![("OPENCODE_CONFIG_CONTENT", OPENCODE_ASKS.to_owned())];
            }
            Host::Copilot => {
                start.arguments = words(&["--acp"]);
                // The environment may say that nothing is asked.
                start.environment = vec![("COPILOT_ALLOW_ALL", "false".to_owned())];
            }
            Host::Kimi => start.arguments = words(&["acp"]),
            _ => start.arguments = words(&["--acp"]),
        }
        start
    }

    /// Whether the program speaks the Agent Client Protocol itself.
    pub fn speaks_acp(self) -> bool {
        !matches!(self.0, Host::Claude | Host::Codex)
    }

    /// Stands between a client of the Agent Client Protocol and the program, until one of them goes
    /// away. Not for programs that speak it themselves.
    pub async fn run(
        self,
        home: Option<PathBuf>,
        from_client: impl AsyncBufRead + Unpin,
        to_client: impl AsyncWrite + Unpin + Send + 'static,
        from_program: impl AsyncBufRead + Unpin,
        to_program: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let wires = client::Wires::new(to_client, to_program);
        match self.0 {
            Host::Codex => {
                let codex = codex::Codex::new(wires);
                client::carry(codex, from_client, from_program).await
            }
            _ => {
                let claude = claude::Claude::new(wires, home);
                client::carry(claude, from_client, from_program).await
            }
        }
    }
}
