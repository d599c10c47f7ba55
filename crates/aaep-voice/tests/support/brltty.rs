//! A real BRLTTY whose display is a socket of ours.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::PATIENCE;

pub struct Brltty {
    child: Child,
    directory: tempfile::TempDir,
    display: TcpStream,
    port: u16,
    number: u16,
    shown: Arc<Mutex<Vec<(Instant, String)>>>,
}

/// A free port.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn try_connect(port: u16, patience: Duration) -> std::io::Result<TcpStream> {
    let until = Instant::now() + patience;
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            connected => return connected,
        }
    }
}

fn connect(port: u16) -> TcpStream {
    try_connect(port, PATIENCE).expect("BRLTTY listens")
}

/// BRLTTY on two free ports, and these. Somebody else may take one before BRLTTY does; then there are
/// others.
fn spawn_somewhere(directory: &std::path::Path) -> (Child, u16, u16) {
    for _ in 0..3 {
        let (port, api) = (free_port(), free_port().max(4102));
        let number = api - 4101;
        let mut child = spawn(directory, port, number);
        // The display's port has room for one, and that is not tried.
        if try_connect(api, PATIENCE / 3).is_ok() {
            return (child, port, number);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("BRLTTY does not listen");
}

impl Brltty {
    pub fn start(cells: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (child, port, number) = spawn_somewhere(directory.path());
        let shown = Arc::default();
        let display = plug(port, cells, &shown);
        Self { child, directory, display, port, number, shown }
    }

    /// As `BRLAPI_HOST` has it.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }

    pub fn unplug(&mut self) {
        let _ = self.display.shutdown(Shutdown::Both);
        // BRLTTY notices when it writes.
        std::thread::sleep(Duration::from_millis(300));
    }

    pub fn plug(&mut self, cells: usize) {
        self.display = plug(self.port, cells, &self.shown);
    }

    pub fn restart(&mut self, cells: usize) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.display.shutdown(Shutdown::Both);
        self.shown.lock().unwrap().clear();
        self.child = spawn(self.directory.path(), self.port, self.number);
        self.plug(cells);
    }

    /// Presses a key by BRLTTY's name for it.
    pub fn press(&mut self, key: &str) {
        self.display.write_all(format!("{key}\n").as_bytes()).unwrap();
    }

    /// Waits until the display shows this; when it came.
    #[track_caller]
    pub fn shows(&self, text: &str) -> Instant {
        self.wait(text, |shown| shown == text)
    }

    /// Waits until the display has shown something with this, however short: a message gives way to the
    /// next one. The last of these.
    #[track_caller]
    pub fn showed(&self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown.lock().unwrap();
            if let Some((_, found)) = shown.iter().rfind(|(_, shown)| shown.contains(text)) {
                return found.clone();
            }
            assert!(Instant::now() < until, "{text:?} was not shown, but {:#?}", *shown);
            drop(shown);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the display shows something else than this, and gives it.
    #[track_caller]
    pub fn shows_other_than(&self, text: &str) -> String {
        self.wait("something else", |shown| shown != text);
        self.shown.lock().unwrap().last().unwrap().1.clone()
    }

    #[track_caller]
    pub fn shows_like(&self, text: &str) -> Instant {
        self.wait(text, |shown| shown.contains(text))
    }

    /// Waits until the display shows something with this, and gives all of it.
    #[track_caller]
    pub fn now_shows(&self, text: &str) -> String {
        self.shows_like(text);
        self.shown.lock().unwrap().last().unwrap().1.clone()
    }

    #[track_caller]
    fn wait(&self, what: &str, fits: impl Fn(&str) -> bool) -> Instant {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown.lock().unwrap();
            if let Some((at, _)) = shown.last().filter(|(_, text)| fits(text)) {
                return *at;
            }
            assert!(Instant::now() < until, "{what:?} is not shown, but {:#?}", *shown);
            drop(shown);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn spawn(directory: &std::path::Path, port: u16, number: u16) -> Child {
    let mut command = Command::new("brltty");
    command.args([
        "-n",
        "-q",
        "-e",
        "-E",
        "-l",
        "error",
        "-f",
        "/dev/null",
        "-b",
        "vr",
        "-x",
        "no",
    ]);
    command.args(["-s", "no", "-d", &format!("server:127.0.0.1:{port}")]);
    command.args(["-A", &format!("auth=none,host=127.0.0.1:{number}")]);
    command.arg("-P").arg(directory.join("pid")).arg("-L").arg(directory.join("log"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn plug(port: u16, cells: usize, shown: &Arc<Mutex<Vec<(Instant, String)>>>) -> TcpStream {
    let mut display = connect(port);
    display.write_all(format!("cells {cells}\n").as_bytes()).unwrap();
    let (lines, shown) = (BufReader::new(display.try_clone().unwrap()), shown.clone());
    std::thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            let text = line.trim_end_matches('\r').strip_prefix("Visual \"");
            if let Some(text) = text.and_then(|text| text.strip_suffix('"')) {
                shown.lock().unwrap().push((Instant::now(), text.to_owned()));
            }
        }
    });
    display
}

impl Drop for Brltty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
