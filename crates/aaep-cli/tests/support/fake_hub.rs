//! A program in the hub's place, run by another user of this machine.
#![allow(dead_code)] // each test file uses its part

use crate::skipped::skipped;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// A user that owns nothing here.
pub const NOBODY: &str = "65534";

/// What is said in the place of the decider's name.
pub const WORDS: &str = "your own hand";

/// A program that answers yes to everything.
pub struct FakeHub {
    child: Child,
    pub port: u16,
    got: Arc<Mutex<Vec<u8>>>,
}

impl FakeHub {
    /// One of another user; `None`, with the reason printed, where no process can become one.
    pub fn of_nobody(address: &str) -> Option<Self> {
        let own = Command::new("id").arg("-u").output().unwrap();
        if own.stdout != b"0\n" {
            skipped("only root can run a program as another user.");
            return None;
        }
        Some(Self::start(&[address, WORDS, NOBODY]))
    }

    /// One of our own user, with these words.
    pub fn of_ours(words: &str) -> Self {
        Self::start(&["0", words])
    }

    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", include_str!("fake_hub.py")])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.next().unwrap().unwrap();
        let port = ready.strip_prefix("ready ").unwrap().parse().unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let heard = got.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let digits = line.strip_prefix("got ").unwrap().as_bytes().chunks(2);
                let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16);
                heard.lock().unwrap().extend(digits.map(|two| byte(two).unwrap()));
            }
        });
        Self { child, port, got }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Everything that it was sent.
    pub fn got(&self) -> String {
        String::from_utf8_lossy(&self.got.lock().unwrap()).into_owned()
    }
}

impl Drop for FakeHub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
