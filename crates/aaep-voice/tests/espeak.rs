//! espeak-ng as a child process, with the real program where it is installed.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs and clocks

mod support;

use std::path::Path;
use std::time::Instant;

use aaep_voice::speech::{Command, Settings, Speaker, SpeechEngine};
use aaep_voice::utterance::{Class, Part, Utterance};

/// Runs the real program with its sound in a file: there is no loudspeaker here.
fn settings(directory: &Path) -> Settings {
    let program = directory.join("espeak-ng");
    let script =
        format!("#!/bin/sh\nexec espeak-ng -w \"{}/$$.wav\" \"$@\"\n", directory.display());
    support::program(&program, &script);
    Settings {
        engine: SpeechEngine::Espeak,
        espeak_program: program,
        rate: Some(50),
        ..Settings::default()
    }
}

fn sounds(directory: &Path) -> Vec<u64> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    files
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "wav"))
        .map(|entry| entry.metadata().unwrap().len())
        .filter(|length| *length > 44)
        .collect()
}

#[test]
fn text_becomes_sound_part_by_part_and_no_text_is_an_option() {
    if !support::installed("espeak-ng") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let speaker = Speaker::start(settings(directory.path()), Box::new(|_| {})).unwrap();
    let mut utterance = Utterance::new(Class::Request).of_request(1);
    let texts = [("Allow this?", "en"), ("--help -v xx", "ar"), ("\u{1b}[2J\r\n.", "zh")];
    utterance.parts = texts
        .iter()
        .map(|(text, language)| Part {
            text: (*text).into(),
            language: Some((*language).into()),
            from_agent: true,
        })
        .collect();
    speaker.send(vec![Command::Say(utterance)]);
    let until = Instant::now() + support::PATIENCE;
    while sounds(directory.path()).len() < 3 {
        assert!(Instant::now() < until, "{:?}", sounds(directory.path()));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    speaker.close(std::time::Duration::ZERO);
}

#[test]
fn without_any_synthesizer_it_is_said_what_to_install() {
    let settings = Settings {
        speechd_address: Some("unix_socket:/nowhere".into()),
        espeak_program: "/nowhere/espeak-ng".into(),
        ..Settings::default()
    };
    let why = Speaker::start(settings, Box::new(|_| {})).err().unwrap();
    assert!(why.contains("Install speech-dispatcher or espeak-ng"), "{why}");
}
