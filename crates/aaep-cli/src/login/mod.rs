//! `aaep login` and `aaep logout`: signing in with the identity provider that a hub names, with a code
//! on another device (RFC 8628), and forgetting it again.

mod file;
mod keep;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use aaep_hub::sign_in::{DeviceCode, Offer, Offers, Provider, SignInError, Tokens};
use aaep_subscriber::client::{Address, Hub};
use aaep_transport::client::{HttpClient, Options, Token};
use clap::Args;

use crate::exit::{self, Exit};
use crate::listen::{self, HubsOptions};
use file::{Login, LoginFile};

pub(crate) use keep::{now_seconds, signed_in};

/// How often a provider is asked when it does not say.
const USUAL_INTERVAL: u64 = 5;

/// By how much longer the pause gets when the provider asks for that (RFC 8628, section 3.5).
const SLOWER: u64 = 5;

/// The longest pause between two questions, in seconds.
const LONGEST_PAUSE: u64 = 60;

/// The longest that is waited for a person, whatever the provider says.
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 60);

/// The longest code to type, and the longest address, in characters.
const MAX_CODE: usize = 64;
const MAX_ADDRESS: usize = 2048;

/// Sign in to a hub with your organisation's identity provider, on any device with a browser.
///
/// It says an address and a code; type the code there. After that, `aaep listen` and the other commands
/// that hear this hub use it by themselves, and renew it. It is kept in a file that only you can read.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 when you are signed in, 1 if somebody said no or the code grew too old, 2 if it cannot be tried.

Examples:
  aaep login https://hub.example.org:8707
  aaep login https://hub.example.org:8707 --provider work
  aaep logout https://hub.example.org:8707")]
pub(crate) struct LoginOptions {
    #[command(flatten)]
    hub: OneHub,
    /// Which provider, if the hub names several.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
}

/// Forget how you signed in to a hub, and have the provider take the tokens back.
#[derive(Args, Debug)]
pub(crate) struct LogoutOptions {
    #[command(flatten)]
    hub: OneHub,
}

#[derive(Args, Debug)]
struct OneHub {
    /// The hub. Without it: AAEP_URL, or the one on this machine.
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// Certificates (PEM) to trust beside those of this machine, for a hub or a provider that signed its own.
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
}

/// A hub and how to reach it.
struct Place {
    url: String,
    options: Options,
}

/// Why it did not work: somebody said no, or it could not be tried.
enum Failed {
    No(String),
    Unable(String),
}

impl From<SignInError> for Failed {
    fn from(error: SignInError) -> Self {
        match error {
            SignInError::Refused(_) => Self::No(error.to_string()),
            _ => Self::Unable(error.to_string()),
        }
    }
}

pub(crate) fn run(options: &LoginOptions, out: &mut impl Write) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signed_in = match begin(options, &runtime) {
        Ok((place, offer, provider, code)) => {
            for line in instructions(&code) {
                writeln!(out, "{line}")?;
            }
            out.flush()?;
            runtime.block_on(wait(&provider, &offer, &code)).and_then(|tokens| {
                let roots = place.options.extra_roots_pem.clone();
                keep(&runtime, &place, Login::new(&place.url, &offer, tokens, roots))
            })
        }
        Err(failed) => Err(failed),
    };
    ended(signed_in, out)
}

pub(crate) fn log_out(options: &LogoutOptions, out: &mut impl Write) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    ended(forget(options, &runtime), out)
}

fn ended(done: Result<Vec<String>, Failed>, out: &mut impl Write) -> io::Result<Exit> {
    match done {
        Ok(lines) => {
            for line in lines {
                writeln!(out, "{line}")?;
            }
            Ok(Exit::Good)
        }
        Err(Failed::No(why)) => {
            exit::say(&why);
            Ok(Exit::Wrong)
        }
        Err(Failed::Unable(why)) => {
            exit::say(&why);
            Ok(Exit::Unable)
        }
    }
}

type Begun = (Place, Offer, Provider, DeviceCode);

fn begin(options: &LoginOptions, runtime: &tokio::runtime::Runtime) -> Result<Begun, Failed> {
    let place = place(&options.hub)?;
    // A place for the file is looked for before anybody types a code.
    LoginFile::of(&place.url).map_err(Failed::Unable)?;
    runtime.block_on(async {
        let offers = offers(&place).await.map_err(Failed::Unable)?;
        let offer = choose(offers, options.provider.as_deref())?;
        let roots = place.options.extra_roots_pem.clone();
        let provider = Provider::discover(&offer.issuer, roots).await?;
        let scope = offer.scopes.join(" ");
        let mut form = vec![("client_id", &*offer.client_id), ("scope", &scope)];
        form.extend(offer.target());
        let code = provider.device_code(&form).await?;
        if !can_be_said(&code) {
            return Err(SignInError::Garbled.into());
        }
        Ok((place, offer, provider, code))
    })
}

/// The hub, by its address over HTTP: that is what a login is kept under.
fn place(hub: &OneHub) -> Result<Place, Failed> {
    let named = HubsOptions {
        urls: hub.url.iter().cloned().collect(),
        ca: hub.ca.clone(),
        ..HubsOptions::default()
    };
    let hubs = listen::reachable(&named).map_err(Failed::Unable)?;
    let several = "Several hubs are here; name one: aaep login URL";
    let [hub] = <[Hub; 1]>::try_from(hubs).map_err(|_| Failed::Unable(several.into()))?;
    let url = web_address(&hub.address).ok_or_else(|| {
        let text =
            "A hub on a socket of this machine knows you already; nobody has to sign in there.";
        Failed::Unable(text.into())
    })?;
    let options = Options { token: None, ..hub.options };
    Ok(Place { url, options })
}

/// The base of a hub over HTTP, however it is spoken with.
pub(crate) fn web_address(address: &Address) -> Option<String> {
    match address {
        Address::Http(base) => Some(base.clone()),
        Address::WebSocket(url) => {
            let rest = url.strip_prefix("ws")?;
            Some(format!("http{}", rest.strip_suffix("/ws").unwrap_or(rest)))
        }
        _ => None,
    }
}

async fn offers(place: &Place) -> Result<Vec<Offer>, String> {
    let client = HttpClient::new(&place.url, place.options.clone());
    let client = client.map_err(|error| format!("The hub cannot be reached: {error}."))?;
    let answer = client.get("sign-in").await;
    let answer = answer.map_err(|error| format!("The hub cannot be reached: {error}."))?;
    if !answer.status.is_success() {
        return Err(format!(
            "The hub does not know of signing in (it answered {}).",
            answer.status
        ));
    }
    let offers: Result<Offers, _> = serde_json::from_slice(&answer.body);
    Ok(offers.map_err(|_| "What the hub says of signing in cannot be read.")?.providers)
}

/// The provider that was named, or the only one.
fn choose(mut offers: Vec<Offer>, named: Option<&str>) -> Result<Offer, Failed> {
    if offers.is_empty() {
        let text = "Nobody signs in to this hub with a provider. Ask whoever runs it for a token.";
        return Err(Failed::Unable(text.into()));
    }
    let names = offers.iter().map(|offer| offer.name.escape_debug().to_string());
    let names = names.collect::<Vec<_>>().join(", ");
    match named {
        Some(name) => offers.retain(|offer| offer.name == name),
        None if offers.len() > 1 => {
            let text = format!("The hub has several providers. Name one with --provider: {names}.");
            return Err(Failed::Unable(text));
        }
        None => {}
    }
    offers.pop().ok_or_else(|| Failed::Unable(format!("The hub names other providers: {names}.")))
}

/// Whether what the provider gave is an address and a code, and nothing that does something to a
/// terminal.
fn can_be_said(code: &DeviceCode) -> bool {
    let is_address = |text: &str| {
        text.starts_with("https://")
            && text.len() <= MAX_ADDRESS
            && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let letters =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_address(&code.verification_uri)
        && code.verification_uri_complete.as_deref().is_none_or(is_address)
        && (1..=MAX_CODE).contains(&code.user_code.len())
        && letters(&code.user_code)
}

fn instructions(code: &DeviceCode) -> Vec<String> {
    let mut lines = vec![
        format!("Open this address in a browser, on any device: {}", code.verification_uri),
        format!("Type this code there: {}", code.user_code),
        format!("Letter by letter: {}.", spelled(&code.user_code)),
    ];
    if let Some(complete) = &code.verification_uri_complete {
        lines.push(format!("This address has the code in it: {complete}"));
    }
    let minutes = (code.expires_in / 60).max(1);
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    lines.push(format!("Waiting for you, for {minutes} {unit}. Ctrl-C gives up."));
    lines
}

/// A code as it is heard best: one letter at a time.
fn spelled(code: &str) -> String {
    let said = |letter: char| match letter {
        '-' => "dash".to_owned(),
        letter => letter.to_string(),
    };
    code.chars().map(said).collect::<Vec<_>>().join(", ")
}

/// Asks until somebody has typed the code, or said no.
async fn wait(provider: &Provider, offer: &Offer, code: &DeviceCode) -> Result<Tokens, Failed> {
    let mut form = vec![
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", &*code.device_code),
        ("client_id", &*offer.client_id),
    ];
    form.extend(offer.target());
    let until = Instant::now() + Duration::from_secs(code.expires_in).min(LONGEST_WAIT);
    let mut pause = code.interval.unwrap_or(USUAL_INTERVAL).clamp(1, LONGEST_PAUSE);
    loop {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        let late = Instant::now() >= until;
        match provider.tokens(&form).await {
            Ok(tokens) => return Ok(tokens),
            Err(SignInError::Refused(word)) => match &*word {
                "authorization_pending" => {}
                "slow_down" => pause = (pause + SLOWER).min(LONGEST_PAUSE),
                "access_denied" => return Err(Failed::No("Somebody said no there.".into())),
                "expired_token" => return Err(too_old()),
                _ => return Err(SignInError::Refused(word).into()),
            },
            // RFC 8628, section 3.5: with longer and longer pauses.
            Err(SignInError::Unreachable(_)) => pause = (pause * 2).min(LONGEST_PAUSE),
            Err(other) => return Err(other.into()),
        }
        if late {
            return Err(too_old());
        }
    }
}

fn too_old() -> Failed {
    Failed::No("Nobody typed the code in time. Try again: aaep login".into())
}

/// Keeps the login, if the hub lets its holder in.
fn keep(
    runtime: &tokio::runtime::Runtime,
    place: &Place,
    login: Login,
) -> Result<Vec<String>, Failed> {
    let token = Token::parse(&login.access_token).map_err(|_| SignInError::Garbled)?;
    let options = Options { token: Some(token), ..place.options.clone() };
    let shown = runtime.block_on(keep::show(&place.url, options));
    match shown {
        Ok(status) if status.is_success() => {}
        Ok(status) => {
            return Err(Failed::No(format!(
                "You signed in, and the hub does not let you in with it (it answered {status}). Ask whoever runs it: the token has to be one for this hub, and your role one that may listen."
            )));
        }
        Err(why) => return Err(Failed::Unable(why)),
    }
    let file = LoginFile::of(&login.hub).map_err(Failed::Unable)?;
    file.write(&login).map_err(Failed::Unable)?;
    let mut lines = vec![format!("You are signed in. To listen: aaep listen {}", login.hub)];
    if login.refresh_token.is_none() {
        lines
            .push("The provider gave nothing to renew it with: sign in again when it ends.".into());
    }
    Ok(lines)
}

fn forget(
    options: &LogoutOptions,
    runtime: &tokio::runtime::Runtime,
) -> Result<Vec<String>, Failed> {
    let place = place(&options.hub)?;
    let file = LoginFile::of(&place.url).map_err(Failed::Unable)?;
    let Some(login) = file.read().map_err(Failed::Unable)? else {
        return Ok(vec!["Nobody is signed in there.".into()]);
    };
    let revoked = runtime.block_on(async {
        let provider = Provider::discover(&login.offer.issuer, login.roots()).await?;
        let token = login.refresh_token.as_deref().unwrap_or(&login.access_token);
        provider.revoke(&[("client_id", &login.offer.client_id), ("token", token)]).await
    });
    // Also when nobody could be asked: what is forgotten here cannot be used from here.
    file.remove().map_err(Failed::Unable)?;
    let mut lines = vec!["You are signed out here.".to_owned()];
    if let Err(why) = revoked {
        lines.push(format!("The provider did not take the token back. {why}"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(user_code: &str, uri: &str) -> DeviceCode {
        serde_json::from_value(serde_json::json!({
            "device_code": "d", "user_code": user_code, "verification_uri": uri, "expires_in": 600,
        }))
        .unwrap()
    }

    #[test]
    fn a_code_is_spelled_and_nothing_of_the_provider_reaches_the_terminal_as_it_is() {
        assert_eq!(spelled("WD-J7"), "W, D, dash, J, 7");
        assert!(can_be_said(&code("WDJB-MJHT", "https://login.example/device")));
        for (user_code, uri) in [
            ("", "https://login.example/device"),
            ("AB\x1b[2J", "https://login.example/device"),
            ("AB CD", "https://login.example/device"),
            ("AB", "http://login.example/device"),
            ("AB", "https://login.example/\x07"),
            ("AB", "javascript:alert(1)"),
        ] {
            assert!(!can_be_said(&code(user_code, uri)), "{user_code:?} {uri:?}");
        }
    }

    #[test]
    fn a_login_counts_for_a_hub_however_it_is_spoken_with() {
        let of = |url: &str| web_address(&Hub::parse(url).unwrap().address);
        let web = Some("https://hub.example:8707/aaep/v1".to_owned());
        assert_eq!(of("https://hub.example:8707"), web);
        assert_eq!(of("wss://hub.example:8707"), web);
        #[cfg(unix)]
        assert_eq!(of("unix:/a/b.sock"), None);
    }
}
