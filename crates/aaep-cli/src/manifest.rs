//! `aaep manifest`: signs manifests, verifies them, and shows what is known of whose key.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use aaep_hub::start::make_manifest_key;
use aaep_signature::{Algorithm, KeyList, MAX_BYTES, Signers, SigningKey, Verified, verify};
use aaep_subscriber::client::KnownFile;
use aaep_transport::client::{HttpClient, Options};
use aaep_types::Timestamp;
use clap::{Args, Subcommand, ValueEnum};
use http::header::{ACCEPT, HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::discovery;
use crate::exit::{self, Exit};
use crate::input::Source;
use crate::lines::{Plain, Visible};

/// Where a hub has its manifest.
const WELL_KNOWN: &str = "/.well-known/aaep-manifest.json";

/// Sign manifests, verify them, and show whose keys are known.
///
/// A hub that signs its manifest can be told from somebody who passes for it. `aaep listen` remembers the
/// first key that it sees of a hub, and refuses another one.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  aaep manifest keygen manifest-key.pem
  aaep manifest sign manifest.json --key manifest-key.pem > manifest.jws
  aaep manifest verify https://hub.example.org
  aaep manifest show manifest.jws
  aaep manifest public manifest-key.pem > signers.json
  aaep manifest known
  aaep manifest forget hub.example.org:8707")]
pub(crate) struct ManifestOptions {
    #[command(subcommand)]
    command: ManifestCommand,
}

#[derive(Debug, Subcommand)]
enum ManifestCommand {
    Keygen(KeygenOptions),
    Public(PublicOptions),
    Sign(SignOptions),
    Verify(VerifyOptions),
    Show(ShowOptions),
    Known(KnownOptions),
    Forget(ForgetOptions),
}

/// Make a key that signs manifests, in a new file that only you can read.
#[derive(Args, Debug)]
struct KeygenOptions {
    /// The new file. One that is there stays as it is.
    file: PathBuf,
    /// What it signs with.
    #[arg(long, value_enum, default_value_t = Kind::Es256)]
    algorithm: Kind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Es256,
    Eddsa,
}

/// Print the public half of a key as a JWK set: a list for `--signers`.
#[derive(Args, Debug)]
struct PublicOptions {
    /// The file with the private key.
    file: PathBuf,
    /// Whose key it is. Then it counts for that agent alone.
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
}

/// Sign a manifest, and print it as a JWS.
#[derive(Args, Debug)]
struct SignOptions {
    /// The manifest. For -, or without it, standard input is read.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The file with the private key.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// How many hours the signature is good.
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=9600))]
    hours: u32,
}

/// What is looked at.
#[derive(Args, Debug)]
struct WhatOptions {
    /// A hub's address, or a file. For -, or without it, standard input is read.
    #[arg(value_name = "URL OR FILE", default_value = "-")]
    what: String,
    /// Certificates (PEM) to trust beside those of this machine, for a hub that signed its own.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Believe whatever listens on a loopback address.
    #[arg(long)]
    trust_loopback: bool,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Verify a signed manifest: signature, time, and whose it is.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 if the signature holds, 1 if it does not, 2 if there is nothing to look at.

Without --signers any key is believed that the manifest itself shows: compare the fingerprint that is
printed with the one that whoever runs the hub tells you.")]
struct VerifyOptions {
    #[command(flatten)]
    what: WhatOptions,
    /// Whose manifest it should be.
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// Believe only the keys in this file, a JWK set.
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
}

/// Show what a manifest says, signed or not.
#[derive(Args, Debug)]
struct ShowOptions {
    #[command(flatten)]
    what: WhatOptions,
}

/// List the hubs whose keys are remembered.
#[derive(Args, Debug)]
struct KnownOptions {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Forget the key of a hub: the next one that it shows is remembered.
///
/// Do so only when the hub's administrator has told you that its key has changed.
#[derive(Args, Debug)]
struct ForgetOptions {
    /// Its name or address, as `aaep manifest known` shows it.
    name: String,
}

pub(crate) fn run(options: &ManifestOptions, out: &mut impl Write) -> io::Result<Exit> {
    let done = match &options.command {
        ManifestCommand::Keygen(options) => keygen(options),
        ManifestCommand::Public(options) => public(options),
        ManifestCommand::Sign(options) => sign(options),
        ManifestCommand::Verify(options) => verified(options),
        ManifestCommand::Show(options) => show(options),
        ManifestCommand::Known(options) => known(options),
        ManifestCommand::Forget(options) => forget(options),
    };
    match done {
        Ok((exit, lines)) => {
            for line in lines {
                writeln!(out, "{line}")?;
            }
            Ok(exit)
        }
        Err(why) => {
            exit::say(&why);
            Ok(Exit::Unable)
        }
    }
}

type Done = Result<(Exit, Vec<String>), String>;

fn keygen(options: &KeygenOptions) -> Done {
    let algorithm = match options.algorithm {
        Kind::Es256 => Algorithm::ES256,
        Kind::Eddsa => Algorithm::EdDSA,
    };
    let key = make_manifest_key(&options.file, algorithm).map_err(|fault| fault.to_string())?;
    let file = Plain(&options.file.display().to_string()).to_string();
    Ok((
        Exit::Good,
        vec![
            format!("Made a key for {algorithm}: {file}"),
            format!("Its fingerprint: {}", key.fingerprint()),
            format!("To sign with it, write under [hub] in aaep.toml: manifest_key = {file:?}"),
        ],
    ))
}

fn public(options: &PublicOptions) -> Done {
    let key = signing_key(&options.file)?;
    let mut jwk: Value =
        serde_json::from_str(&key.public().to_json()).map_err(|error| error.to_string())?;
    if let Some(agent_id) = &options.agent_id {
        jwk["agent_id"] = agent_id.as_str().into();
    }
    Ok((Exit::Good, vec![Visible(&json!({ "keys": [jwk] }).to_string()).to_string()]))
}

fn sign(options: &SignOptions) -> Done {
    let key = signing_key(&options.key)?;
    let manifest = read(&Source::of(&options.file))?;
    let signed = key.sign(&manifest, now(), options.hours.saturating_mul(3600));
    Ok((Exit::Good, vec![signed.map_err(|why| Plain(&why.to_string()).to_string())?]))
}

fn verified(options: &VerifyOptions) -> Done {
    let list = options.signers.as_deref().map(signers).transpose()?;
    let trusted = list.as_ref().map_or(Signers::Anybody, Signers::Listed);
    let signed = look(&options.what, true)?;
    let found = verify(signed.trim(), options.agent_id.as_deref(), &trusted, now());
    Ok(match (found, options.what.json) {
        (Ok(verified), true) => (Exit::Good, vec![described(&verified, None)]),
        (Ok(verified), false) => {
            let mut lines = vec!["The signature holds.".to_owned()];
            lines.extend(told(&verified));
            if list.is_none() {
                lines.push(
                    "Any key would do here: compare the fingerprint, or use --signers.".into(),
                );
            }
            (Exit::Good, lines)
        }
        (Err(why), true) => {
            let line = json!({ "verified": false, "why": why.to_string() });
            (Exit::Wrong, vec![Visible(&line.to_string()).to_string()])
        }
        (Err(why), false) => {
            (Exit::Wrong, vec![format!("Not verified: {}.", Plain(&why.to_string()))])
        }
    })
}

fn show(options: &ShowOptions) -> Done {
    let text = look(&options.what, true).or_else(|_| look(&options.what, false))?;
    let text = text.trim();
    if text.starts_with('{') {
        let manifest: Value =
            serde_json::from_str(text).map_err(|error| format!("It is no manifest: {error}."))?;
        return Ok((Exit::Good, vec!["It is not signed.".to_owned(), pretty(&manifest)]));
    }
    match verify(text, None, &Signers::Anybody, now()) {
        Ok(verified) if options.what.json => {
            let manifest = serde_json::from_str(&verified.manifest).unwrap_or_default();
            Ok((Exit::Good, vec![described(&verified, Some(manifest))]))
        }
        Ok(verified) => {
            let manifest: Value = serde_json::from_str(&verified.manifest).unwrap_or_default();
            let mut lines = vec!["The signature holds.".to_owned()];
            lines.extend(told(&verified));
            lines.push(pretty(&manifest));
            Ok((Exit::Good, lines))
        }
        Err(why) => Ok((Exit::Wrong, vec![format!("Not verified: {}.", Plain(&why.to_string()))])),
    }
}

fn known(options: &KnownOptions) -> Done {
    let known = known_file()?.read()?;
    if options.json {
        let line = serde_json::to_string(&known).map_err(|error| error.to_string())?;
        return Ok((Exit::Good, vec![Visible(&line).to_string()]));
    }
    let mut lines: Vec<String> = known
        .agents()
        .iter()
        .map(|agent| {
            let (place, id) = (Plain(&agent.address), Plain(&agent.agent_id));
            format!("{place}: {id}, key {}, since {}", Plain(&agent.key), time(agent.since))
        })
        .collect();
    if lines.is_empty() {
        lines.push("No keys are remembered yet.".into());
    }
    Ok((Exit::Good, lines))
}

fn forget(options: &ForgetOptions) -> Done {
    let file = known_file()?;
    let mut known = file.read()?;
    match known.forget(&options.name) {
        0 => {
            let name = Plain(&options.name);
            Err(format!(
                "Nothing is remembered of {name}. `aaep manifest known` shows all there are."
            ))
        }
        _ => {
            file.write(&known)?;
            Ok((Exit::Good, vec![format!("Forgot {}.", Plain(&options.name))]))
        }
    }
}

/// Reads a list of keys.
pub(crate) fn signers(file: &Path) -> Result<KeyList, String> {
    let text = read(&Source::of(file))?;
    KeyList::from_json(&text).map_err(|_| {
        let file = Plain(&file.display().to_string()).to_string();
        format!(
            "{file} is no JWK set of keys for ES256, EdDSA and RS256. `aaep manifest public` prints one."
        )
    })
}

fn known_file() -> Result<KnownFile, String> {
    KnownFile::usual().ok_or_else(|| "There is no configuration directory: set HOME.".into())
}

fn signing_key(file: &Path) -> Result<SigningKey, String> {
    let pem = read(&Source::of(file))?;
    SigningKey::from_pem(pem.as_bytes()).map_err(|why| {
        let file = Plain(&file.display().to_string()).to_string();
        format!("{file}: {why} `aaep manifest keygen` makes one.")
    })
}

/// What was named: from a hub, a file or standard input.
fn look(options: &WhatOptions, signed: bool) -> Result<String, String> {
    let what = options.what.as_str();
    if what.contains("://") || what.starts_with("unix:") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        return runtime.block_on(fetch(options, signed));
    }
    read(&Source::of(Path::new(what)))
}

async fn fetch(options: &WhatOptions, signed: bool) -> Result<String, String> {
    let what = options.what.as_str();
    let certificates = match discovery::certificates(options.ca.as_deref())? {
        Some(certificates) => Some(certificates),
        None => discovery::hub(Some(what)).ok().and_then(|found| found.certificate),
    };
    let client_options = Options {
        extra_roots_pem: certificates,
        trust_loopback: options.trust_loopback,
        max_message: MAX_BYTES,
        ..Options::default()
    };
    let (origin, path) = origin(what);
    #[cfg(unix)]
    let client = match origin.strip_prefix("unix:") {
        Some(socket) => Ok(HttpClient::over_socket(socket, "", client_options)),
        None => HttpClient::new(&origin, client_options),
    };
    #[cfg(not(unix))]
    let client = HttpClient::new(&origin, client_options);
    let client = client.map_err(|error| Plain(&error.to_string()).to_string())?;
    let mut headers = HeaderMap::new();
    let kind = if signed { "application/jose" } else { "application/json" };
    headers.insert(ACCEPT, HeaderValue::from_static(kind));
    let answer = client.request(http::Method::GET, &path, headers, Vec::new()).await;
    let answer = answer.map_err(|error| Plain(&error.to_string()).to_string())?;
    match answer.status {
        http::StatusCode::OK => {
            String::from_utf8(answer.body.to_vec()).map_err(|_| "The answer is not UTF-8.".into())
        }
        http::StatusCode::NOT_ACCEPTABLE => Err("The hub does not sign its manifest.".into()),
        status => Err(format!("The hub answered {status}.")),
    }
}

/// Where the manifest is: at the address itself if that names a file, else at the usual place.
fn origin(what: &str) -> (String, String) {
    if what.starts_with("unix:") {
        return (what.to_owned(), WELL_KNOWN.to_owned());
    }
    let (scheme, rest) = what.split_once("://").unwrap_or(("https", what));
    let scheme = scheme.replace("ws", "http");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = if path.contains('.') { format!("/{path}") } else { WELL_KNOWN.to_owned() };
    (format!("{scheme}://{host}"), path)
}

fn read(source: &Source) -> Result<String, String> {
    let mut text = String::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let read = source.open()?.take(most).read_to_string(&mut text);
    read.map_err(|error| source.explain(&error))?;
    Ok(text)
}

fn told(verified: &Verified) -> Vec<String> {
    vec![
        format!("Agent: {}", Plain(&verified.agent_id)),
        format!("Algorithm: {}", verified.key.algorithm()),
        format!("Fingerprint of its key: {}", verified.key.fingerprint()),
        format!("Good from {} until {}", time(verified.issued), time(verified.expires)),
    ]
}

fn described(verified: &Verified, manifest: Option<Value>) -> String {
    let mut line = json!({
        "verified": true, "agent_id": verified.agent_id,
        "algorithm": verified.key.algorithm().as_str(), "key": verified.key.fingerprint(),
        "issued": verified.issued, "expires": verified.expires,
    });
    if let Some(manifest) = manifest {
        line["manifest"] = manifest;
    }
    Visible(&line.to_string()).to_string()
}

fn pretty(manifest: &Value) -> String {
    let text = serde_json::to_string_pretty(manifest).unwrap_or_default();
    text.lines().map(|line| Visible(line).to_string()).collect::<Vec<_>>().join("\n")
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn time(seconds: i64) -> String {
    let stamp = Timestamp::from_millis(seconds.saturating_mul(1000));
    stamp.map_or_else(|| seconds.to_string(), |stamp| stamp.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_looked_for_where_an_address_says() {
        let of = |what: &str| origin(what);
        let usual = |origin: &str| (origin.to_owned(), WELL_KNOWN.to_owned());
        assert_eq!(of("https://hub.example"), usual("https://hub.example"));
        assert_eq!(of("wss://hub.example:1/aaep/v1/ws"), usual("https://hub.example:1"));
        assert_eq!(of("unix:/run/a.sock"), usual("unix:/run/a.sock"));
        let named = ("https://hub.example".to_owned(), "/m/bank.jws".to_owned());
        assert_eq!(of("https://hub.example/m/bank.jws"), named);
    }
}
