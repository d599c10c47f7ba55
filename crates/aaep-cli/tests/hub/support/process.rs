//! The process `aaep hub`: started in a directory of its own, ended at the end, heard all the time.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::people::{Person, client, principals};
use super::{Agent, HttpClient, PATIENCE};

/// How many lines of its log are shown when a test fails.
const SHOWN_LINES: usize = 100;

/// How a hub is started.
pub struct Setup {
    toml: String,
    principals: String,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
}

impl Default for Setup {
    /// On a free port, with every principal, logging what it does.
    fn default() -> Self {
        Self {
            toml: String::new(),
            principals: principals(),
            // A test is agent and listener at once.
            environment: vec![
                ("AAEP_LOG".into(), "debug".into()),
                ("AAEP_DEVELOPMENT__OWN_REPLIES".into(), "true".into()),
            ],
            arguments: ["--ephemeral", "--listen", "127.0.0.1:0"].map(String::from).to_vec(),
        }
    }
}

impl Setup {
    /// One that keeps what it is told, in the directory in which it is started.
    pub fn durable() -> Self {
        Self::default().arguments(&["--listen", "127.0.0.1:0"])
    }

    /// With this at the top of its configuration.
    pub fn toml(mut self, toml: &str) -> Self {
        self.toml += toml;
        self.toml += "\n";
        self
    }

    /// With this environment variable.
    pub fn set(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((name.into(), value.to_string()));
        self
    }

    /// Without an environment variable that tests usually set.
    pub fn unset(mut self, name: &str) -> Self {
        self.environment.retain(|(set, _)| set != name);
        self
    }

    /// With another bound.
    pub fn limit(self, name: &str, value: impl ToString) -> Self {
        self.set(&format!("AAEP_LIMITS__{}", name.to_uppercase()), value)
    }

    /// With these arguments and no others.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
        self
    }

    /// With these principals and no others.
    pub fn principals(mut self, toml: &str) -> Self {
        self.principals = toml.into();
        self
    }

    pub fn config(&self) -> String {
        format!("{}\n{}", self.toml, self.principals)
    }

    /// The command, with its configuration in this directory.
    pub fn command(&self, directory: &Path) -> Command {
        use std::os::unix::fs::DirBuilderExt;
        let run = directory.join("run");
        let _ = std::fs::DirBuilder::new().mode(0o700).create(&run);
        let config = directory.join("aaep.toml");
        std::fs::write(&config, self.config()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.arg("hub").arg("--config").arg(&config).args(&self.arguments);
        command.env_clear().env("HOME", directory).env("XDG_RUNTIME_DIR", &run);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a hub that does not start: its exit status, and what it said.
    pub fn fails(&self) -> (i32, String) {
        let directory = tempfile::tempdir().unwrap();
        self.fails_in(directory.path())
    }

    /// The same in a directory that is there.
    pub fn fails_in(&self, directory: &Path) -> (i32, String) {
        let mut command = self.command(directory);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let err = Lines::of(child.stderr.take().unwrap());
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the hub started: {:?}", err.all());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        out.wait_for_end();
        err.wait_for_end();
        assert!(out.all().is_empty(), "{:?}", out.all());
        (status.code().unwrap(), err.all().join("\n") + "\n")
    }
}

/// Lines that a process has printed so far.
#[derive(Default)]
pub struct Lines {
    lines: Mutex<(Vec<String>, bool)>,
    more: Condvar,
}

impl Lines {
    fn of(source: impl std::io::Read + Send + 'static) -> Arc<Self> {
        let lines = Arc::new(Self::default());
        let reader = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(source).split(b'\n').map_while(Result::ok) {
                reader.lines.lock().unwrap().0.push(String::from_utf8_lossy(&line).into_owned());
                reader.more.notify_all();
            }
            reader.lines.lock().unwrap().1 = true;
            reader.more.notify_all();
        });
        lines
    }

    fn find(&self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        self.find_after(0, wanted)
    }

    /// Waits for a line after so many; `None` if it did not come.
    fn find_after(&self, skip: usize, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let until = Instant::now() + PATIENCE;
        let mut lines = self.lines.lock().unwrap();
        loop {
            if let Some(line) = lines.0.iter().skip(skip).find(|line| wanted(line)) {
                return Some(line.clone());
            }
            let left = until.saturating_duration_since(Instant::now());
            if lines.1 || left.is_zero() {
                return None;
            }
            lines = self.more.wait_timeout(lines, left).unwrap().0;
        }
    }

    fn all(&self) -> Vec<String> {
        self.lines.lock().unwrap().0.clone()
    }

    /// Waits until nothing more can come.
    fn wait_for_end(&self) {
        let _ = self.find(|_| false);
    }
}

/// A running hub.
pub struct Hub {
    child: Mutex<Child>,
    process: u32,
    out: Arc<Lines>,
    log: Arc<Lines>,
    directory: Arc<TempDir>,
    shown: AtomicBool,
}

impl Hub {
    /// A hub that tests share while there are any; the last one ends it.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Hub>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(hub) = shared.upgrade() {
            return hub;
        }
        let hub = Self::start(Setup::default());
        *shared = Arc::downgrade(&hub);
        hub
    }

    /// Starts one, and waits until it is ready.
    pub fn start(setup: Setup) -> Arc<Self> {
        Self::start_in(setup, tempfile::tempdir().unwrap())
    }

    /// The same in a directory that is there.
    pub fn start_in(setup: Setup, directory: impl Into<Arc<TempDir>>) -> Arc<Self> {
        let directory = directory.into();
        Self::start_with(setup.command(directory.path()), directory)
    }

    /// The same by another command, which is made of the usual one.
    pub fn start_by(directory: TempDir, by: impl Fn(&Command) -> Command) -> Arc<Self> {
        let mut command = by(&Setup::default().command(directory.path()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::start_with(command, directory.into())
    }

    /// The same by this command.
    pub fn start_with(mut command: Command, directory: Arc<TempDir>) -> Arc<Self> {
        let mut child = command.spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let log = Lines::of(child.stderr.take().unwrap());
        let (process, shown) = (child.id(), AtomicBool::new(false));
        let hub = Self { child: Mutex::new(child), process, out, log, directory, shown };
        if hub.out.find(|line| line.starts_with("Ready.")).is_none() {
            panic!("the hub did not start: {:#?}", hub.log.all());
        }
        Arc::new(hub)
    }

    fn greeting(&self, name: &str) -> String {
        let line = self.out.find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].trim().to_owned()
    }

    /// Everything that it has printed so far.
    pub fn said(&self) -> Vec<String> {
        self.out.all()
    }

    /// The home directory that it was given.
    pub fn home(&self) -> &Path {
        self.directory.path()
    }

    /// The base of its API.
    pub fn base(&self) -> String {
        self.greeting("Listening:")
    }

    /// Where it listens for gRPC.
    pub fn grpc(&self) -> String {
        self.greeting("gRPC:")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        let base = self.base();
        let authority = base.split('/').nth(2).unwrap();
        authority.parse().unwrap()
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.greeting("Socket:").into()
    }

    /// Its directory, to start another one in.
    pub fn shared_directory(&self) -> Arc<TempDir> {
        self.directory.clone()
    }

    /// Its directory, with `aaep.toml`.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A client without a token.
    pub fn anonymous(&self) -> HttpClient {
        client(&self.base(), None)
    }

    /// A client outside the base, for `/metrics` and the like.
    pub fn outside(&self, token: Option<&str>) -> HttpClient {
        client(&self.base().replace("/aaep/v1", "/"), token)
    }

    /// An agent without a token.
    pub fn local_agent(&self) -> Agent {
        Agent::new(self.anonymous(), "local")
    }

    /// Somebody whom no other test knows.
    pub fn person(self: &Arc<Self>) -> Person {
        Person::new(self)
    }

    /// Sends it a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        kill.arg(format!("-{name}")).arg(self.process.to_string());
        assert!(kill.status().unwrap().success());
    }

    /// Ends it as a power cut would, but for what the system still has in its memory.
    pub fn kill(&self) {
        self.child.lock().unwrap().kill().unwrap();
        self.ended();
    }

    /// Its number.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// What it printed when it began.
    pub fn greetings(&self) -> Vec<String> {
        self.out.all()
    }

    /// Waits for its end.
    pub fn ended(&self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.lock().unwrap().try_wait().unwrap() {
                self.log.wait_for_end();
                return status;
            }
            assert!(Instant::now() < until, "the hub does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether it still runs.
    pub fn is_up(&self) -> bool {
        self.child.lock().unwrap().try_wait().unwrap().is_none()
    }

    /// Waits until it logs a line with all of these.
    pub fn logs(&self, words: &[&str]) -> String {
        self.logs_after(0, words)
    }

    /// The same, after so many lines.
    pub fn logs_after(&self, skip: usize, words: &[&str]) -> String {
        let found = self.log.find_after(skip, |line| words.iter().all(|word| line.contains(word)));
        found.unwrap_or_else(|| panic!("no line with {words:?} in {:#?}", self.log.all()))
    }

    /// Everything that it has logged so far.
    pub fn log(&self) -> Vec<String> {
        self.log.all()
    }

    /// A panic of a connection takes only that connection with it, so the hub looks well: the log knows.
    pub fn has_not_panicked(&self) {
        let panicked = self.log.all().into_iter().find(|line| line.contains("panicked at"));
        assert_eq!(panicked, None, "the hub panicked");
    }

    /// Shows its log, once, if the test has failed.
    pub fn show_if_failed(&self) {
        if std::thread::panicking() && !self.shown.swap(true, Ordering::Relaxed) {
            let lines = self.log.all();
            eprintln!("--- the hub's log ---");
            for line in lines.iter().skip(lines.len().saturating_sub(SHOWN_LINES)) {
                eprintln!("{line}");
            }
        }
    }

    /// Kilobytes of memory that are its own now; `None` where nobody tells.
    pub fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process)).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let _ = child.kill();
        let _ = child.wait();
        drop(child);
        self.show_if_failed();
        if !std::thread::panicking() {
            self.has_not_panicked();
        }
    }
}
