//! A yes that waits for the person's PIN: typed once for the connection, never shown.

use std::io::Write;
use std::sync::Arc;

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::{Notification, Request, RequestHandle};
use aaep_types::presence::Pin;
use aaep_types::{Presence, PresenceWord};

use super::json;
use super::keyboard::Typed;
use super::shell::Shell;

/// A yes that is not sent before the PIN was right.
pub(super) struct PinEntry {
    id: RequestHandle,
    request: Arc<Request>,
    answer: Answer,
    typed: String,
    /// It was sent; what becomes of it is awaited.
    sent: bool,
}

impl<W: Write> Shell<'_, W> {
    // enforces: I34
    /// Whether an answer has to wait for the PIN; then it is asked for.
    pub(super) fn waits_for_pin(
        &mut self,
        id: RequestHandle,
        request: &Arc<Request>,
        answer: &Answer,
    ) -> bool {
        let needs = request.needs();
        self.pin.take_if(|entry| entry.id == id && !answer.accepts());
        if !answer.accepts() || needs < Presence::Pin {
            return false;
        }
        if needs > Presence::Pin {
            self.talk.pin("passkey", 0);
            self.talk.not_answered(request.number);
            return true;
        }
        if self.ears.is_unlocked(id) {
            return false;
        }
        // With one key, whatever is pressed would be taken for the PIN, and nothing else would be left.
        if self.talk.has_one_key() {
            self.talk.pin("one_key", 0);
            self.talk.not_answered(request.number);
            return true;
        }
        self.talk.pin("ask", 0);
        let (request, answer) = (request.clone(), answer.clone());
        self.pin = Some(PinEntry { id, request, answer, typed: String::new(), sent: false });
        if self.terminal.is_terminal() {
            // What was typed ahead was no PIN.
            self.keyboard.decoder.clear();
            self.terminal.discard();
        }
        true
    }

    /// Whether what is typed belongs to a PIN.
    pub(super) fn types_pin(&self) -> bool {
        self.pin.as_ref().is_some_and(|pin| !pin.sent)
    }

    /// Takes a key or a line of the PIN; false if there is none yet.
    pub(super) fn type_pin(&mut self) -> bool {
        let Some(pin) = &mut self.pin else { return false };
        let decoder = &mut self.keyboard.decoder;
        if !self.terminal.has_keys() {
            match decoder.line() {
                None => return false,
                Some(Typed::Line(line)) if self.json => pin.typed = json::pin(&line),
                Some(Typed::Line(line)) => pin.typed = line,
                Some(_) => pin.typed.clear(),
            }
            self.send_pin();
            return true;
        }
        match decoder.key() {
            None => return false,
            Some(Typed::Key('\r' | '\n')) => self.send_pin(),
            Some(Typed::Key('\u{8}' | '\u{7f}')) => drop(pin.typed.pop()),
            Some(Typed::Key(key)) if !key.is_control() => {
                pin.typed.push(key);
                // People who hear their keys hear that they typed, and not what.
                self.voices.speak(self.talk.pin_dot());
            }
            Some(Typed::Key(_)) => {}
            Some(_) => {
                decoder.reopen();
                self.leave_pin();
            }
        }
        true
    }

    fn send_pin(&mut self) {
        let Some(entry) = &mut self.pin else { return };
        let typed = std::mem::take(&mut entry.typed);
        let Ok(pin) = Pin::new(typed) else { return self.leave_pin() };
        entry.sent = true;
        if let Err(why) = self.ears.unlock(entry.id, &pin) {
            let number = entry.request.number;
            self.pin = None;
            self.talk.refused(number, &why);
        }
    }

    fn leave_pin(&mut self) {
        if let Some(entry) = self.pin.take() {
            self.talk.pin("left", 0);
            self.talk.not_answered(entry.request.number);
        }
    }

    /// Something happened that may concern a PIN.
    pub(super) fn pin_happened(&mut self, notification: &Notification) {
        match notification {
            Notification::Settled { request, .. } => {
                self.pin.take_if(|entry| entry.request.number == request.number);
            }
            Notification::Presence { state, seconds, .. } => {
                let Some(entry) = self.pin.take_if(|entry| entry.sent) else { return };
                let number = entry.request.number;
                match state {
                    PresenceWord::Unlocked => {
                        self.talk.pin("unlocked", *seconds);
                        match self.ears.answer(entry.id, entry.answer.clone()) {
                            Ok(()) => self.talk.was_sent(number, &entry.answer),
                            Err(why) => self.talk.refused(number, &why),
                        }
                    }
                    // It is no answer to what was typed here.
                    PresenceWord::Tried
                    | PresenceWord::Changed
                    | PresenceWord::PasskeyAdded
                    | PresenceWord::PasskeyRemoved => self.pin = Some(entry),
                    word => {
                        let key = match word {
                            PresenceWord::Unset => "unset",
                            PresenceWord::Wait => "wait",
                            _ => "wrong",
                        };
                        self.talk.pin(key, *seconds);
                        self.talk.not_answered(number);
                    }
                }
            }
            // A PIN that is on its way over a lost connection is typed again.
            Notification::Lost { .. } if !self.types_pin() => self.leave_pin(),
            _ => {}
        }
    }
}
