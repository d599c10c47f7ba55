//! Programs that call us before a tool runs: how they speak, and how they want to be answered.

mod answer;
mod input;

use std::time::Duration;

pub use answer::{HookAnswer, Reply};
pub use input::{Call, Event, Incoming, MAX_INPUT_BYTES, Unreadable};

/// A program with hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Host {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// Kimi Code.
    Kimi,
    /// GitHub Copilot CLI.
    Copilot,
    /// Cline.
    Cline,
    /// opencode, through our plugin.
    Opencode,
}

impl Host {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::Kimi,
        Self::Copilot,
        Self::Cline,
        Self::Opencode,
    ];

    /// Its short name, such as `claude`.
    pub fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Kimi => "kimi",
            Self::Copilot => "copilot",
            Self::Cline => "cline",
            Self::Opencode => "opencode",
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Qwen => "Qwen Code",
            Self::Kimi => "Kimi Code",
            Self::Copilot => "Copilot",
            Self::Cline => "Cline",
            Self::Opencode => "opencode",
        }
    }

    /// The program of this short name.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|host| host.id() == id)
    }

    /// How long it waits for a hook unless it is told otherwise. Afterwards most of them run the tool.
    pub fn usual_timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Claude | Self::Codex | Self::Opencode => 600,
            Self::Gemini | Self::Qwen | Self::Cline => 60,
            Self::Kimi | Self::Copilot => 30,
        })
    }

    /// Whether it asks in its own dialog when a hook says so, and takes it as a "no" where it has no
    /// terminal. The others run the tool, or stop.
    pub fn has_dialog(self) -> bool {
        matches!(self, Self::Claude | Self::Qwen | Self::Copilot)
    }

    /// Whether it says afterwards how a tool ended.
    pub(crate) fn tells_ends(self) -> bool {
        self != Self::Cline
    }
}

/// How long we take at most, if the program waits for this long: we have to be first.
pub fn own_time(host_waits: Duration) -> Duration {
    let margin = (host_waits / 10).clamp(Duration::from_secs(1), Duration::from_secs(10));
    host_waits.saturating_sub(margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_answer_before_the_program_gives_up() {
        for host in Host::ALL {
            assert!(own_time(host.usual_timeout()) < host.usual_timeout());
            assert_eq!(Host::parse(host.id()), Some(host));
        }
        assert_eq!(own_time(Duration::from_secs(30)), Duration::from_secs(27));
        assert_eq!(own_time(Duration::ZERO), Duration::ZERO);
    }
}
