//! How lines are printed. In a terminal the newline comes before a line, not after it.
//!
//! Screen readers tell output from other changes of the screen by the cursor: what ends at the cursor
//! was just written. With a newline behind each line, Orca was silent when a request came, because the
//! cursor stood in an empty line below; and a braille display that follows the cursor showed that empty
//! line.

use std::io::{self, Write};

pub(super) struct Printer<'o, W: Write> {
    out: &'o mut W,
    /// Whether it is printed in a terminal.
    terminal: bool,
    /// Whether the cursor stands behind something.
    behind_text: bool,
    /// Whether what is typed now stands apart from what was printed.
    apart: bool,
}

impl<'o, W: Write> Printer<'o, W> {
    pub(super) fn new(out: &'o mut W, terminal: bool) -> Self {
        Self { out, terminal, behind_text: false, apart: false }
    }

    /// A line.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        if !self.terminal {
            return writeln!(self.out, "{text}");
        }
        self.end_line()?;
        self.behind_text = true;
        write!(self.out, "{text}")
    }

    /// The cursor goes to the beginning of a line, if it is not there.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        self.apart = false;
        if std::mem::take(&mut self.behind_text) { writeln!(self.out) } else { Ok(()) }
    }

    /// Room for what is typed behind the last line.
    pub(super) fn room(&mut self) -> io::Result<()> {
        if !self.behind_text || std::mem::replace(&mut self.apart, true) {
            return Ok(());
        }
        write!(self.out, " ")
    }

    /// The terminal has shown an Enter.
    pub(super) fn entered(&mut self) {
        (self.behind_text, self.apart) = (false, false);
    }

    /// Somebody may be typing in this line.
    pub(super) fn typing(&mut self) {
        self.behind_text = self.terminal;
    }

    pub(super) fn bell(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x07")
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(terminal: bool, act: impl FnOnce(&mut Printer<'_, Vec<u8>>)) -> String {
        let mut out = Vec::new();
        act(&mut Printer::new(&mut out, terminal));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn in_a_terminal_the_cursor_stays_behind_what_was_printed_last() {
        let both = |printer: &mut Printer<'_, Vec<u8>>| {
            printer.line("one").unwrap();
            printer.line("two").unwrap();
        };
        assert_eq!(printed(true, both), "one\ntwo");
        assert_eq!(printed(false, both), "one\ntwo\n");
        let ended = printed(true, |printer| {
            both(printer);
            printer.end_line().unwrap();
            printer.end_line().unwrap();
        });
        assert_eq!(ended, "one\ntwo\n");
    }

    #[test]
    fn what_is_typed_stands_behind_the_line_that_asks_for_it() {
        let asked = printed(true, |printer| {
            printer.line("Your answer?").unwrap();
            printer.room().unwrap();
            printer.room().unwrap();
            // Lagos, Enter.
            printer.entered();
            printer.line("Sent.").unwrap();
        });
        assert_eq!(asked, "Your answer? Sent.");
        let interrupted = printed(true, |printer| {
            printer.entered();
            // "La", and something comes.
            printer.typing();
            printer.line("Cancelled.").unwrap();
        });
        assert_eq!(interrupted, "\nCancelled.");
        assert_eq!(printed(false, |printer| printer.room().unwrap()), "");
    }
}
