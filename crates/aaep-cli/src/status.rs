//! `aaep status`: what waits, in one line, for a prompt, a status bar or a braille cell.

use std::io::{self, Write};
use std::time::Duration;

use aaep_subscriber::client::{Address, Hub};
use aaep_subscriber::words::{Argument, Words, safe};
use aaep_transport::client::{ClientError, HttpClient};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::StatusOptions;
use crate::exit::{self, Exit};
use crate::lines::Visible;
use crate::{discovery, listen};

/// How long a hub may take: a shell prompt waits for this.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// What a hub says.
#[derive(Deserialize)]
struct HubStatus {
    name: String,
    waiting: u64,
    sessions: u64,
}

/// A hub, and what it says; or why it says nothing.
struct Asked {
    hub: String,
    held: Result<HubStatus, String>,
}

pub(crate) fn run(options: &StatusOptions, out: &mut impl Write) -> io::Result<Exit> {
    let hubs = match listen::hubs(&options.hubs) {
        Ok(hubs) => hubs,
        Err(why) => {
            exit::say(&why);
            return Ok(Exit::Unable);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(async {
        let asked: Vec<_> = hubs.into_iter().map(|hub| tokio::spawn(ask(hub))).collect();
        let mut all = Vec::new();
        for one in asked {
            all.extend(one.await);
        }
        all
    });
    let answered = asked.iter().filter_map(|asked| asked.held.as_ref().ok());
    let waiting: u64 = answered.clone().map(|held| held.waiting).sum();
    let sessions: u64 = answered.clone().map(|held| held.sessions).sum();
    let nobody = answered.count() == 0;
    if options.json {
        let hubs: Vec<Value> = asked.iter().map(described).collect();
        let all = json!({ "waiting": waiting, "sessions": sessions, "hubs": hubs });
        writeln!(out, "{}", Visible(&all.to_string()))?;
    } else if options.cell {
        writeln!(out, "{}", cell(nobody, waiting))?;
    } else {
        writeln!(out, "{}", line(&asked, waiting, options))?;
    }
    let silent = asked.iter().any(|asked| asked.held.is_err());
    Ok(if nobody || silent { Exit::Unable } else { Exit::Good })
}

fn line(asked: &[Asked], waiting: u64, options: &StatusOptions) -> String {
    let languages = listen::languages(&options.language);
    let words = Words::new(&languages.iter().map(String::as_str).collect::<Vec<_>>());
    let phrase = |key: &str, arguments: &[(&str, Argument<'_>)]| {
        words.phrase(&format!("terminal.status.{key}"), arguments).to_string()
    };
    let mut line = match waiting {
        _ if asked.iter().all(|asked| asked.held.is_err()) && options.hubs.urls.is_empty() => {
            return phrase("no_hub", &[]);
        }
        _ if asked.iter().all(|asked| asked.held.is_err()) => String::new(),
        0 => phrase("nothing", &[]),
        count => phrase("waits", &[("count", Argument::Count(count))]),
    };
    for asked in asked {
        if let Err(why) = &asked.held {
            let arguments = [("hub", Argument::Ours(&asked.hub)), ("why", Argument::Ours(why))];
            let between = if line.is_empty() { "" } else { " " };
            line = format!("{line}{between}{}", phrase("silent", &arguments));
        }
    }
    line
}

/// One character.
fn cell(nobody: bool, waiting: u64) -> char {
    match waiting {
        _ if nobody => '!',
        0 => '.',
        1..=9 => char::from_digit(u32::try_from(waiting).unwrap_or(9), 10).unwrap_or('+'),
        _ => '+',
    }
}

fn described(asked: &Asked) -> Value {
    match &asked.held {
        Ok(held) => json!({
            "hub": asked.hub, "name": held.name, "waiting": held.waiting, "sessions": held.sessions,
        }),
        Err(why) => json!({ "hub": asked.hub, "error": why }),
    }
}

/// The name of a hub, and whether it answers; or why not.
pub(crate) async fn reached(hub: Hub) -> (String, Result<(), String>) {
    let Asked { hub, held } = ask(hub).await;
    (hub, held.map(drop))
}

async fn ask(hub: Hub) -> Asked {
    let name = hub.name.to_string();
    let asked = tokio::time::timeout(ANSWERS_WITHIN, held(hub)).await;
    let late = || Err(ClientError::TooSlow.to_string());
    // What came over the wire is shown as what it is.
    let held = asked.unwrap_or_else(|_| late()).map_err(|why| safe(&why).text.into_owned());
    Asked { hub: name, held }
}

async fn held(hub: Hub) -> Result<HubStatus, String> {
    let told = |error: ClientError| error.to_string();
    let client = match &hub.address {
        Address::Http(base) => HttpClient::new(base, hub.options).map_err(told)?,
        #[cfg(unix)]
        Address::Socket(path) => {
            discovery::client(&format!("unix:{}", path.display()), hub.options).map_err(told)?
        }
        _ => return Err("name it by http:, https: or unix:".into()),
    };
    let answer = client.get("status").await.map_err(told)?;
    match answer.status.as_u16() {
        200 => {
            serde_json::from_slice(&answer.body).map_err(|_| "its answer cannot be read".to_owned())
        }
        401 | 403 => Err("it does not let you in".into()),
        404 => Err("it does not know this question".into()),
        status => Err(format!("it answered {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_character_says_it() {
        let cells = [(true, 0), (false, 0), (false, 1), (false, 9), (false, 10)];
        assert_eq!(cells.map(|(nobody, waiting)| cell(nobody, waiting)), ['!', '.', '1', '9', '+']);
    }
}
