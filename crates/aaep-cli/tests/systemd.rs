//! `aaep hub` under a service manager.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // runs the command

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[path = "../../../testing/skipped.rs"]
mod skipped;

use skipped::skipped;

/// A hub that is killed with the test.
struct Hub(Child);

impl Hub {
    fn start(directory: &Path, notify: &str) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_aaep"))
            .args(["hub", "--ephemeral", "--listen", "127.0.0.1:0"])
            .env("AAEP_UNIX_SOCKET__ENABLED", "false")
            .env("HOME", directory)
            .env("XDG_CONFIG_HOME", directory)
            .env("NOTIFY_SOCKET", notify)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn terminate(&mut self) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn heard(socket: &UnixDatagram) -> String {
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut room = [0; 256];
    let length = socket.recv(&mut room).unwrap();
    String::from_utf8(room[..length].to_vec()).unwrap()
}

#[test]
fn the_service_manager_hears_that_it_is_ready_and_that_it_stops() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut hub = Hub::start(directory.path(), path.to_str().unwrap());
    assert_eq!(heard(&socket), "READY=1");
    hub.terminate();
    assert_eq!(heard(&socket), "STOPPING=1");
}

#[cfg(target_os = "linux")]
#[test]
fn its_socket_may_be_an_abstract_one() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let directory = tempfile::tempdir().unwrap();
    let name = format!("aaep-notify-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let mut hub = Hub::start(directory.path(), &format!("@{name}"));
    assert_eq!(heard(&socket), "READY=1");
    hub.terminate();
}

#[test]
fn a_service_manager_that_is_gone_stops_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let gone = directory.path().join("gone");
    let mut hub = Command::new(env!("CARGO_BIN_EXE_aaep"));
    hub.args(["hub", "--ephemeral", "--listen", "127.0.0.1:0"])
        .env("AAEP_UNIX_SOCKET__ENABLED", "false")
        .env("HOME", directory.path())
        .env("XDG_CONFIG_HOME", directory.path())
        .env("NOTIFY_SOCKET", &gone)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut hub = Hub(hub.spawn().unwrap());
    let out = std::io::BufReader::new(hub.0.stdout.take().unwrap());
    let lines = std::io::BufRead::lines(out);
    assert!(lines.map(Result::unwrap).any(|line| line.starts_with("Ready.")));
    hub.terminate();
}

/// The units that are installed with the package.
fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd")
}

#[test]
fn systemd_understands_the_units() {
    let analyze = Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status();
    if analyze.is_err() {
        skipped("there is no systemd-analyze");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (file, arguments) in
        [("system/aaep-hub.service", vec![]), ("user/aaep-hub.service", vec!["--user"])]
    {
        // Where the package puts the command there is none here.
        let text = std::fs::read_to_string(units().join(file)).unwrap();
        assert!(text.contains("ExecStart=/usr/bin/aaep hub"), "{file}");
        let text = text.replace("/usr/bin/aaep", env!("CARGO_BIN_EXE_aaep"));
        let unit = directory.path().join(file);
        std::fs::create_dir_all(unit.parent().unwrap()).unwrap();
        std::fs::write(&unit, text).unwrap();
        let output = Command::new("systemd-analyze")
            .args(&arguments)
            .args(["verify", "--man=no"])
            .arg(&unit)
            .env("XDG_RUNTIME_DIR", directory.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("aaep-hub.service"), "{file}: {said}");
    }
}

#[test]
fn the_unit_of_the_system_gives_the_hub_every_place_that_it_needs() {
    let text = std::fs::read_to_string(units().join("system/aaep-hub.service")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let moved = |text: &str| {
        let text = text.replace("/var/lib/aaep", place("lib").to_str().unwrap());
        let text = text.replace("/run/aaep", place("run").to_str().unwrap());
        text.replace("/etc/aaep", place("etc").to_str().unwrap())
    };
    let values = |key: &'static str| text.lines().filter_map(move |line| line.strip_prefix(key));
    // What systemd makes, with the mode that it is told.
    let private = |path: &Path| {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).unwrap();
    };
    for name in values("StateDirectory=").flat_map(str::split_whitespace) {
        let name = name.strip_prefix("aaep").unwrap().trim_start_matches('/');
        private(&place("lib").join(name));
    }
    assert_eq!(values("RuntimeDirectory=").collect::<Vec<_>>(), ["aaep"]);
    private(&place("run"));
    private(&place("etc"));
    std::fs::write(place("etc/aaep.toml"), "listen = [\"127.0.0.1:0\"]\n").unwrap();
    let start = moved(values("ExecStart=").next().unwrap());
    let mut words = start.split_whitespace();
    assert_eq!(words.next(), Some("/usr/bin/aaep"));
    let notify = place("notify");
    let socket = UnixDatagram::bind(&notify).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    // A home in which nothing can be made, as for the user that systemd gives it.
    command.args(words).env_clear().env("HOME", "/proc/none").env("NOTIFY_SOCKET", &notify);
    for variable in values("Environment=") {
        let (name, value) = variable.split_once('=').unwrap();
        command.env(name, moved(value));
    }
    let log = std::fs::File::create(place("log")).unwrap();
    let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let mut hub = Hub(child);
    assert_eq!(heard(&socket), "READY=1", "{}", std::fs::read_to_string(place("log")).unwrap());
    let heads = std::fs::read_dir(place("lib/state/heads")).unwrap().count();
    assert!(heads > 0, "what is noted outside of the data has a place");
    assert!(place("run/aaep-hub.sock").exists() && place("lib/data/journal.db").exists());
    hub.terminate();
}
