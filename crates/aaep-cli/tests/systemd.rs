//! `aaep hub` under a service manager.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // runs the command

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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
        println!("skipped: there is no systemd-analyze");
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
