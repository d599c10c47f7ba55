//! `aaep listen --notify` with a real bus, and a desktop on it that writes down what it is shown.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use zbus::OwnedVariant;

use crate::speech::installed;
use crate::stage::{Stage, event, request};
use crate::support::{PATIENCE, json};
use crate::{Piped, around, demo};

/// A bus of our own.
struct Bus {
    daemon: Child,
    address: String,
}

impl Bus {
    fn start() -> Self {
        let mut command = Command::new("dbus-daemon");
        command.args(["--session", "--nofork", "--print-address"]).stdout(Stdio::piped());
        let mut daemon = command.stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { daemon, address: address.trim().to_owned() }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

#[derive(Clone, Debug)]
struct Shown {
    title: String,
    body: String,
    actions: Vec<String>,
    urgent: bool,
    expires: i32,
}

/// What it was shown, by id; and what was closed.
type Seen = (Vec<Shown>, Vec<u32>);

#[derive(Clone, Default)]
struct Desktop(Arc<(Mutex<Seen>, Condvar)>);

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Desktop {
    fn get_capabilities(&self) -> Vec<String> {
        vec!["body".into(), "body-markup".into(), "actions".into()]
    }

    #[allow(clippy::too_many_arguments)] // as the desktop's specification has it
    fn notify(
        &self,
        _app_name: String,
        _replaces_id: u32,
        _app_icon: String,
        title: String,
        body: String,
        actions: Vec<String>,
        hints: BTreeMap<String, OwnedVariant>,
        expires: i32,
    ) -> u32 {
        let urgent = hints.get("urgency").and_then(|it| u8::try_from(it).ok()) == Some(2);
        let mut all = self.0.0.lock().unwrap();
        all.0.push(Shown { title, body, actions, urgent, expires });
        self.0.1.notify_all();
        u32::try_from(all.0.len()).unwrap()
    }

    fn close_notification(&self, id: u32) {
        self.0.0.lock().unwrap().1.push(id);
        self.0.1.notify_all();
    }
}

impl Desktop {
    fn wait<T>(&self, what: &str, ready: impl Fn(&Seen) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut all = self.0.0.lock().unwrap();
        loop {
            if let Some(found) = ready(&all) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {what}: {all:?}");
            all = self.0.1.wait_timeout(all, left).unwrap().0;
        }
    }
}

async fn serve(bus: &Bus, desktop: Desktop) -> zbus::Connection {
    zbus::connection::Builder::address(bus.address.as_str())
        .serve_at("/org/freedesktop/Notifications", desktop)
        .name("org.freedesktop.Notifications")
        .build()
        .await
        .unwrap()
}

// covers: T21, D34
#[test]
fn a_request_is_shown_with_its_words_and_no_way_to_accept_and_goes_when_it_is_settled() {
    if !installed("dbus-daemon") {
        return;
    }
    let bus = Bus::start();
    let desktop = Desktop::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _connection = runtime.block_on(serve(&bus, desktop.clone()));
    let stage = Stage::start();
    let variables = [("DBUS_SESSION_BUS_ADDRESS".to_owned(), bus.address.clone())];
    let arguments = ["--notify", "--trust-loopback", &stage.base];
    let mut listener = Piped::start(&arguments, &variables);
    stage.attached(1);
    stage.send(&event("session.started", 1, "sess_1", json!({ "summary_normal": "Begins." })));
    stage.send(&request(2, "sess_1", "Open <a href=\"http://x\">this</a> & <b>that</b>"));
    listener.sees("Type yes or no");
    let shown = desktop.wait("a notification", |(shown, _)| shown.first().cloned());
    assert_eq!(shown.title, "Request 1 from “Stage”");
    let action = "“Open &lt;a href=\"http://x\"&gt;this&lt;/a&gt; &amp; &lt;b&gt;that&lt;/b&gt;”";
    assert!(
        shown.body.starts_with(&format!("Allow this? {action}. It can be undone.")),
        "{shown:?}"
    );
    assert!(shown.body.ends_with("Answer it where you listen."), "{shown:?}");
    assert!(shown.actions.is_empty() && shown.urgent && shown.expires == 0, "{shown:?}");
    listener.types("no");
    desktop.wait("its end", |(_, closed)| (closed == &[1]).then_some(()));
    // A desktop that goes away is said once, and listening goes on.
    drop(bus);
    stage.send(&request(3, "sess_1", "Another thing"));
    listener.sees("Request 2 waits for you");
    listener.types("no");
    stage.reply("rpl_3");
    let until = Instant::now() + PATIENCE;
    while !listener.out.text().contains("Notifications cannot be shown: ") {
        assert!(Instant::now() < until, "{}", listener.out.text());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn without_a_desktop_it_is_said_what_to_do() {
    let hub = demo();
    let mut variables = around(&hub);
    variables.push(("DBUS_SESSION_BUS_ADDRESS".into(), "unix:path=/nowhere/bus".into()));
    let (code, out, err) = Piped::start(&["--notify"], &variables).ended();
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("leave out --notify"), "{err}");
}
