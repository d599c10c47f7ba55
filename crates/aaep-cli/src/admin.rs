//! `aaep admin`: administering a hub while it runs.

use std::io::{self, Write};
use std::path::PathBuf;

use aaep_transport::client::{ClientError, FullResponse, HttpClient, Options, Token};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::discovery;
use crate::exit::{self, Exit};
use crate::lines::{Plain, Visible};

/// Look after a hub that runs: agent ids, sessions, who may come in, lost PINs. Needs the token of an administrator.
///
/// Everything that is changed here is in the audit: aaep audit export --kind administered.
#[derive(Args, Debug)]
#[command(after_help = "\
The hub is --hub, else AAEP_URL, else the one on this machine. The token is in --token-file, else in
AAEP_TOKEN, else in the file AAEP_TOKEN_FILE, else the one that aaep hub init made for an administrator.

Examples:
  aaep admin agents
  aaep admin release cook
  aaep admin hand-over cook kitchen-2
  aaep admin sessions
  aaep admin end sess_0123456789abcdef0123456789abcdef
  aaep admin deny tablet
  aaep admin reset-presence ann")]
pub(crate) struct AdminOptions {
    #[command(subcommand)]
    command: AdminCommand,
    /// The hub.
    #[arg(long, value_name = "URL", global = true)]
    hub: Option<String>,
    /// A file with the token of an administrator.
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust beside those of this machine, for a hub that signed its own.
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
    /// Print what is listed as one line of JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum AdminCommand {
    /// List the agent ids that belong to somebody.
    Agents,
    /// Free an agent id: the next agent that speaks under it has it.
    Release {
        /// The id.
        agent_id: String,
    },
    /// Give an agent id to another agent.
    HandOver {
        /// The id.
        agent_id: String,
        /// The principal that shall have it.
        to: String,
        /// Its user, where the hub knows it by an issuer only.
        #[arg(long)]
        user: Option<String>,
    },
    /// List the sessions that are open.
    Sessions,
    /// Shut a principal out at once, whatever it shows.
    Deny {
        /// The principal.
        name: String,
    },
    /// Let a principal in again that was shut out.
    Allow {
        /// The principal.
        name: String,
    },
    /// Remove the PIN and the passkeys of somebody who lost them; everybody who listens for them hears it.
    ResetPresence {
        /// The user.
        user: String,
    },
    /// End a session: what it asked for dies, and its agent is told.
    End {
        /// The session.
        session: String,
    },
}

pub(crate) fn run(options: &AdminOptions, out: &mut impl Write) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(administer(options)) {
        Ok(lines) => {
            for line in lines {
                writeln!(out, "{line}")?;
            }
            Ok(Exit::Good)
        }
        Err(why) => {
            exit::say(&Plain(&why).to_string());
            Ok(Exit::Unable)
        }
    }
}

async fn administer(options: &AdminOptions) -> Result<Vec<String>, String> {
    let client = client(&options.hub, &options.token_file, &options.ca)?;
    Ok(match &options.command {
        AdminCommand::Agents => {
            let body = get(&client, "admin/agents").await?;
            listed(options, &body, "agents", |agent| {
                let (id, principal, user) =
                    (text(agent, "agent_id"), text(agent, "principal"), text(agent, "user"));
                format!("{id}: {principal} of {user}, {}", sessions(&agent["sessions"]))
            })
        }
        AdminCommand::Sessions => {
            let body = get(&client, "admin/sessions").await?;
            listed(options, &body, "sessions", |session| {
                let (id, principal) = (text(session, "session_id"), text(session, "principal"));
                format!("{id}: {principal} of {}", text(session, "user"))
            })
        }
        AdminCommand::Release { agent_id } => {
            post(&client, "admin/agents/release", &json!({ "agent_id": agent_id })).await?;
            vec![format!("{} belongs to nobody now.", Plain(agent_id))]
        }
        AdminCommand::HandOver { agent_id, to, user } => {
            let mut wanted = json!({ "agent_id": agent_id, "to": to });
            if let Some(user) = user {
                wanted["user"] = user.as_str().into();
            }
            post(&client, "admin/agents/hand-over", &wanted).await?;
            vec![format!("{} belongs to {} now.", Plain(agent_id), Plain(to))]
        }
        AdminCommand::Deny { name } => {
            post(&client, "admin/deny", &json!({ "name": name })).await?;
            vec![format!("{} is shut out, whatever it shows.", Plain(name))]
        }
        AdminCommand::Allow { name } => {
            post(&client, "admin/allow", &json!({ "name": name })).await?;
            vec![format!("{} is let in again.", Plain(name))]
        }
        AdminCommand::ResetPresence { user } => {
            post(&client, "admin/presence/reset", &json!({ "user": user })).await?;
            vec![format!(
                "{} has neither a PIN nor a passkey now. Until they set one, nobody can say yes to what needs it.",
                Plain(user)
            )]
        }
        AdminCommand::End { session } => {
            if !session.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("{session} is no session. `aaep admin sessions` lists them."));
            }
            post(&client, &format!("admin/sessions/{session}/end"), &json!({})).await?;
            vec![format!("{session} was ended.")]
        }
    })
}

/// A client of the hub, with the token of an administrator.
pub(crate) fn client(
    hub: &Option<String>,
    token_file: &Option<PathBuf>,
    ca: &Option<PathBuf>,
) -> Result<HttpClient, String> {
    let found = discovery::hub(hub.as_deref())?;
    let made = || {
        let directory = aaep_transport::discovery::configuration()?;
        aaep_transport::discovery::made_token(&directory, "admin")
    };
    let token = discovery::token(token_file.as_deref())?.or_else(made);
    let token = token.ok_or(
        "There is no token of an administrator. Name it with --token-file; `aaep token new NAME --role admin` makes one.",
    )?;
    let token = Token::parse(token.trim()).map_err(|error| error.to_string())?;
    let extra_roots_pem = discovery::certificates(ca.as_deref())?.or(found.certificate);
    let client_options = Options { token: Some(token), extra_roots_pem, ..Options::default() };
    discovery::client(&found.url, client_options).map_err(|error| error.to_string())
}

async fn get(client: &HttpClient, path: &str) -> Result<Value, String> {
    let answer = good(client.get(path).await)?;
    serde_json::from_slice(&answer.body).map_err(|_| "The hub's answer cannot be read.".into())
}

async fn post(client: &HttpClient, path: &str, body: &Value) -> Result<(), String> {
    good(client.post(path, body.to_string()).await).map(drop)
}

pub(crate) fn good(answer: Result<FullResponse, ClientError>) -> Result<FullResponse, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status.is_success() {
        return Ok(answer);
    }
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    Err(match said["text"].as_str() {
        Some(text) => text.to_owned(),
        None => format!("The hub answered {}.", answer.status),
    })
}

fn listed(
    options: &AdminOptions,
    body: &Value,
    name: &str,
    line: impl Fn(&Value) -> String,
) -> Vec<String> {
    if options.json {
        return vec![Visible(&body.to_string()).to_string()];
    }
    let all = body[name].as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return vec!["There are none.".into()];
    }
    all.iter().map(line).collect()
}

fn text(of: &Value, name: &str) -> String {
    Plain(of[name].as_str().unwrap_or_default()).to_string()
}

fn sessions(count: &Value) -> String {
    match count.as_u64().unwrap_or(0) {
        0 => "no open session".into(),
        1 => "1 open session".into(),
        count => format!("{count} open sessions"),
    }
}
