//! `aaep presence`: the PIN with which a person shows that it is really them who say yes.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use aaep_hub::config::{Config, Flags, Surroundings, load};
use aaep_hub::passkey::{is_any_registered, registered};
use aaep_hub::{Fault, PinFile, start};
use aaep_transport::client::{HttpClient, Options, Token};
use aaep_types::Presence;
use aaep_types::json::Writer;
use aaep_types::presence::Pin;
use clap::{Args, Subcommand};

use crate::discovery;
use crate::exit::{self, Exit};
use crate::lines::Plain;

/// Set, show or remove the PIN that a yes to something grave needs.
///
/// An agent that runs as you can open the hub's socket and answer for you. It does not know your PIN.
/// Once one is set, a yes to what is of high risk and cannot be undone counts only where it was typed.
#[derive(Args, Debug)]
#[command(after_help = "\
The PIN is typed where nothing is shown, or read from standard input; never from the command line or
the environment. A hub that runs takes it over at once, and tells everybody who listens.

Examples:
  aaep presence set
  aaep presence status
  aaep presence remove
  aaep presence set --hub https://hub.example/aaep/v1 --token-file ~/hub.token")]
pub(crate) struct PresenceOptions {
    #[command(subcommand)]
    command: PresenceCommand,
    /// The hub's configuration file. Without it: AAEP_CONFIG, or aaep.toml in your configuration directory.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// The hub's data directory, where it has no state directory of its own.
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// A hub on another machine, or whose files are another user's: the PIN is set over HTTP, for the user of the token.
    #[arg(long, value_name = "URL", global = true, conflicts_with_all = ["config", "data", "user"])]
    hub: Option<String>,
    /// A file with your token for that hub.
    #[arg(long, value_name = "FILE", global = true, requires = "hub")]
    token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust beside those of this machine, for a hub that signed its own.
    #[arg(long, value_name = "FILE", global = true, requires = "hub")]
    ca: Option<PathBuf>,
    /// Whose PIN; without a name, that of the user who connects without a token.
    #[arg(long, global = true, default_value = aaep_hub::access::LOCAL_USER)]
    user: String,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum PresenceCommand {
    /// Choose a PIN, or another one; that takes the old one.
    Set,
    /// Say whether there is one.
    Status,
    /// Forget it; that takes the PIN.
    Remove,
}

/// Why nothing was done.
enum Failure {
    Fault(Fault),
    Said(String),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Said(format!("The PIN cannot be read: {error}."))
    }
}

pub(crate) fn run(options: &PresenceOptions, out: &mut impl Write) -> io::Result<Exit> {
    let done = match options.command {
        command if options.hub.is_some() => there(options, command),
        PresenceCommand::Set => set(options),
        PresenceCommand::Status => status(options),
        PresenceCommand::Remove => remove(options),
    };
    match done {
        Ok(line) => writeln!(out, "{line}").map(|()| Exit::Good),
        Err(failure) => {
            exit::say(&match failure {
                Failure::Fault(fault) => fault.to_string(),
                Failure::Said(text) => text,
            });
            Ok(Exit::Unable)
        }
    }
}

/// What somebody who has no PIN yet should know, in a sentence.
pub(crate) const MISSING: &str = "No PIN is set: a program that runs as you could answer for you. Set one with: aaep presence set";

/// The same, with the reason, if this user had a hub here before.
pub(crate) fn missing() -> Option<String> {
    let loaded = load(&Flags::default(), &Surroundings::of_process().ok()?).ok()?;
    let file = PinFile::of(&loaded.config)?;
    file.path().parent().is_some_and(|directory| directory.is_dir()).then_some(())?;
    missing_for(&loaded.config)
}

/// What somebody should know who has no passkey where the policy asks for one, in a sentence.
const MISSING_PASSKEY: &str = "The policy asks for a passkey and none is registered, so nobody can say yes to what needs one: open the hub's page at localhost, and add one under Passkeys.";

/// The same, if it is so for this hub: a passkey is as good as a PIN, and only a passkey is enough
/// where the policy asks for one.
pub(crate) fn missing_for(config: &Config) -> Option<String> {
    let pins = PinFile::of(config)?.users().ok()?;
    if is_any_registered(config).unwrap_or(true) {
        return None;
    }
    let policy = start::policy(config).ok().flatten();
    if policy.is_some_and(|policy| policy.asks_for(Presence::Passkey)) {
        return Some(MISSING_PASSKEY.to_owned());
    }
    pins.is_empty().then(|| MISSING.to_owned())
}

fn file_of(flags: &Flags) -> Result<Option<PinFile>, Fault> {
    let loaded = load(flags, &Surroundings::of_process()?)?;
    Ok(PinFile::of(&loaded.config))
}

fn file(options: &PresenceOptions) -> Result<PinFile, Failure> {
    let (config, data) = (options.config.clone(), options.data.clone());
    file_of(&Flags { config, data, ..Flags::default() })?.ok_or_else(|| {
        Failure::Said(
            "This hub keeps nothing, so it cannot keep a PIN; run it without --ephemeral.".into(),
        )
    })
}

fn has(file: &PinFile, user: &str) -> Result<bool, Fault> {
    Ok(file.users()?.iter().any(|known| known == user))
}

fn set(options: &PresenceOptions) -> Result<String, Failure> {
    let (file, user) = (file(options)?, &options.user);
    if has(&file, user)? {
        let old = ask("Your PIN as it is now: ")?;
        if !file.matches(user, &old)? {
            return Err(Failure::Said("That is not the PIN. Nothing was changed.".into()));
        }
    }
    file.set(user, &chosen()?)?;
    Ok(format!(
        "The PIN of {user} is set. From now on, a yes to what is of high risk and cannot be undone needs it."
    ))
}

/// The same at a hub whose files are elsewhere.
fn there(options: &PresenceOptions, command: PresenceCommand) -> Result<String, Failure> {
    let new = match command {
        PresenceCommand::Set => Some(chosen()?),
        PresenceCommand::Remove => None,
        PresenceCommand::Status => {
            let text = "Only the hub's own machine says whether there is a PIN.";
            return Err(Failure::Said(text.into()));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = client(options).map_err(Failure::Said)?;
    let send = |old: Option<&Pin<'_>>| {
        let (new, old) = (new.as_ref().map(Pin::expose), old.map(Pin::expose));
        let mut body = Writer::new();
        body.open('{');
        for (name, pin) in [("pin", new), ("old", old)] {
            if let Some(pin) = pin {
                body.name(name);
                body.string(pin);
                body.comma();
            }
        }
        body.close('}');
        runtime.block_on(client.post("presence/pin", body.finish()))
    };
    let mut answer = send(None);
    // It says so with 403 where there is one already.
    if answer.as_ref().is_ok_and(|answer| answer.status == 403) {
        answer = send(Some(&ask("Your PIN as it is now: ")?));
    }
    crate::admin::good(answer).map_err(Failure::Said)?;
    Ok(match new {
        Some(_) => "Your PIN is set. From now on, a yes to what is of high risk and cannot be undone needs it.".into(),
        None => "You have no PIN any more.".into(),
    })
}

fn client(options: &PresenceOptions) -> Result<HttpClient, String> {
    let found = discovery::hub(options.hub.as_deref())?;
    let token = discovery::token(options.token_file.as_deref())?
        .ok_or("There is no token of yours. Name it with --token-file.")?;
    let token = Token::parse(token.trim()).map_err(|error| error.to_string())?;
    let extra_roots_pem = discovery::certificates(options.ca.as_deref())?.or(found.certificate);
    let with = Options { token: Some(token), extra_roots_pem, ..Options::default() };
    discovery::client(&found.url, with).map_err(|error| error.to_string())
}

fn status(options: &PresenceOptions) -> Result<String, Failure> {
    let file = file(options)?;
    let mut said = match has(&file, &options.user)? {
        true => format!("{} has a PIN.", options.user),
        false => format!("{} has no PIN. Set one with: aaep presence set", options.user),
    };
    let (config, data) = (options.config.clone(), options.data.clone());
    let flags = Flags { config, data, ..Flags::default() };
    let loaded = load(&flags, &Surroundings::of_process()?)?;
    for (name, domain) in registered(&loaded.config, &options.user)? {
        let (name, domain) = (Plain(&name), Plain(&domain));
        said += &format!("\nA passkey for {domain}: {name}.");
    }
    Ok(said)
}

fn remove(options: &PresenceOptions) -> Result<String, Failure> {
    let (file, user) = (file(options)?, &options.user);
    if !has(&file, user)? {
        return Err(Failure::Said(format!("{user} has no PIN.")));
    }
    let old = ask("Your PIN: ")?;
    if !file.matches(user, &old)? {
        return Err(Failure::Said("That is not the PIN. Nothing was changed.".into()));
    }
    file.remove(user)?;
    Ok(format!("{user} has no PIN any more."))
}

/// A new PIN, typed twice.
fn chosen() -> Result<Pin<'static>, Failure> {
    let new = ask("A new PIN, at least four characters: ")?;
    if ask("The same once more: ")? != new {
        return Err(Failure::Said("The two are not the same. Nothing was changed.".into()));
    }
    Ok(new)
}

/// Asks for a PIN: typed without being shown, or a line of standard input.
fn ask(question: &str) -> Result<Pin<'static>, Failure> {
    let input = io::stdin();
    let hidden = input.is_terminal().then(Hidden::new).flatten();
    if input.is_terminal() {
        let mut error = io::stderr();
        write!(error, "{question}")?;
        error.flush()?;
    }
    let mut line = String::new();
    let read = input.lock().read_line(&mut line);
    let shown = hidden.is_some();
    drop(hidden);
    if shown {
        eprintln!();
    }
    if read? == 0 {
        return Err(Failure::Said("Nothing was typed. Nothing was changed.".into()));
    }
    Pin::new(line.trim_end_matches(['\n', '\r']).to_owned())
        .map_err(|wrong| Failure::Said(format!("{wrong} Nothing was changed.")))
}

/// The terminal without echo, until it is dropped.
#[cfg(unix)]
struct Hidden(rustix::termios::Termios);

#[cfg(unix)]
impl Hidden {
    fn new() -> Option<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let found = tcgetattr(rustix::stdio::stdin()).ok()?;
        let mut wanted = found.clone();
        wanted.local_modes.remove(LocalModes::ECHO);
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &wanted).ok()?;
        Some(Self(found))
    }
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        let now = rustix::termios::OptionalActions::Now;
        let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), now, &self.0);
    }
}

#[cfg(not(unix))]
struct Hidden;

#[cfg(not(unix))]
impl Hidden {
    fn new() -> Option<Self> {
        None
    }
}
