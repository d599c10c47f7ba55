//! The hub with its usual bounds and two tenants, and the attackers, as processes.

use std::future::pending;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use aaep_hub::Hub;
use aaep_hub::access::Token;
use aaep_hub::config::Config;

/// Tokens, known to the load and worth nothing outside of it.
pub const QUIET_READER: &str = "aaep_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
pub const QUIET_AGENT: &str = "aaep_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";
pub const HOSTILE_READER: &str = "aaep_CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC";
pub const HOSTILE_AGENT: &str = "aaep_DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD";

/// What the child process does: serve until its input ends, so that it never outlives the load.
pub fn serve() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    let base = std::env::var_os("AAEP_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let directory = tempfile::tempdir_in(base).expect("a directory");
    // It ends with the process, which does not clean up.
    println!("{}", directory.path().display());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        // The usual bounds, but for how often one person may be asked and answer: a benchmark is no
        // person.
        let mut text = String::from(
            r#"
            listen = ["127.0.0.1:0"]
            allowed_hosts = ["localhost"]
            [unix_socket]
            enabled = false
            [limits]
            prompts_per_window = 4000000
            replies_per_second = 200
            "#,
        );
        for (name, role, user, token) in [
            ("reader", "accessibility_consumer", "quiet", QUIET_READER),
            ("worker", "agent", "quiet", QUIET_AGENT),
            ("loud-reader", "accessibility_consumer", "hostile", HOSTILE_READER),
            ("loud-worker", "agent", "hostile", HOSTILE_AGENT),
        ] {
            let hash = Token::parse(token).expect("a token").hash().to_hex();
            text += &format!(
                "[[principals]]\nname = \"{name}\"\nrole = \"{role}\"\nuser = \"{user}\"\ntoken_sha256 = \"{hash}\"\n"
            );
        }
        let mut config: Config = toml::from_str(&text).expect("a configuration");
        config.data = Some(directory.path().join("data"));
        config.state = Some(directory.path().join("state"));
        let running = Hub::builder().config(config).start().await.expect("a hub");
        println!("{}", running.addresses()[0]);
        pending::<()>().await;
    });
}

/// A running hub; it ends when this is dropped, and its files with it.
pub struct Server {
    child: Child,
    directory: String,
    pub address: SocketAddr,
}

impl Server {
    pub fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a program"));
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("its words")).lines();
        let mut line = || lines.next().expect("a line").expect("its words");
        let (directory, address) = (line(), line().parse().expect("an address"));
        Self { child, directory, address }
    }

    /// Bytes in memory.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("/proc");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// An attack in a process of the lowest priority; it ends when this is dropped, or by itself.
pub struct Attackers(Child);

impl Attackers {
    pub fn start(name: &str, address: SocketAddr, seconds: u64) -> Self {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(std::env::current_exe().expect("a program"));
        command.args(["attack", name, &address.to_string(), &seconds.to_string()]);
        Self(command.spawn().expect("a process"))
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
