//! What is said while a yes waits for the PIN.

use aaep_subscriber::words::Argument;
use aaep_voice::utterance::{Class, Utterance};

use super::Talk;
use super::saying::About;

impl Talk {
    /// Says what has to be done about a PIN, or what became of one.
    pub(crate) fn pin(&mut self, key: &str, seconds: u64) {
        self.say(format!("pin.{key}"), &[("count", Argument::Count(seconds))]);
    }

    /// What is said for each character of a PIN.
    pub(crate) fn pin_dot(&self) -> Utterance {
        let said = self.words.phrase("terminal.pin.dot", &[]);
        self.utterance(&said, &About::new(Class::Feedback))
    }

    /// An answer was not sent: the request waits as before.
    pub(crate) fn not_answered(&mut self, number: u32) {
        let Some(open) = self.find_mut(number) else { return };
        (open.sent, open.unproven) = (false, false);
        self.opens(number);
        self.focus = Some(number);
    }

    /// A PIN is being typed, or no longer. Nothing else is said meanwhile that can wait.
    pub(crate) fn types_pin(&mut self, types: bool) {
        self.types_pin = types;
    }

    /// Whether there is one key only, with which nobody types a PIN.
    pub(crate) fn has_one_key(&self) -> bool {
        self.settings.scan_ms.is_some()
    }
}
