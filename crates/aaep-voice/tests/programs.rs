//! `say` and SAPI, each with a stand-in that writes down how it was run and what it was given. The
//! real programs run on macOS and Windows only, and were not run.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs and clocks

mod support;

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use aaep_voice::speech::{Command, Notice, Settings, Speaker, SpeechEngine, Spelling, VoiceName};
use aaep_voice::utterance::{Class, Part, Utterance};

const VOICES: &str = "Alex en_US # Hi\\nMajed ar_001 # Hi\\n";

/// A program that writes its options, its settings and its text as one line into `log`.
fn stand_in(directory: &Path, name: &str, before: &str) -> PathBuf {
    let program = directory.join(name);
    let script = format!(
        "#!/bin/sh\n{before}\nread -r text\n\
         printf '%s|%s|%s|%s|%s\\n' \"$*\" \"$AAEP_SAPI_RATE\" \"$AAEP_SAPI_VOICE\" \
         \"$AAEP_SAPI_LANGUAGE\" \"$text\" >> \"{}/log\"\n",
        directory.display()
    );
    support::program(&program, &script);
    program
}

fn say(directory: &Path) -> PathBuf {
    let list = format!("if [ \"$2\" = '?' ]; then printf '{VOICES}'; exit; fi");
    stand_in(directory, "say", &list)
}

/// The lines of the log, once there are so many.
fn log(directory: &Path, count: usize) -> Vec<String> {
    let until = Instant::now() + support::PATIENCE;
    loop {
        let text = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(Instant::now() < until, "only this was spoken: {text}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn utterance(class: Class, parts: &[(&str, &str, bool)]) -> Utterance {
    let mut utterance = Utterance::new(class);
    let part = |&(text, language, from_agent): &(&str, &str, bool)| Part {
        text: text.into(),
        language: Some(language.into()),
        from_agent,
    };
    utterance.parts = parts.iter().map(part).collect();
    utterance
}

#[test]
fn say_speaks_each_part_in_its_language_and_no_word_of_an_agent_is_a_command() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        engine: SpeechEngine::Say,
        say_program: say(directory.path()),
        rate: Some(100),
        voice: Some(VoiceName::parse("Samantha").unwrap()),
        ..Settings::default()
    };
    let speaker = Speaker::start(settings, Box::new(|_| {})).unwrap();
    let parts = [
        ("Allow this?", "en", false),
        ("احذف الملف", "ar", true),
        ("[[volm 0]] -o /tmp/x\nmore", "yo", true),
    ];
    speaker.send(vec![Command::Say(utterance(Class::Request, &parts))]);
    assert_eq!(
        log(directory.path(), 3),
        [
            "-f - -v Samantha -r 450||||Allow this?",
            "-f - -v Majed -r 450||||احذف الملف",
            "-f - -r 450||||[ [volm 0] ] -o /tmp/x more",
        ]
    );
    speaker.close(Duration::ZERO);
}

#[test]
fn sapi_gets_its_settings_beside_a_script_that_is_always_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let probe = "case $4 in *Speak*) set -- Speak ;; *) exit ;; esac";
    let settings = Settings {
        engine: SpeechEngine::Sapi,
        powershell_program: stand_in(directory.path(), "powershell.exe", probe),
        rate: Some(-55),
        voice: Some(VoiceName::parse("Zira's; exit").unwrap()),
        spelling: Spelling::Codes,
        ..Settings::default()
    };
    let speaker = Speaker::start(settings, Box::new(|_| {})).unwrap();
    let parts = [
        ("Allow this?", "en", false),
        ("$(rm x1); <speak/>", "ar", true),
        ("Stop.", "zh'; exit", true),
    ];
    speaker.send(vec![Command::Say(utterance(Class::Request, &parts))]);
    assert_eq!(
        log(directory.path(), 3),
        [
            "Speak|-5|Zira's; exit|en|Allow this?",
            "Speak|-5||ar|$(rm x, 1); <speak/>",
            "Speak|-5|Zira's; exit|en|Stop.",
        ]
    );
    speaker.close(Duration::ZERO);
}

#[test]
fn a_request_stops_the_program_that_chatters_and_the_rest_is_heard_later() {
    let directory = tempfile::tempdir().unwrap();
    // The voice that reads "slowly" speaks until it is stopped, once.
    let before = format!(
        "if [ \"$2\" = '?' ]; then printf '{VOICES}'; exit; fi; cd \"{}\"",
        directory.path().display()
    );
    let program = stand_in(directory.path(), "say", &before);
    let script = std::fs::read_to_string(&program).unwrap().replace(
        "read -r text\n",
        "read -r text\nif [ \"$text\" = slowly ] && mkdir begun; then exec sleep 60; fi\n",
    );
    support::program(&program, &script);
    let settings =
        Settings { engine: SpeechEngine::Say, say_program: program, ..Settings::default() };
    let speaker = Speaker::start(settings, Box::new(|_| {})).unwrap();
    let story = [("first", "en", true), ("slowly", "en", true), ("last", "en", true)];
    speaker.send(vec![Command::Say(utterance(Class::Text, &story))]);
    let until = Instant::now() + support::PATIENCE;
    while !directory.path().join("begun").exists() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    let question = utterance(Class::Request, &[("Allow this?", "en", false)]).of_request(1);
    speaker.send(vec![Command::Asked(1), Command::Say(question)]);
    log(directory.path(), 2);
    speaker.send(vec![Command::Settled(1)]);
    let texts: Vec<_> = log(directory.path(), 4)
        .iter()
        .map(|line| line.rsplit('|').next().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["first", "Allow this?", "slowly", "last"]);
    speaker.close(Duration::ZERO);
}

#[test]
fn a_program_that_breaks_is_told_and_what_it_should_have_said_is_said_again() {
    let directory = tempfile::tempdir().unwrap();
    let program = say(directory.path());
    let works = std::fs::read_to_string(&program).unwrap();
    let once = format!("mkdir \"{}/broke\" 2>/dev/null && exit 1\n", directory.path().display());
    support::program(&program, &works.replace("read -r text\n", &format!("{once}read -r text\n")));
    let settings =
        Settings { engine: SpeechEngine::Say, say_program: program, ..Settings::default() };
    let (tell, notices) = channel();
    let speaker =
        Speaker::start(settings, Box::new(move |notice| drop(tell.send(notice)))).unwrap();
    let question = utterance(Class::Request, &[("Allow this?", "en", false)]).of_request(1);
    speaker.send(vec![Command::Asked(1), Command::Say(question)]);
    assert!(matches!(notices.recv_timeout(support::PATIENCE), Ok(Notice::Lost(_))));
    assert_eq!(notices.recv_timeout(support::PATIENCE), Ok(Notice::Back));
    assert_eq!(log(directory.path(), 1), ["-f -||||Allow this?"]);
    speaker.close(Duration::ZERO);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let nowhere = PathBuf::from("/nowhere/program");
    for (engine, name) in [(SpeechEngine::Say, "say"), (SpeechEngine::Sapi, "SAPI")] {
        let settings = Settings {
            engine,
            say_program: nowhere.clone(),
            powershell_program: nowhere.clone(),
            ..Settings::default()
        };
        let why = Speaker::start(settings, Box::new(|_| {})).err().unwrap();
        assert!(why.contains(name), "{why}");
    }
}
