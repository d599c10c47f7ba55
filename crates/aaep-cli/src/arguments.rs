//! What can be typed. These texts are heard, so they are short sentences.

use std::path::PathBuf;

use aaep_agent::RiskLevel;
use aaep_types::Limits;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Consent and hearing for AI agents: AAEP, the Agent Accessibility Event Protocol.
#[derive(Debug, Parser)]
#[command(name = "aaep", version, propagate_version = true, color = clap::ColorChoice::Never)]
#[command(after_help = "\
The command ends with 0 if all is good, 1 if it found something wrong, and 2 if it could not run.

Examples:
  aaep validate events.jsonl
  aaep check stream.jsonl
  aaep capture --out stream.jsonl
  aaep replay stream.jsonl
  aaep inspect stream.jsonl
  aaep schema --out schemas
  aaep policy explain bank.transfer '{\"amount\": 5}'
  aaep demo
  aaep hub
  aaep listen
  aaep status
  aaep ask \"Delete the build?\" && rm -r build
  aaep policy explain \"rm -rf build\"
  aaep guard claude")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Validate(ValidateOptions),
    Check(CheckOptions),
    Conformance(crate::conformance::ConformanceOptions),
    Capture(crate::capture::CaptureOptions),
    Inspect(crate::inspect::InspectOptions),
    Replay(crate::replay::ReplayOptions),
    Schema(SchemaOptions),
    Policy(crate::policy::PolicyOptions),
    Hub(HubOptions),
    Demo(DemoOptions),
    Ask(AskOptions),
    Listen(crate::listen::ListenOptions),
    Login(crate::login::LoginOptions),
    Logout(crate::login::LogoutOptions),
    Stdio(crate::bridge::StdioOptions),
    Status(StatusOptions),
    Audit(AuditOptions),
    Admin(crate::admin::AdminOptions),
    Manifest(crate::manifest::ManifestOptions),
    Token(crate::token::TokenOptions),
    Presence(crate::presence::PresenceOptions),
    Guard(crate::guard::GuardOptions),
    Hook(crate::hook::HookOptions),
    Mcp(crate::mcp::McpOptions),
    Acp(crate::acp::AcpOptions),
    Doctor(crate::doctor::DoctorOptions),
    Completions(crate::manual::CompletionsOptions),
    Man(crate::manual::ManOptions),
}

/// Start a hub with an agent to talk to, for trying out.
///
/// It listens on 127.0.0.1:8707 and says how to hear it, talk with it and answer it.
/// Anyone on this machine can. Nothing that its agent does is real.
#[derive(Args, Debug)]
#[command(after_help = "\
It runs until it is stopped (Ctrl-C, or SIGTERM).
With --say it says something to a demo that runs, tells what is heard, and takes answers from the terminal.

Examples:
  aaep demo
  aaep demo --say \"transfer 20 euros to Ann\"
  aaep demo --say help")]
pub(crate) struct DemoOptions {
    /// Say this to a demo that runs, and hear the answer.
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    /// The demo to talk with, for --say.
    #[arg(long, value_name = "URL", requires = "say")]
    pub(crate) hub: Option<String>,
    /// Believe whatever listens on a loopback address, for --say.
    #[arg(long, requires = "say")]
    pub(crate) trust_loopback: bool,
    /// Listen on this address, such as 127.0.0.1:8707. May be given several times.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<std::net::SocketAddr>,
    /// Keep everything in this directory. Without it: aaep-demo in your data directory.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "say")]
    pub(crate) data: Option<PathBuf>,
    /// Keep nothing: forget everything at the end.
    #[arg(long, conflicts_with = "say")]
    pub(crate) ephemeral: bool,
    /// Read this configuration file.
    #[arg(long, value_name = "FILE", conflicts_with = "say")]
    pub(crate) config: Option<PathBuf>,
    /// Do nothing for the published conformance suite. See docs/guests.md.
    #[arg(long, conflicts_with = "say")]
    pub(crate) strict: bool,
}

/// Ask for consent from a script, and end with the answer.
///
/// The question goes to the hub on this machine, and from there to everybody who listens.
/// Silence is never a yes.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 if somebody said yes, 1 if somebody said no, 3 if nobody answered in time,
and 2 if nobody could be asked.

The hub is --hub, else AAEP_URL, else the one on a socket of yours (the demo's too), else the address
of the configuration, else http://127.0.0.1:8707/aaep/v1. A socket is named by unix: and its path.
Nobody is asked through a program of another user; where nobody can tell, use the socket or https.
The token is in --token-file, else in AAEP_TOKEN, else in the file AAEP_TOKEN_FILE.

Examples:
  aaep ask \"Delete the build?\" && rm -r build
  aaep ask \"Restart the server?\" --consequence \"It is gone for a minute.\" --undone yes --risk medium
  aaep ask \"Deploy?\" --timeout 60 --json")]
pub(crate) struct AskOptions {
    /// What is about to happen, in a sentence.
    #[arg(value_name = "QUESTION")]
    pub(crate) question: String,
    /// What comes of it.
    #[arg(long, value_name = "TEXT")]
    consequence: Option<String>,
    /// The language of the question and of what comes of it, such as fr or yo-NG. Without it: English.
    #[arg(long, value_name = "LANGUAGE", requires = "consequence")]
    pub(crate) language: Option<String>,
    /// How much can go wrong.
    #[arg(long, value_enum, default_value_t = Risk::High)]
    pub(crate) risk: Risk,
    /// Whether it can be undone.
    #[arg(long, value_enum, default_value_t = Undone::No)]
    pub(crate) undone: Undone,
    /// Seconds to wait for an answer. Without it: 300, 120 or 60, by risk.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u32>,
    /// What exactly will be done, as JSON. Consent is bound to it.
    #[arg(long, value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// The name under which the script asks. It is said, and a policy may have rules for it.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The hub.
    #[arg(long, value_name = "URL")]
    pub(crate) hub: Option<String>,
    /// A file with the token of an agent.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust beside those of this machine, for a hub that signed its own.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// A certificate (PEM) to show to a hub that asks for one, with the rest of its chain.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Believe whatever listens on a loopback address. Any user of this machine can then say yes.
    #[arg(long)]
    pub(crate) trust_loopback: bool,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl AskOptions {
    /// Whether it can be undone is said anyway.
    pub(crate) fn consequence(&self) -> &str {
        self.consequence.as_deref().unwrap_or("The script does it as soon as you say yes.")
    }

    /// What a policy knows the script by.
    pub(crate) fn tool(&self) -> &str {
        self.name.as_deref().unwrap_or("script")
    }
}

/// Say in one line what waits for you: for a prompt, a status bar or a braille cell.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 if a hub answered, and with 2 if none did, or not all that you named.
The hubs and the token are found as by aaep listen. Nothing that an agent wrote is printed.

With --cell it prints one character: the number of requests that wait, + for more than nine,
a dot if nothing waits, ! if no hub answers.

Examples:
  aaep status
  PS1='$(aaep status --cell) $ '
  tmux set -g status-right '#(aaep status)'")]
pub(crate) struct StatusOptions {
    #[command(flatten)]
    pub(crate) hubs: crate::listen::HubsOptions,
    /// Print one character.
    #[arg(long, conflicts_with = "json")]
    pub(crate) cell: bool,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Your languages, such as ar or zh-CN, the first first. Without it: the one of the system.
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',')]
    pub(crate) language: Vec<String>,
}

/// How much can go wrong.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Risk {
    Low,
    Medium,
    High,
}

impl From<Risk> for RiskLevel {
    fn from(risk: Risk) -> Self {
        match risk {
            Risk::Low => RiskLevel::Low,
            Risk::Medium => RiskLevel::Medium,
            Risk::High => RiskLevel::High,
        }
    }
}

/// Whether something can be undone.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Undone {
    Yes,
    WithEffort,
    No,
}

/// Verify and export the record of what was asked, answered and done.
#[derive(Args, Debug)]
pub(crate) struct AuditOptions {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    Verify(VerifyOptions),
    Export(ExportOptions),
    Erase(EraseOptions),
}

/// Which hub's journal.
#[derive(Args, Debug)]
pub(crate) struct JournalOptions {
    /// The hub's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
    /// The hub's configuration file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Look at a node's copy of a cluster's log instead, which was written with the key in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster_key: Option<PathBuf>,
}

/// Look at every record: is it as it was written, and is none missing? Names the first that is not.
///
/// The hub may go on working.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 if the record is whole, 1 if something was changed or taken away, 2 if it cannot be read or
the journal's key is not there: then nobody can tell its records from forged ones.

Examples:
  aaep audit verify
  aaep audit verify --data /var/lib/aaep --json
  aaep audit verify --file backup.db --key 0f3a.key")]
pub(crate) struct VerifyOptions {
    #[command(flatten)]
    pub(crate) place: JournalOptions,
    /// Verify this file, such as a backup, and not the hub's journal. Where it should end is not known.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The journal's key. Without this it is looked for in the state directory.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Erase what is kept about a person. Stop the hub, or say --running.
///
/// Without --confirm it says what it would do, and changes nothing. Sessions that are open, or ended less
/// than a day ago, stay.
#[derive(Args, Debug)]
#[command(after_help = "\
The numbers and the hashes of the records stay, so the rest can still be verified. That records were
erased, how many and when, is a record of its own; whose they were is not in it.
Backups that were made before still hold them.

With --running the hub does it and goes on working. It is --hub, else AAEP_URL, else the one on this
machine; the token of an administrator is found as by aaep admin. The copy then holds everything that
is kept about the person, also what stays.

Examples:
  aaep audit erase --user ann
  aaep audit erase --user ann --running --export ann.jsonl --confirm
  aaep audit erase --user ann --export ann.jsonl --note \"request 7\" --confirm")]
pub(crate) struct EraseOptions {
    #[command(flatten)]
    pub(crate) place: JournalOptions,
    /// Whose records.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: String,
    /// Write them to this file first, as JSON Lines. It must not be there yet.
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// Keep no copy of them.
    #[arg(long, conflicts_with = "export")]
    pub(crate) without_export: bool,
    /// Words for the record of the erasure, such as the number of the person's request. They stay: do not
    /// name the person.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) note: String,
    /// Erase them.
    #[arg(long)]
    pub(crate) confirm: bool,
    /// Let the hub do it while it works. Needs the token of an administrator.
    #[arg(long)]
    pub(crate) running: bool,
    /// The hub.
    #[arg(long, value_name = "URL", requires = "running")]
    pub(crate) hub: Option<String>,
    /// A file with the token of an administrator.
    #[arg(long, value_name = "FILE", requires = "running")]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust beside those of this machine.
    #[arg(long, value_name = "FILE", requires = "running")]
    pub(crate) ca: Option<PathBuf>,
}

/// How records are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// A JSON object on each line, with everything.
    #[default]
    Jsonl,
    /// For spreadsheets: a line for each record, without what was announced.
    Csv,
}

/// Print records as JSON Lines or CSV: requests, answers, also those that did not count, and what was done.
///
/// Times are a day, 2026-05-24, or a time, 2026-05-24T14:00:00Z.
#[derive(Args, Debug)]
#[command(after_help = "\
Kinds: opened, asked, extended, resolved, expired, invoked, called, completed, ended, ignored,
flooded, claimed, administered, owed, restarted, erased. A line of the kind gap stands for records
that were erased.

Examples:
  aaep audit export --kind resolved --since 2026-05-01
  aaep audit export --agent bank-agent --user ann
  aaep audit export --user ann --format csv > ann.csv")]
pub(crate) struct ExportOptions {
    #[command(flatten)]
    pub(crate) place: JournalOptions,
    /// Written at this time or later.
    #[arg(long, value_name = "TIME", value_parser = crate::audit::time)]
    pub(crate) since: Option<aaep_types::Timestamp>,
    /// Written before this time.
    #[arg(long, value_name = "TIME", value_parser = crate::audit::time)]
    pub(crate) until: Option<aaep_types::Timestamp>,
    /// Of sessions of this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Of sessions of this user.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Of this kind. May be given several times.
    #[arg(long, value_name = "KIND", value_parser = clap::builder::PossibleValuesParser::new(aaep_store::KINDS))]
    pub(crate) kind: Vec<String>,
    /// How they are printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ExportFormat,
}

/// Run the hub: agents ask on one side, people hear and answer on the other.
///
/// Without options it listens on 127.0.0.1:8707 and on a Unix socket of your user.
/// It reads aaep.toml in your configuration directory, if it is there.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
It runs until it is stopped (Ctrl-C, or SIGTERM): then it takes nothing new, and what runs comes to its end.
SIGHUP reads principals, policy and certificates again.

Examples:
  aaep hub
  aaep hub init --dir ~/aaep --host hub.example.org
  aaep hub --config ~/aaep/aaep.toml
  aaep hub --print-config")]
pub(crate) struct HubOptions {
    #[command(subcommand)]
    pub(crate) command: Option<HubCommand>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    /// Print the configuration in force, and end.
    #[arg(long)]
    pub(crate) print_config: bool,
}

/// How a hub is run.
#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    /// Listen on this address, such as 127.0.0.1:8707. May be given several times.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<std::net::SocketAddr>,
    /// Listen on this address for gRPC, such as 127.0.0.1:8708. May be given several times.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) grpc: Vec<std::net::SocketAddr>,
    /// Keep everything in this directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
    /// Keep nothing: forget everything at the end.
    #[arg(long)]
    pub(crate) ephemeral: bool,
    /// Ask before tools run as this policy file says.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Humour the published conformance suite. See docs/guests.md.
    #[arg(long)]
    pub(crate) compat: bool,
    /// Read this configuration file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Be one node of a cluster whose log is in this store: postgres://… or nats://…, or @FILE, a file
    /// that only you may read with the address in it. See docs/cluster.md.
    #[arg(long, value_name = "URL", requires_all = ["cluster_key", "cluster_address"])]
    pub(crate) cluster: Option<String>,
    /// The cluster's key: a file of 64 random bytes, the same on every node.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) cluster_key: Option<PathBuf>,
    /// Where other nodes reach the hub of this one, such as 10.0.0.1:8708.
    #[arg(long, value_name = "ADDRESS", requires = "cluster")]
    pub(crate) cluster_address: Option<std::net::SocketAddr>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HubCommand {
    Init(InitOptions),
    Backup(BackupOptions),
    Migrate(MigrateOptions),
}

/// Give a journal its key: one from before journals had keys, or one whose key is lost.
///
/// Says what it finds. With --confirm you say that what is in the journal is to be believed: it is then
/// bound by a key in the state directory, and nobody who can write only the data directory can change
/// it unseen. The hub must not run.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 if there is nothing left to do, 1 if it waits for --confirm, 2 if it cannot be done.

Examples:
  aaep hub migrate
  aaep hub migrate --confirm
  aaep hub migrate --data /var/lib/aaep --confirm")]
pub(crate) struct MigrateOptions {
    #[command(flatten)]
    pub(crate) place: JournalOptions,
    /// Believe what is in the journal, and do it.
    #[arg(long)]
    pub(crate) confirm: bool,
}

/// Copy the journal into a new file, also while the hub works.
///
/// The copy is one SQLite file. A hub that is started from it rejects what waits in it: nobody knows
/// what was decided since.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  aaep hub backup journal-2026-05-24.db
  aaep hub backup --data /var/lib/aaep /backup/journal.db")]
pub(crate) struct BackupOptions {
    /// The new file. One that is there stays as it is.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: JournalOptions,
}

/// Make a safe configuration in one step: tokens, a certificate for trying out, aaep.toml.
#[derive(Args, Debug)]
pub(crate) struct InitOptions {
    /// Where to make it. Nothing that is there is changed. Without it: your configuration directory, where
    /// `aaep hub` finds it by itself.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,
    /// A name or address under which others reach the hub. May be given several times.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
}

/// Judge single messages. Say what is wrong, where, and what to change.
///
/// A file holds messages one after the other, on one line or many, or one array of messages.
/// Files may be larger than memory.
#[derive(Args, Debug)]
#[command(after_help = "\
Warnings alone end with 0. An input without any message ends with 2.

Examples:
  aaep validate events.jsonl
  aaep validate --json *.json
  my-agent | aaep validate")]
pub(crate) struct ValidateOptions {
    /// Files to read. Without any, or for -, standard input is read.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print one line of JSON for each message.
    #[arg(long)]
    pub(crate) json: bool,
    /// Judge exactly as the published schemas do.
    #[arg(long)]
    pub(crate) schema: bool,
    /// Print nothing. The exit status says it all.
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Skip messages larger than this, and say so.
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_bytes)]
    pub(crate) max_bytes: usize,
}

/// Judge whole streams: order, pairing, consent, secrets.
///
/// A file holds what one subscriber received, in the order of arrival, as in `aaep validate`.
/// Each file is a stream of its own.
#[derive(Args, Debug)]
#[command(after_help = "\
Warnings and notes alone end with 0. An input without any message ends with 2.

Examples:
  aaep check stream.jsonl
  aaep check --complete --json stream.jsonl
  aaep check --profile medical.json stream.jsonl
  my-agent | aaep check")]
pub(crate) struct CheckOptions {
    /// Files to read. Without any, or for -, standard input is read.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Nothing was left out of the stream, so whatever is missing is an error.
    #[arg(long)]
    pub(crate) complete: bool,
    /// Check the rules of this profile too: a JSON file.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Print one line of JSON for each finding.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print our JSON Schemas, or write them all to a folder.
#[derive(Args, Debug)]
#[command(after_help = "\
Without a name, all schemas are printed as one JSON object, keyed by path.

Examples:
  aaep schema --list
  aaep schema core/agent.tool.invoked
  aaep schema aaep:agent.tool.invoked
  aaep schema --out schemas
  aaep schema --bundle --out schemas")]
pub(crate) struct SchemaOptions {
    /// A schema, such as `envelope`, or a message type.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Write all schemas to this folder, in the published layout.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "list"])]
    pub(crate) out: Option<PathBuf>,
    /// Make each schema complete in itself, for tools that do not resolve references between files.
    #[arg(long)]
    pub(crate) bundle: bool,
    /// Print the names of all schemas, one on each line.
    #[arg(long, conflicts_with = "name")]
    pub(crate) list: bool,
    /// Print the description of the hub's HTTP API (OpenAPI), as a hub gives it at /openapi.json.
    #[arg(long, conflicts_with_all = ["name", "out", "bundle", "list"])]
    pub(crate) openapi: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_fit_together_and_each_command_says_what_it_does() {
        let command = Arguments::command();
        command.clone().debug_assert();
        for part in command.get_subcommands() {
            assert!(part.get_about().is_some(), "{}", part.get_name());
        }
    }
}
