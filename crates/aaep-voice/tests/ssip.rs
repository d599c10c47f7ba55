//! Speech with the real Speech Dispatcher. Its output module writes down what was heard, and takes as
//! long for it as somebody who listens.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs and clocks

mod support;

use std::io::{BufRead, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use aaep_voice::announcer::{Action, Announcer, End};
use aaep_voice::speech::{
    Command, Event, Notice, Settings, Speaker, SpeechEngine, Ssip, Synthesizer, VoiceName,
};
use aaep_voice::utterance::{Class, Part, Utterance};
use support::{Dispatcher, LogEntry, installed};

fn speaker(dispatcher: &Dispatcher) -> (Speaker, Receiver<Notice>) {
    let settings = Settings {
        engine: SpeechEngine::SpeechDispatcher,
        speechd_address: Some(dispatcher.address()),
        ..Settings::default()
    };
    let (say, notices) = channel();
    let speaker = Speaker::start(settings, Box::new(move |notice| drop(say.send(notice)))).unwrap();
    (speaker, notices)
}

fn part(text: &str, language: &str, from_agent: bool) -> Part {
    Part { text: text.into(), language: Some(language.into()), from_agent }
}

fn said(class: Class, texts: &[&str]) -> Utterance {
    let mut utterance = Utterance::new(class);
    utterance.parts = texts.iter().map(|text| part(text, "en", false)).collect();
    utterance
}

/// A sentence that takes its time, so that there is enough of it to be cut.
fn long(beginning: &str) -> String {
    format!("{beginning}{}.", " and on".repeat(20))
}

fn start(words_a_minute: u32) -> Option<(tempfile::TempDir, Dispatcher)> {
    if !installed("speech-dispatcher") {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let dispatcher = Dispatcher::start(directory.path(), words_a_minute);
    Some((directory, dispatcher))
}

#[test]
fn hostile_text_is_spoken_and_never_run_as_a_command() {
    let Some((_directory, dispatcher)) = start(200_000) else { return };
    let (speaker, _notices) = speaker(&dispatcher);
    let long = "word ".repeat(3276) + "end.";
    let hostile = [
        ".",
        "..",
        "Done.\r\n.\r\nSTOP ALL\r\nQUIT\r\n",
        "a\n.\nSET ALL RATE -100",
        ".\r\nCANCEL ALL",
        "nul \0 escape \u{1b}[2J bell \u{7} next \u{85} line \u{2028} paragraph \u{2029}",
        "<speak><mark name=\"x\"/></speak><audio src=\"file:///etc/passwd\"/>",
        "combining x\u{301}\u{301}\u{301} emoji 👩\u{200d}🚀 rtl \u{202e}abc",
        long.as_str(),
    ];
    for (number, text) in hostile.iter().enumerate() {
        let mut utterance = Utterance::new(Class::Text);
        utterance.parts =
            vec![part(text, "en", true), part(&format!("after {number}"), "en", false)];
        speaker.send(vec![Command::Say(utterance)]);
    }
    let log = dispatcher.log();
    log.ends(&format!("after {}", hostile.len() - 1));
    let ends = log.texts("end");
    let words = |text: &str| {
        let clean = |sign: char| if sign.is_control() { ' ' } else { sign };
        let text: String = text.chars().map(clean).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ").replace(['\u{2028}', '\u{2029}'], "")
    };
    for (number, text) in hostile.iter().enumerate() {
        let after = ends.iter().position(|heard| *heard == format!("after {number}")).unwrap();
        // What was heard right before is the whole text; a lone dot may have no sound.
        let heard = after.checked_sub(1).map_or("", |before| ends[before].as_str());
        let silent = !text.contains(char::is_alphanumeric);
        assert!(
            silent || words(heard).replace(' ', "") == words(text).replace(' ', ""),
            "{number}: {text:?} was heard as {heard:?}"
        );
    }
    assert_eq!(log.texts("cut"), Vec::<String>::new());
    speaker.close(Duration::ZERO);
}

#[test]
fn a_request_cuts_chatter_is_said_whole_and_chatter_goes_on_when_it_is_settled() {
    let Some((_directory, dispatcher)) = start(400) else { return };
    let (speaker, _notices) = speaker(&dispatcher);
    let log = dispatcher.log();
    let story = long("a long story goes on");
    let story = story.as_str();
    speaker.send(vec![Command::Say(said(
        Class::Text,
        &["The first sentence.", story, "The last sentence."],
    ))]);
    log.begins(story);
    for number in [1, 2] {
        speaker.send(vec![Command::Asked(number)]);
        let question = format!("Allow number {number}? It cannot be undone at all.");
        speaker.send(vec![Command::Say(said(Class::Request, &[&question]).of_request(number))]);
    }
    speaker.send(vec![Command::Say(said(Class::End, &["Done."]))]);
    log.ends("Allow number 2?");
    log.ends("Done.");
    speaker.send(vec![Command::Settled(1)]);
    // What comes after it is said; the story would have come first.
    speaker.send(vec![Command::Say(said(Class::End, &["Another one is done."]))]);
    log.ends("Another one is done.");
    assert!(!log.texts("begin").iter().skip(2).any(|text| text == story), "a request is open");
    speaker.send(vec![Command::Settled(2)]);
    log.ends("The last sentence.");
    assert_eq!(log.texts("cut"), [story]);
    assert_eq!(
        log.texts("end"),
        [
            "The first sentence.",
            "Allow number 1? It cannot be undone at all.",
            "Allow number 2? It cannot be undone at all.",
            "Done.",
            "Another one is done.",
            story,
            "The last sentence.",
        ]
    );
}

#[test]
fn each_span_is_spoken_in_its_language_and_the_agent_in_a_voice_of_its_own() {
    let Some((_directory, dispatcher)) = start(2000) else { return };
    let (speaker, _notices) = speaker(&dispatcher);
    let mut utterance = Utterance::new(Class::Request).of_request(1);
    utterance.parts = vec![
        part("Allow this?", "en", false),
        part("احذف الملف", "ar", true),
        part("It cannot be undone.", "en", false),
        part("删除", "zh\r\nSTOP ALL", true),
    ];
    speaker.send(vec![Command::Say(utterance)]);
    let log = dispatcher.log();
    log.ends("删除");
    let heard: Vec<_> = log.all().into_iter().filter(|heard| heard.kind == "end").collect();
    let voices: Vec<_> = heard.iter().map(|it| (it.language.as_str(), it.pitch.as_str())).collect();
    assert_eq!(voices, [("en", "0"), ("ar", "-25"), ("en", "0"), ("en", "-25")]);
}

#[test]
fn a_server_that_dies_in_mid_sentence_loses_nothing() {
    let Some((_directory, mut dispatcher)) = start(400) else { return };
    let (speaker, notices) = speaker(&dispatcher);
    let log = dispatcher.log();
    speaker.send(vec![Command::Asked(1)]);
    let question = long("Allow this? Transfer 20 euros to Ann now");
    let question = question.as_str();
    speaker.send(vec![Command::Say(said(Class::Request, &[question]).of_request(1))]);
    speaker.send(vec![Command::Say(said(Class::Outcome, &["Request 7 accepted."]))]);
    log.begins(question);
    dispatcher.kill();
    assert!(matches!(notices.recv_timeout(support::PATIENCE), Ok(Notice::Lost(_))));
    speaker.send(vec![Command::Say(said(Class::Error, &["Failed meanwhile."]))]);
    let before = log.all().len();
    dispatcher.restart();
    assert_eq!(notices.recv_timeout(support::PATIENCE), Ok(Notice::Back));
    log.ends("Failed meanwhile.");
    let after: Vec<LogEntry> = log.all().split_off(before);
    let ended = |kind: &str| -> Vec<String> {
        let of_kind = after.iter().filter(|heard| heard.kind == kind);
        of_kind.map(|heard| heard.text.clone()).collect()
    };
    // The module of the killed server may still finish its own sentence.
    let mut ends = ended("end");
    ends.dedup();
    assert_eq!(ends, [question, "Request 7 accepted.", "Failed meanwhile."]);
}

#[test]
fn a_request_that_another_program_cancels_is_said_again() {
    let Some((_directory, dispatcher)) = start(400) else { return };
    let (speaker, _notices) = speaker(&dispatcher);
    let log = dispatcher.log();
    speaker.send(vec![Command::Asked(1)]);
    let question = long("Allow this? Transfer 20 euros to Ann");
    let question = question.as_str();
    speaker.send(vec![Command::Say(
        said(Class::Request, &[question, "It cannot be undone."]).of_request(1),
    )]);
    log.begins(question);
    let mut other = UnixStream::connect(dispatcher.socket()).unwrap();
    other.write_all(b"SET SELF CLIENT_NAME other:other:other\r\nCANCEL ALL\r\n").unwrap();
    log.wait("the cut", |heard| heard.kind == "cut");
    log.ends("It cannot be undone.");
    // The whole question, once, in its order; nothing of it was left over from before the cut.
    assert_eq!(log.texts("end"), [question, "It cannot be undone."]);
    let _ = other.read(&mut [0; 64]);
}

#[test]
fn a_person_skips_a_sentence_pauses_and_wants_silence() {
    let Some((_directory, dispatcher)) = start(400) else { return };
    let (speaker, _notices) = speaker(&dispatcher);
    let log = dispatcher.log();
    let [one, two, four] = ["one", "two", "four"].map(long);
    speaker.send(vec![Command::Say(said(Class::Text, &[&one, &two, "three"]))]);
    log.begins("one");
    speaker.send(vec![Command::Skip]);
    log.begins("two");
    speaker.send(vec![Command::Pause]);
    log.wait("the pause", |heard| heard.kind == "cut" && heard.text.starts_with("two"));
    // An outcome is said all the same, and what was paused does not go on after it.
    speaker.send(vec![Command::Say(said(Class::Outcome, &["Accepted."]))]);
    log.ends("Accepted.");
    speaker.send(vec![Command::Say(said(Class::Outcome, &["Rejected."]))]);
    log.ends("Rejected.");
    assert_eq!(log.texts("begin").iter().filter(|text| **text == two).count(), 1);
    speaker.send(vec![Command::Pause]);
    log.ends("two");
    log.ends("three");
    speaker.send(vec![Command::Say(said(Class::Text, &[&four]))]);
    log.begins("four");
    speaker.send(vec![Command::Say(said(Class::Text, &["five"]))]);
    speaker.send(vec![Command::Silence]);
    log.wait("silence", |heard| heard.kind == "cut" && heard.text.starts_with("four"));
    speaker.send(vec![Command::Say(said(Class::Text, &["six"]))]);
    log.ends("six");
    assert!(!log.texts("begin").contains(&"five".to_owned()));
}

#[test]
fn two_programs_that_both_speak_are_both_heard() {
    let Some((_directory, dispatcher)) = start(600) else { return };
    let (first, _notices) = speaker(&dispatcher);
    let (second, _notices) = speaker(&dispatcher);
    let log = dispatcher.log();
    for (speaker, name) in [(&first, "first"), (&second, "second")] {
        speaker.send(vec![Command::Asked(1)]);
        let question = format!("The {name} asks whether it may transfer 20 euros.");
        speaker.send(vec![Command::Say(said(Class::Request, &[&question]).of_request(1))]);
    }
    log.ends("The first asks");
    log.ends("The second asks");
}

#[test]
fn settings_reach_the_server_and_a_server_that_is_not_there_is_named() {
    let missing = Settings {
        engine: SpeechEngine::SpeechDispatcher,
        speechd_address: Some("unix_socket:/nowhere/speechd.sock".into()),
        ..Settings::default()
    };
    let why = Speaker::start(missing, Box::new(|_| {})).err().unwrap();
    assert!(why.contains("speech-dispatcher --spawn"), "{why}");
    let Some((_directory, dispatcher)) = start(2000) else { return };
    let settings = Settings {
        engine: SpeechEngine::SpeechDispatcher,
        speechd_address: Some(dispatcher.address()),
        rate: Some(70),
        punctuation: Some("all".parse().unwrap()),
        voice: Some(VoiceName::parse("Annie").unwrap()),
        ..Settings::default()
    };
    let speaker = Speaker::start(settings, Box::new(|_| {})).unwrap();
    let mut utterance = Utterance::new(Class::Text);
    utterance.parts = vec![
        part("Spoken.", "en", false),
        part("احذف الملف", "ar", true),
        part("British.", "en-GB", true),
    ];
    speaker.send(vec![Command::Say(utterance)]);
    let log = dispatcher.log();
    log.ends("British.");
    let ends = log.all().into_iter().filter(|heard| heard.kind == "end");
    let settings: Vec<[String; 4]> =
        ends.map(|it| [it.language, it.rate, it.punctuation, it.voice]).collect();
    // The chosen voice speaks the user's language; another one has a voice of its own.
    let expected = [
        ["en", "70", "all", "Annie"],
        ["ar", "70", "all", "NULL"],
        ["en-gb", "70", "all", "Annie"],
    ];
    assert_eq!(settings, expected);
}

/// The real server refuses nothing that we send; this one refuses every text with a Z.
fn refuses(directory: &std::path::Path) -> String {
    let path = directory.join("refuses.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut say = stream.try_clone().unwrap();
        let mut number = 0;
        let mut lines = std::io::BufReader::new(stream).lines().map_while(Result::ok);
        while let Some(line) = lines.next() {
            let answer = match line.as_str() {
                "SPEAK" => "230 OK RECEIVING DATA\r\n".to_owned(),
                _ => "200 OK\r\n".to_owned(),
            };
            say.write_all(answer.as_bytes()).unwrap();
            if line == "SPEAK" {
                let text = lines.next().unwrap();
                lines.next();
                if text.contains('Z') {
                    say.write_all(b"300 ERR INTERNAL\r\n").unwrap();
                    continue;
                }
                number += 1;
                let spoken = format!(
                    "225-{number}\r\n225 OK MESSAGE QUEUED\r\n\
                     701-{number}\r\n701-1\r\n701 BEGIN\r\n702-{number}\r\n702-1\r\n702 END\r\n"
                );
                say.write_all(spoken.as_bytes()).unwrap();
            }
        }
    });
    format!("unix_socket:{}", path.display())
}

#[test]
fn an_utterance_whose_last_part_the_server_refuses_has_an_end_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let settings =
        Settings { speechd_address: Some(refuses(directory.path())), ..Settings::default() };
    let (say, events) = std::sync::mpsc::channel();
    let reporter = std::sync::Arc::new(move |event| _ = say.send(event));
    let mut announcer = Announcer::default();
    let mut ssip = Ssip::open(&settings, reporter).unwrap();
    for parts in [&["One.", "Z."][..], &["Z.", "Two.", "Z.", "Z."], &["Z."], &[]] {
        announcer.push(said(Class::Outcome, parts).printed("line".into()));
        let Some(Action::Say { id, utterance }) = announcer.poll(0) else { panic!("silence") };
        ssip.speak(id, utterance.class, &utterance.parts).unwrap();
        loop {
            let within = std::time::Duration::from_secs(5);
            let event = events.recv_timeout(within).unwrap_or_else(|_| panic!("{parts:?}"));
            if event == Event::Spoken(id) {
                break;
            }
        }
        announcer.ended(id, End::Spoken, 0);
    }
}
