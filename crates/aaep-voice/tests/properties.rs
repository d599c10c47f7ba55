//! What holds whatever is said, and whenever.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use std::collections::BTreeMap;

use aaep_voice::announcer::{Action, Announcer, End, Id};
use aaep_voice::speech::ssip::Line;
use aaep_voice::utterance::{Class, Part, Utterance};
use proptest::prelude::*;

proptest! {
    /// Whatever the text, the server reads one line, which does not end the message, and unescaping
    /// it gives the text back.
    #[test]
    fn no_text_ends_its_message_or_breaks_its_line(
        text in proptest::string::string_regex("(?s)[.\r\n\u{0}\u{85}\u{2028} a]{0,20}.{0,20}").unwrap()
    ) {
        let line = Line::new(&text);
        let sent = line.as_str();
        let broken = sent.contains(char::is_control) || sent.contains(['\u{2028}', '\u{2029}']);
        prop_assert!(!broken);
        prop_assert_ne!(sent, ".");
        let read = sent.strip_prefix('.').unwrap_or(sent);
        prop_assert_eq!(read.chars().count(), text.chars().count());
        let kept = |sign: char| sign.is_control() || matches!(sign, '\u{2028}' | '\u{2029}');
        let expected: String = text.chars().map(|sign| if kept(sign) { ' ' } else { sign }).collect();
        prop_assert_eq!(read, expected);
    }
}

/// One of the things that happen.
#[derive(Clone, Copy, Debug)]
enum Step {
    Say(Class, u8),
    Ask,
    Settle(u8),
}

fn steps() -> impl Strategy<Value = Vec<(u16, Step)>> {
    let class = prop_oneof![
        4 => Just(Class::Text),
        2 => Just(Class::State),
        3 => Just(Class::Progress),
        1 => Just(Class::Result),
        1 => Just(Class::End),
        1 => Just(Class::Outcome),
        1 => Just(Class::Error),
    ];
    let step = prop_oneof![
        10 => (class, 0..4u8).prop_map(|(class, session)| Step::Say(class, session)),
        2 => Just(Step::Ask),
        2 => any::<u8>().prop_map(Step::Settle),
    ];
    proptest::collection::vec((0..400u16, step), 200)
}

/// A voice that speaks 300 words a minute.
#[derive(Default)]
struct Voice {
    announcer: Announcer,
    now: u64,
    speaking: Option<(Id, Utterance, u64)>,
    settled: Vec<u32>,
    /// How often each sentence was said to its end.
    said: BTreeMap<String, u32>,
    order: Vec<String>,
    requests_cut: Vec<u32>,
}

const MS_PER_WORD: u64 = 200;

impl Voice {
    /// Lets time pass, sentence by sentence.
    fn until(&mut self, then: u64) {
        loop {
            self.act();
            let end = self.speaking.as_ref().map(|(_, utterance, began)| {
                let words: usize =
                    utterance.parts.iter().map(|part| part.text.split_whitespace().count()).sum();
                began + words as u64 * MS_PER_WORD
            });
            match end {
                Some(end) if end <= then => {
                    self.now = end;
                    let (id, utterance, _) = self.speaking.take().unwrap();
                    utterance.parts.iter().for_each(|part| self.note(&part.text));
                    self.announcer.ended(id, End::Spoken, self.now);
                }
                _ => {
                    self.now = then;
                    return;
                }
            }
        }
    }

    fn note(&mut self, text: &str) {
        *self.said.entry(text.to_owned()).or_default() += 1;
        self.order.push(text.to_owned());
    }

    fn act(&mut self) {
        while let Some(action) = self.announcer.poll(self.now) {
            match action {
                Action::Say { id, utterance } => {
                    assert!(self.speaking.is_none(), "two at once");
                    self.speaking = Some((id, utterance, self.now));
                }
                Action::Stop => self.stop(),
            }
        }
    }

    fn stop(&mut self) {
        let Some((_, utterance, _)) = self.speaking.take() else { return };
        if let Some(number) = utterance.request.filter(|_| utterance.class == Class::Request)
            && !self.settled.contains(&number)
        {
            self.requests_cut.push(number);
        }
    }
}

fn utterance(class: Class, session: u8, text: String) -> Utterance {
    let mut utterance = Utterance::new(class).of_session(&format!("sess_{session}").into());
    utterance.parts = vec![Part { text, language: None, from_agent: true }];
    utterance
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// 200 mixed events at 300 words a minute: nothing is said twice, no request is cut, and of what
    /// is neither state nor progress nothing is lost.
    #[test]
    fn two_hundred_mixed_events_are_said_once_and_no_request_is_cut(steps in steps()) {
        let mut voice = Voice::default();
        let mut asked: Vec<u32> = Vec::new();
        let mut expected: Vec<String> = Vec::new();
        for (number, (wait, step)) in steps.into_iter().enumerate() {
            let then = voice.now + u64::from(wait);
            voice.until(then);
            match step {
                Step::Say(class, session) => {
                    let text = format!("{class:?} number {number} of session {session}.");
                    if !matches!(class, Class::State | Class::Progress) {
                        expected.push(text.clone());
                    }
                    voice.announcer.push(utterance(class, session, text));
                }
                Step::Ask => {
                    let request = u32::try_from(asked.len()).unwrap() + 1;
                    asked.push(request);
                    voice.announcer.asked(request);
                    let text = format!("May I do number {request}?");
                    voice.announcer.push(utterance(Class::Request, 0, text).of_request(request));
                }
                Step::Settle(which) => {
                    let open: Vec<u32> =
                        asked.iter().copied().filter(|it| !voice.settled.contains(it)).collect();
                    if !open.is_empty() {
                        let request = open[usize::from(which) % open.len()];
                        voice.settled.push(request);
                        voice.announcer.settled(request);
                    }
                }
            }
            voice.act();
        }
        voice.until(voice.now + 10_000_000);
        for request in asked.iter().filter(|request| !voice.settled.contains(request)) {
            prop_assert_eq!(voice.said.get(&format!("May I do number {request}?")), Some(&1));
        }
        for request in asked {
            voice.settled.push(request);
            voice.announcer.settled(request);
        }
        voice.until(voice.now + 10_000_000);
        prop_assert_eq!(&voice.requests_cut, &Vec::<u32>::new());
        for (text, times) in &voice.said {
            prop_assert_eq!(*times, 1, "{} was said {} times", text, times);
        }
        for text in &expected {
            prop_assert!(voice.said.contains_key(text), "{} was never said", text);
        }
        // What belongs to one session is heard in its order.
        for session in 0..4 {
            let of_session = |text: &&String| {
                text.ends_with(&format!("session {session}."))
                    && ["Text", "Result", "End"].iter().any(|class| text.starts_with(class))
            };
            let heard: Vec<&String> = voice.order.iter().filter(of_session).collect();
            let told: Vec<&String> = expected.iter().filter(of_session).collect();
            prop_assert_eq!(heard, told);
        }
    }
}
