//! `aaep listen --speak` with the real hub and the real Speech Dispatcher, which speaks into a file.

use std::process::Command;

use crate::speech::brltty::Brltty;
use crate::speech::{Dispatcher, Log, configure, installed};
use crate::support::Hub;
use crate::tty::Tty;
use crate::{around, demo, say};

fn speaks(hub: &Hub, address: &str, options: &[&str]) -> Tty {
    let mut variables = around(hub);
    variables.push(("SPEECHD_ADDRESS".into(), address.into()));
    let mut arguments = vec!["--pause", "0", "--speak=speech-dispatcher"];
    arguments.extend(options);
    Tty::start(&arguments, &variables)
}

/// The texts that were heard to their end, in order, as one.
fn heard(log: &Log) -> String {
    log.texts("end").join(" ")
}

#[test]
fn a_request_is_heard_whole_and_once_and_so_is_its_outcome() {
    if !installed("speech-dispatcher") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let dispatcher = Dispatcher::start(directory.path(), 3000);
    let hub = demo();
    let mut tty = speaks(&hub, &dispatcher.address(), &[]);
    tty.sees("Connected to");
    let log = dispatcher.log();
    log.ends("Press ? for help.");
    say(&hub, "transfer 20 euros to Ann");
    log.ends("Press y for yes");
    assert_eq!(heard(&log).matches("Transfer 20 euros to Ann.").count(), 1, "{}", heard(&log));
    tty.types("y");
    log.ends("To be sure: type yes and press Enter.");
    tty.types("yes\n");
    log.ends("Request 1: accepted.");
    log.ends("20 euros were sent to Ann.");
    log.ends("Done.");
    let all = heard(&log);
    let order = [
        "Allow this?",
        "It cannot be undone.",
        "What happens:",
        "High risk.",
        "Press y",
        "Request 1: yes, sent.",
        "Request 1: accepted.",
        "20 euros were sent to Ann.",
        "Done.",
    ];
    let places: Vec<_> = order.iter().map(|text| all.find(text).expect(text)).collect();
    assert!(places.is_sorted(), "{all}");
    assert_eq!(all.matches("Request 1: accepted.").count(), 1, "{all}");
    // The agent's words have a voice of their own.
    assert_eq!(log.ends("Transfer 20 euros to Ann.").pitch, "-25");
    assert_eq!(log.ends("It cannot be undone.").pitch, "0");
    tty.types("q");
    log.ends("Goodbye.");
    assert_eq!(tty.ended(), 0);
}

#[test]
fn a_server_is_started_and_when_it_dies_the_open_question_is_asked_again() {
    if !installed("speech-dispatcher") {
        return;
    }
    let hub = demo();
    let home = hub.home().to_owned();
    let settings = home.join("settings/speech-dispatcher");
    std::fs::create_dir_all(&settings).unwrap();
    configure(&settings);
    let log = Log(home.join("heard.log"));
    let mut variables = around(&hub);
    let path = |name: &str| home.join(name).to_str().unwrap().to_owned();
    variables.push(("XDG_CONFIG_HOME".into(), path("settings")));
    variables.push(("XDG_CACHE_HOME".into(), path("cache")));
    variables.push(("HEARD_LOG".into(), path("heard.log")));
    variables.push(("HEARD_WPM".into(), "250".into()));
    variables.push(("PATH".into(), std::env::var("PATH").unwrap()));
    let mut tty = Tty::start(&["--pause", "0", "--speak"], &variables);
    tty.sees("Connected to");
    say(&hub, "delete the record");
    log.begins("Delete the record 12345.");
    let pid = || {
        let file = home.join("run/speech-dispatcher/pid/speech-dispatcher.pid");
        std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<u32>().ok())
    };
    let first = pid().unwrap();
    crate::signal(first, "KILL");
    tty.sees("Speech has stopped");
    tty.sees("Speech is back.");
    // Only the new server speaks after this.
    log.ends("Press y for yes");
    assert!(
        heard(&log).contains("Delete the record 12345. It cannot be undone."),
        "{}",
        heard(&log)
    );
    tty.types("n").sees("Request 1: rejected.");
    log.ends("Request 1: rejected.");
    tty.types("q");
    assert_eq!(tty.ended(), 0);
    let second = pid().unwrap();
    assert_ne!(first, second);
    let _ = Command::new("kill").arg(second.to_string()).status();
}

#[test]
fn a_request_is_felt_and_answered_with_routing_keys() {
    if !installed("brltty") {
        return;
    }
    let mut brltty = Brltty::start(40);
    let hub = demo();
    let braille = format!("--braille={}", brltty.host());
    let mut tty = Tty::start(&["--pause", "0", &braille], &around(&hub));
    tty.sees("Connected to");
    brltty.showed("Press ? for help.");
    say(&hub, "delete the record");
    brltty.shows("? “Delete the record 12345.” No undo.   ");
    brltty.press("LNDN");
    brltty.shows("? yes                                   ");
    brltty.press("ROUTE 2");
    brltty.shows("? No undo. Sure?  no  yes               ");
    brltty.press("ROUTE 22");
    tty.sees("Request 1: accepted.");
    brltty.showed("Request 1: accepted.");
    say(&hub, "delete the record");
    brltty.shows("? “Delete the record 12345.” No undo.   ");
    brltty.press("LNDN");
    brltty.shows("? yes                                   ");
    brltty.press("FWINLT");
    brltty.shows("? “The record is gone for good.”  no    ");
    brltty.press("ROUTE 35");
    tty.sees("Request 2: rejected.");
    tty.types("q").sees("Goodbye.");
    assert_eq!(tty.ended(), 0);
}

#[test]
fn without_speech_it_is_said_what_to_do_before_anything_else() {
    let hub = demo();
    let variables = around(&hub);
    let options = ["--speak=speech-dispatcher"];
    let (code, _, err) = crate::Piped::start(&options, &variables).ended();
    assert_eq!(code, 2);
    assert!(err.contains("speech-dispatcher --spawn"), "{err}");
}

/// `say` is a stand-in on the path that writes down what it is given; the real one was not run.
#[test]
fn a_request_is_heard_through_say_with_its_codes_spelled() {
    let directory = tempfile::tempdir().unwrap();
    let (program, heard) = (directory.path().join("say"), directory.path().join("heard"));
    let script = format!(
        "#!/bin/sh\n[ \"$2\" = '?' ] && exit\nread -r text\necho \"$text\" >> '{}'\n",
        heard.display()
    );
    crate::speech::program(&program, &script);
    let stage = crate::stage::Stage::start();
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let variables = [("HOME".into(), "/nonexistent".into()), ("PATH".into(), path)];
    let options = ["--pause", "0", "--speak=say", "--speech-spelling", "codes", &stage.base];
    let mut tty = Tty::start(&options, &variables);
    tty.sees("Connected to");
    stage.attached(1);
    stage.send(&crate::stage::request(1, "sess_1", "Pay account DE4 [[volm 0]] now"));
    tty.sees("Request 1 waits for you");
    let until = std::time::Instant::now() + crate::speech::PATIENCE;
    let heard = loop {
        let heard = std::fs::read_to_string(&heard).unwrap_or_default();
        if heard.contains("Press y for yes") {
            break heard;
        }
        assert!(std::time::Instant::now() < until, "{heard}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    let lines: Vec<&str> = heard.lines().collect();
    assert!(lines.contains(&"Pay account capital D, capital E, 4 [ [volm 0] ] now."), "{heard}");
    assert!(lines.contains(&"Allow this?"), "{heard}");
}
