//! Requests as notifications of the desktop, for users who are in another window. They hold the question's
//! words and no buttons: nothing can be answered from them.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use zbus::{Connection, Variant};

/// The name of the service and of its interface, and where it is (freedesktop.org, version 1.2).
const SERVICE: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

/// How long the desktop may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// The longest text, in characters; the question itself is where one listens.
const BODY_CHARACTERS: usize = 1_000;

/// Critical: it stays until it is closed.
const URGENT: u8 = 2;

/// What is shown of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DesktopNotification {
    pub(super) title: String,
    pub(super) body: String,
}

enum Message {
    Show(u32, DesktopNotification),
    Close(u32),
}

/// Shows notifications. No call waits.
pub(super) struct DesktopNotifications(UnboundedSender<Message>);

impl DesktopNotifications {
    /// Finds the desktop. Faults after that are told to `fault`, once for each desktop that is lost.
    pub(super) async fn start(fault: impl Fn(String) + Send + 'static) -> Result<Self, String> {
        let desktop = Desktop::find().await.map_err(|why| {
            format!(
                "DesktopNotifications cannot be shown: {why} Start aaep listen inside a desktop session \
                 with a notification service, or leave out --notify."
            )
        })?;
        let (send, messages) = unbounded_channel();
        tokio::spawn(run(desktop, messages, fault));
        Ok(Self(send))
    }

    pub(super) fn show(&self, number: u32, notification: DesktopNotification) {
        let _ = self.0.send(Message::Show(number, notification));
    }

    pub(super) fn close(&self, number: u32) {
        let _ = self.0.send(Message::Close(number));
    }
}

/// Everything that is shown goes away with its owner.
async fn run(
    desktop: Desktop,
    mut messages: UnboundedReceiver<Message>,
    fault: impl Fn(String) + Send,
) {
    let mut desktop = Some(desktop);
    let mut shown: BTreeMap<u32, u32> = BTreeMap::new();
    while let Some(message) = messages.recv().await {
        if desktop.is_none() {
            desktop = Desktop::find().await.ok();
        }
        let Some(there) = &desktop else { continue };
        let done = match message {
            Message::Show(number, notification) => {
                let id = there.show(&notification, shown.get(&number).copied()).await;
                id.map(|id| {
                    shown.insert(number, id);
                })
            }
            Message::Close(number) => match shown.remove(&number) {
                Some(id) => there.close(id).await,
                None => Ok(()),
            },
        };
        if let Err(why) = done {
            desktop = None;
            shown.clear();
            fault(why);
        }
    }
    if let Some(there) = &desktop {
        for id in shown.into_values() {
            let _ = there.close(id).await;
        }
    }
}

/// A desktop that shows notifications.
struct Desktop {
    bus: Connection,
    /// Whether it reads signs such as `<b>` in a text.
    reads_markup: bool,
}

impl Desktop {
    async fn find() -> Result<Self, String> {
        let bus = timeout(ANSWERS_WITHIN, Connection::session()).await;
        let bus = bus.map_err(|_| late())?.map_err(|error| sentence(&error))?;
        let mut desktop = Self { bus, reads_markup: true };
        let told = desktop.call("GetCapabilities", &()).await?;
        let capabilities: Vec<String> =
            told.body().deserialize().map_err(|error| sentence(&error))?;
        desktop.reads_markup = capabilities.iter().any(|one| one == "body-markup");
        Ok(desktop)
    }

    async fn show(&self, one: &DesktopNotification, replaces: Option<u32>) -> Result<u32, String> {
        // enforces: L6
        let short = aaep_types::cut(&one.body, BODY_CHARACTERS);
        let body = if short.len() < one.body.len() { format!("{short}…") } else { short.into() };
        // enforces: D34
        // What an agent wrote is shown as it is: no link, no picture, no bold.
        let body = if self.reads_markup { escaped(&body) } else { body };
        let hints: BTreeMap<&str, Variant<'_>> = BTreeMap::from([
            ("urgency", Variant::from(URGENT)),
            ("category", Variant::from("im.received")),
            ("desktop-entry", Variant::from("aaep")),
        ]);
        // enforces: T21
        // No actions: a click answers nothing.
        let (actions, never): (&[&str], i32) = (&[], 0);
        let arguments =
            ("AAEP", replaces.unwrap_or(0), "", &one.title, &body, actions, hints, never);
        let told = self.call("Notify", &arguments).await?;
        told.body().deserialize().map_err(|error| sentence(&error))
    }

    async fn close(&self, id: u32) -> Result<(), String> {
        self.call("CloseNotification", &id).await.map(drop)
    }

    async fn call<B>(&self, method: &str, body: &B) -> Result<zbus::Message, String>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let call = self.bus.call_method(Some(SERVICE), PATH, Some(SERVICE), method, body);
        timeout(ANSWERS_WITHIN, call).await.map_err(|_| late())?.map_err(|error| sentence(&error))
    }
}

fn late() -> String {
    "the desktop does not answer.".into()
}

fn sentence(error: &dyn std::fmt::Display) -> String {
    format!("{}.", error.to_string().trim_end_matches('.'))
}

/// The text for a desktop that reads markup in it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_an_agent_is_shown_as_it_is() {
        assert_eq!(escaped("<a href=\"x\">A & B</a>"), "&lt;a href=\"x\"&gt;A &amp; B&lt;/a&gt;");
    }
}
