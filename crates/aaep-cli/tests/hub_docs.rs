//! The commands in docs/hub.md do what the text says.
#![cfg(unix)] // they are those of a Unix shell
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // tests run programs

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use support::{folder, root};

/// A hub that ends with the test.
struct Hub(Child);

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every block of shell commands, in their order.
fn blocks(document: &str) -> String {
    let mut script = String::new();
    let mut inside = false;
    for line in document.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside => script += &format!("{line}\n"),
            _ => {}
        }
    }
    script
}

// covers: W4, W8
#[test]
fn every_command_of_the_page_works_in_its_order() {
    let document = std::fs::read_to_string(root().join("docs/hub.md")).expect("docs/hub.md");
    let script = blocks(&document);
    assert!(script.matches("curl").count() >= 10, "the page shows its commands");
    let folder = folder("hub-docs");
    let mut hub = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["hub", "--ephemeral", "--listen", "127.0.0.1:0"])
        .env("AAEP_DEVELOPMENT__LOCAL_REPLIES", "true")
        .env("AAEP_UNIX_SOCKET__ENABLED", "false")
        .env("XDG_CONFIG_HOME", &folder)
        .stdout(Stdio::piped())
        .spawn()
        .map(Hub)
        .expect("the hub starts");
    let lines = BufReader::new(hub.0.stdout.take().expect("its output")).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("Listening: ").map(str::to_owned))
        .expect("it says where it listens");
    let done = Command::new("timeout")
        .args(["60", "sh", "-eu", "-c", &script])
        .current_dir(&folder)
        .env("HUB", address)
        .output()
        .expect("a shell");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{}\n{out}\n{err}", done.status);
    assert!(out.contains("\"status\":\"completed\""), "{out}\n{err}");
}
