//! `aaep listen` in a real pseudo-terminal: what a terminal shows of it, and what is typed there.

use std::io::Write;
use std::num::NonZeroU16;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::Written;
use crate::support::PATIENCE;

/// So wide that no line is broken.
const COLUMNS: u16 = 2000;

/// Everything that a terminal was asked to do besides showing text.
#[derive(Default)]
pub struct Asked(pub Vec<String>);

impl vt100::Callbacks for Asked {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("bell".into());
    }
    fn visual_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("visual bell".into());
    }
    fn resize(&mut self, _: &mut vt100::Screen, _: (u16, u16)) {
        self.0.push("resize".into());
    }
    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, name: &[u8]) {
        self.0.push(format!("icon {name:?}"));
    }
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0.push(format!("title {title:?}"));
    }
    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.0.push(format!("clipboard {data:?}"));
    }
    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("paste".into());
    }
    fn unhandled_char(&mut self, _: &mut vt100::Screen, sign: char) {
        self.0.push(format!("char {sign:?}"));
    }
    fn unhandled_control(&mut self, _: &mut vt100::Screen, byte: u8) {
        self.0.push(format!("control {byte}"));
    }
    fn unhandled_escape(&mut self, _: &mut vt100::Screen, _: Option<u8>, _: Option<u8>, byte: u8) {
        self.0.push(format!("escape {byte}"));
    }
    fn unhandled_csi(
        &mut self,
        _: &mut vt100::Screen,
        _: Option<u8>,
        _: Option<u8>,
        _: &[&[u16]],
        sign: char,
    ) {
        self.0.push(format!("csi {sign}"));
    }
    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        self.0.push(format!("osc {parameters:?}"));
    }
}

pub struct Tty {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    seen: Written,
    /// Up to where it was looked at.
    looked: usize,
    found: String,
}

impl Tty {
    /// Starts the command with nothing around it but these variables.
    pub fn start(arguments: &[&str], variables: &[(String, String)]) -> Self {
        Self::start_in(COLUMNS, arguments, variables)
    }

    /// The same in a terminal of so many columns.
    pub fn start_in(cols: u16, arguments: &[&str], variables: &[(String, String)]) -> Self {
        let size = PtySize { rows: 24, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_aaep"));
        command.arg("listen");
        command.args(arguments);
        command.env_clear();
        command.cwd(env!("CARGO_TARGET_TMPDIR"));
        command.env("TERM", "xterm-256color");
        variables.iter().for_each(|(name, value)| command.env(name, value));
        let found = format!("{:?}", pair.master.get_termios().unwrap());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let seen = Written::by(pair.master.try_clone_reader().unwrap());
        let keyboard = pair.master.take_writer().unwrap();
        Self { child, master: pair.master, keyboard, seen, looked: 0, found }
    }

    /// Presses these keys.
    pub fn types(&mut self, keys: &str) -> &mut Self {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
        self
    }

    /// Waits until this is written, after what was found before; gives everything up to the end of
    /// its line.
    #[track_caller]
    pub fn sees(&mut self, wanted: &str) -> String {
        let (text, end) = self.seen.find_open(self.looked, wanted);
        self.looked = end;
        text
    }

    /// Everything that was written so far, as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen.bytes()
    }

    /// Everything that was written so far.
    pub fn all(&self) -> String {
        self.seen.text()
    }

    /// What a terminal makes of it: the text of all lines, where the cursor is, and what else it was
    /// asked to do.
    pub fn shown(&self) -> (String, (u16, u16), Vec<String>) {
        // So large that no line is broken or leaves it.
        let all = self.all();
        let widest = all.lines().map(|line| 2 * line.chars().count()).max().unwrap_or(0);
        let size = |number| NonZeroU16::new(u16::try_from(number).unwrap() + 10).unwrap();
        let mut terminal = vt100::Parser::new_with_callbacks(
            size(all.lines().count()),
            size(widest),
            0,
            Asked::default(),
        );
        terminal.process(&self.bytes());
        let screen = terminal.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
        let formatted = screen.contents_formatted_basic();
        assert!(!formatted.contains("\u{1b}[3") && !formatted.contains("\u{1b}[1m"), "colour");
        (screen.contents(), screen.cursor_position(), terminal.callbacks().0.clone())
    }

    /// How the terminal is set up now.
    pub fn is_as_found(&self) -> bool {
        format!("{:?}", self.master.get_termios().unwrap()) == self.found
    }

    pub fn process(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    pub fn signal(&self, name: &str) {
        crate::signal(self.process(), name);
    }

    /// Waits for its end: its exit status.
    pub fn ended(&mut self) -> u32 {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.all());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
