//! A login in use: its token is renewed before it ends, and shown to the hub, so that streams go on.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aaep_hub::sign_in::{Provider, SignInError};
use aaep_subscriber::client::Hub;
use aaep_transport::client::{HttpClient, Options, Token};
use http::StatusCode;

use super::file::{Login, LoginFile};
use super::web_address;
use crate::exit;

/// A token is renewed this long before it ends, or when a third of its life is left.
const MARGIN: u64 = 60;

/// How long to wait before something that failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// How long a command waits for a token that has ended to be renewed: longer than a provider may take.
const PATIENCE: Duration = Duration::from_secs(25);

/// A token that still counts is not renewed before a command has run this long: one that ends meanwhile would
/// leave nobody to keep what the provider gave, and a refresh token counts once.
const SETTLED: Duration = Duration::from_secs(3);

/// Seconds of the wall clock.
pub(crate) fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The same hub with the token of the user who signed in to it, if anybody did, and what they trusted then. The
/// token is kept fresh as long as the process lives.
pub(crate) fn signed_in(mut hub: Hub) -> Result<Hub, String> {
    let Some(url) = web_address(&hub.address) else { return Ok(hub) };
    let Ok(file) = LoginFile::of(&url) else { return Ok(hub) };
    let Some(login) = file.read()? else { return Ok(hub) };
    let unusable =
        |_| format!("The login for {url} cannot be used. Sign in again: aaep login {url}");
    let token = Token::parse(&login.access_token).map_err(unusable)?;
    hub.options.extra_roots_pem = hub.options.extra_roots_pem.or_else(|| login.roots());
    hub.options.token = Some(token.clone());
    let options = hub.options.clone();
    let keeper = TokenRefresher { file, login, token, options, refused: None };
    let counts = keeper.left() > Duration::ZERO;
    let (ready, is_ready) = mpsc::channel();
    // A thread of its own: commands begin their runtimes later, and each in its way.
    thread::Builder::new()
        .name("login".into())
        .spawn(move || keeper.run(&ready))
        .map_err(|error| format!("The login cannot be kept fresh: {error}."))?;
    if !counts {
        let _ = is_ready.recv_timeout(PATIENCE);
    }
    Ok(hub)
}

struct TokenRefresher {
    file: LoginFile,
    login: Login,
    token: Token,
    options: Options,
    /// A refresh token that the provider no longer takes: it is not asked again.
    refused: Option<String>,
}

impl TokenRefresher {
    fn run(mut self, ready: &mpsc::Sender<()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        let mut told = false;
        thread::sleep(SETTLED.min(self.left() / 2));
        let mut fresh = self.is_fresh();
        loop {
            if !fresh {
                match self.renew(&runtime) {
                    Ok(()) => {
                        told = false;
                        runtime.block_on(self.show());
                    }
                    Err(why) if !told => {
                        exit::say(&why);
                        told = true;
                    }
                    Err(_) => {}
                }
            }
            let _ = ready.send(());
            thread::sleep(self.pause());
            fresh = self.is_fresh();
        }
    }

    /// Until it is to be renewed.
    fn pause(&self) -> Duration {
        let Login { given_at, expires_at, .. } = self.login;
        let margin = MARGIN.min(expires_at.saturating_sub(given_at) / 3);
        let left = expires_at.saturating_sub(margin).saturating_sub(now_seconds());
        // The clock may be set, and the machine may have slept.
        if left == 0 {
            AGAIN.min(Duration::from_secs(1 + margin / 2))
        } else {
            Duration::from_secs(left.min(30))
        }
    }

    /// How long its token still counts.
    fn left(&self) -> Duration {
        Duration::from_secs(self.login.expires_at.saturating_sub(now_seconds()))
    }

    fn is_fresh(&self) -> bool {
        let Login { given_at, expires_at, .. } = self.login;
        let margin = MARGIN.min(expires_at.saturating_sub(given_at) / 3);
        now_seconds() + margin < expires_at
    }

    /// Takes over what another command has renewed, or renews it itself; or says what to do.
    fn renew(&mut self, runtime: &tokio::runtime::Runtime) -> Result<(), String> {
        let again = format!("Sign in again: aaep login {}", self.login.hub);
        let _lock = self.file.lock()?;
        let Some(kept) = self.file.read()? else {
            return Err(format!("You were signed out of {}. {again}", self.login.hub));
        };
        let newer = kept.expires_at > self.login.expires_at;
        self.login = kept;
        if !(newer && self.is_fresh()) {
            let refresh = self.login.refresh_token.clone();
            let Some(refresh) = refresh.filter(|token| self.refused.as_ref() != Some(token)) else {
                return Err(format!("Your login ends, and cannot be renewed. {again}"));
            };
            let mut form = vec![
                ("grant_type", "refresh_token"),
                ("refresh_token", &*refresh),
                ("client_id", &*self.login.offer.client_id),
            ];
            form.extend(self.login.offer.target());
            let renewed = runtime.block_on(async {
                let provider =
                    Provider::discover(&self.login.offer.issuer, self.login.roots()).await?;
                provider.tokens(&form).await
            });
            let tokens = match renewed {
                Ok(tokens) => tokens,
                Err(error @ SignInError::Refused(_)) => {
                    self.refused = Some(refresh);
                    return Err(format!("Your login has ended. {error} {again}"));
                }
                Err(error) => return Err(format!("Your login cannot be renewed now. {error}")),
            };
            self.login = self.login.renewed(tokens);
            self.file.write(&self.login)?;
        }
        let unusable = |_| format!("What the provider gave cannot be used. {again}");
        self.token.replace(&self.login.access_token).map_err(unusable)
    }

    /// Shows the new token, so that the streams that began with the old one go on.
    async fn show(&self) {
        // If nobody is there, the next connection shows it.
        let _ = show(&self.login.hub, self.options.clone()).await;
    }
}

/// Shows a token to a hub; what it answers.
pub(super) async fn show(hub: &str, options: Options) -> Result<StatusCode, String> {
    let told = |error| format!("The hub cannot be reached: {error}.");
    let client = HttpClient::new(hub, options).map_err(told)?;
    Ok(client.get("status").await.map_err(told)?.status)
}
