//! From a request to its first spoken word, and to the cells of a braille display; and 200 mixed events,
//! heard at 300 words a minute. With the real Speech Dispatcher, whose output module takes as long as
//! somebody who listens, and the real BRLTTY, whose display is a socket.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a benchmark
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // it runs programs and clocks
#![allow(dead_code)] // what the tests share

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aaep_voice::braille::{BrailleDisplay, Label, Question, Reply, Settings as BrailleSettings};
use aaep_voice::speech::{Command, Settings, Speaker, SpeechEngine};
use aaep_voice::utterance::{Class, Part, Utterance};
use support::Dispatcher;
use support::brltty::Brltty;

/// What we want.
const FIRST_WORD_MS: u128 = 150;
const BRAILLE_US: u128 = 100_000;

const REQUESTS: u32 = 30;
const EVENTS: u32 = 200;

fn said(class: Class, text: &str) -> Utterance {
    let mut utterance = Utterance::new(class);
    let (text, language) = (text.to_owned(), Some("en".into()));
    utterance.parts = vec![Part { text, language, from_agent: false }];
    utterance
}

fn unix_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// The middle one and the longest.
fn spread(mut all: Vec<u128>) -> (u128, u128) {
    all.sort_unstable();
    (all[all.len() / 2], all[all.len() - 1])
}

fn judge(what: &str, unit: &str, (middle, longest): (u128, u128), wanted: u128) -> bool {
    let good = longest <= wanted;
    let word = if good { "good" } else { "missed" };
    println!("{what}: p50 {middle} {unit}, longest {longest} {unit}; wanted {wanted}: {word}");
    good
}

fn speaker(dispatcher: &Dispatcher) -> Speaker {
    let settings = Settings {
        engine: SpeechEngine::SpeechDispatcher,
        speechd_address: Some(dispatcher.address()),
        ..Settings::default()
    };
    Speaker::start(settings, Box::new(|_| {})).unwrap()
}

/// From a request to the beginning of its first word, while somebody else talks.
fn first_words() -> bool {
    let directory = tempfile::tempdir().unwrap();
    let dispatcher = Dispatcher::start(directory.path(), 6_000);
    let speaker = speaker(&dispatcher);
    let log = dispatcher.log();
    let mut took = Vec::new();
    for number in 1..=REQUESTS {
        let story =
            format!("Story {number} is long and goes on and on and on and on and on and on");
        speaker.send(vec![Command::Say(said(Class::Text, &story))]);
        log.begins(&story);
        let question = format!("Question {number}?");
        let began = unix_ms();
        speaker.send(vec![
            Command::Asked(number),
            Command::Say(said(Class::Request, &question).of_request(number)),
        ]);
        took.push(u128::from(log.begins(&question).at.saturating_sub(began)));
        log.ends(&question);
        speaker.send(vec![Command::Settled(number), Command::Silence]);
    }
    speaker.close(Duration::ZERO);
    judge("from a request to its first spoken word", "ms", spread(took), FIRST_WORD_MS)
}

/// From a request to the cells.
fn cells() -> bool {
    let brltty = Brltty::start(40);
    let settings =
        BrailleSettings { host: Some(brltty.host()), pause_ms: 0, ..BrailleSettings::default() };
    let display = BrailleDisplay::start(settings, |_| {}).unwrap();
    let mut took = Vec::new();
    // The first one waits until BRLTTY has let us in, and does not count.
    for number in 0..=REQUESTS {
        let answer = |text: &str, reply| Label { text: text.into(), reply };
        let began = Instant::now();
        display.ask(Question {
            number,
            text: format!("Question {number}?"),
            answers: vec![answer("no", Reply::No), answer("yes", Reply::Yes)],
            second_step: None,
        });
        let shown = brltty.shows_like(&format!("Question {number}?"));
        if number > 0 {
            took.push(shown.saturating_duration_since(began).as_micros());
        }
        display.send(vec![Command::Settled(number)]);
    }
    judge("from a request to the cells of a braille display", "µs", spread(took), BRAILLE_US)
}

/// 200 events of all kinds at 300 words a minute: nothing is said twice, no request is cut.
fn mixed() -> bool {
    let directory = tempfile::tempdir().unwrap();
    let dispatcher = Dispatcher::start(directory.path(), 300);
    let speaker = speaker(&dispatcher);
    let log = dispatcher.log();
    let classes = [
        Class::Text,
        Class::Progress,
        Class::State,
        Class::Text,
        Class::Result,
        Class::Request,
        Class::Progress,
        Class::End,
        Class::Text,
        Class::Error,
    ];
    let mut open: Vec<u32> = Vec::new();
    let settle = |open: &mut Vec<u32>| {
        let heard = log.texts("end");
        open.retain(|number| {
            let waits = !heard.iter().any(|text| text.starts_with(&format!("Question {number} ")));
            if !waits {
                let outcome = format!("Request {number} was accepted.");
                speaker.send(vec![
                    Command::Settled(*number),
                    Command::Say(said(Class::Outcome, &outcome)),
                ]);
            }
            waits
        });
    };
    for number in 0..EVENTS {
        let class = classes[number as usize % classes.len()];
        let session = format!("sess_{}", number % 3).into();
        if class == Class::Request {
            open.push(number);
            let question = format!("Question {number} is whether this may be done now.");
            speaker.send(vec![
                Command::Asked(number),
                Command::Say(said(class, &question).of_request(number)),
            ]);
        } else {
            let text = format!("{class:?} number {number} tells something.");
            speaker.send(vec![Command::Say(said(class, &text).of_session(&session))]);
        }
        std::thread::sleep(Duration::from_millis(100));
        settle(&mut open);
    }
    let quiet = Duration::from_secs(5);
    let (mut lines, mut since) = (0, Instant::now());
    while since.elapsed() < quiet {
        settle(&mut open);
        let now = log.all().len();
        if now != lines {
            (lines, since) = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    speaker.close(Duration::ZERO);
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    log.texts("end").into_iter().for_each(|text| *times.entry(text).or_default() += 1);
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    let cut = log.texts("cut").iter().filter(|text| text.starts_with("Question")).count();
    let asked = times.keys().filter(|text| text.starts_with("Question")).count();
    println!(
        "{EVENTS} mixed events at 300 words a minute: {} said, {asked} of {} requests, {} twice \
         {twice:?}, {cut} requests cut",
        times.len(),
        EVENTS / 10,
        twice.len(),
    );
    twice.is_empty() && cut == 0 && asked == EVENTS as usize / 10
}

fn main() {
    let good = [first_words(), cells(), mixed()];
    if good.contains(&false) {
        std::process::exit(1);
    }
}
