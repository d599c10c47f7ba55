//! The suite against a correct producer, against one for each fault, and against what is no producer.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use aaep_conformance::suite::reference::{Fault, OWNER, Producer, STRANGER};
use aaep_conformance::suite::{Outcome, Report, Target, producer};

fn target(base: &str) -> Target {
    Target {
        token: Some(OWNER.into()),
        stranger: Some(STRANGER.into()),
        patience: Duration::from_secs(3),
        deadline: Duration::from_secs(100),
        ..Target::new(base, 3)
    }
}

// covers: V3
#[tokio::test(flavor = "multi_thread")]
async fn a_correct_producer_passes_without_a_finding() {
    let correct = Producer::start(None).await.unwrap();
    let report = producer::run(&target(correct.base())).await;
    assert_eq!(report.granted(), Some(3), "{}", report.to_text());
    assert_eq!(report.tally()[1..], [0, 0], "{}", report.to_text());
    assert!(report.claim().contains("as a producer at level 3 (Negotiated)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_caught_by_its_check() {
    let mut wrong = Vec::new();
    for faults in Fault::ALL.chunks(25) {
        let runs = faults.iter().map(|(fault, check)| {
            tokio::spawn(async move {
                let producer = Producer::start(Some(*fault)).await.unwrap();
                let report = producer::run(&target(producer.base())).await;
                let caught = matches!(report.check(check).unwrap().outcome, Outcome::Failed(_));
                (!caught || report.granted() == Some(3))
                    .then(|| format!("{fault:?} by {check}:\n{}", report.to_text()))
            })
        });
        for run in runs.collect::<Vec<_>>() {
            wrong.extend(run.await.unwrap());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// covers: V3
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_exercised_is_not_granted() {
    let correct = Producer::start(None).await.unwrap();
    let alone = Target { stranger: None, ..target(correct.base()) };
    let report = producer::run(&alone).await;
    assert!(matches!(report.check("stolen").unwrap().outcome, Outcome::NotExercised(_)));
    assert_eq!(report.granted(), Some(1), "{}", report.to_text());
}

/// Something that listens, reads a little, says this, and hangs up or does not.
async fn against(says: &'static [u8], hangs_up: bool) -> Report {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(says);
            if !hangs_up {
                held.push(stream);
            }
        }
    });
    let target = Target {
        patience: Duration::from_millis(300),
        deadline: Duration::from_secs(5),
        ..Target::new(&base, 3)
    };
    tokio::time::timeout(Duration::from_secs(60), producer::run(&target)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_producer_gets_a_sentence_and_no_claim() {
    let stream = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    for (says, hangs_up) in [
        (&b""[..], false),
        (b"", true),
        (b"\x00\xff garbage\r\n\r\n", true),
        (b"HTTP/1.1 200 OK\r\n\r\n", true),
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", true),
        (stream, false),
        (stream, true),
    ] {
        let report = against(says, hangs_up).await;
        assert!(report.cut_short.is_some(), "{says:?}: {}", report.to_text());
        assert_eq!(report.granted(), None);
        assert!(report.claim().starts_with("No claim can be made"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_says_the_same_and_nothing_breaks_out_of_it() {
    let mut report = against(b"", true).await;
    report.target = "http://x/<script>&\"\u{1b}[2J".into();
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["granted"], serde_json::Value::Null);
    assert_eq!(json["checks"].as_array().unwrap().len(), report.results.len());
    for text in [report.to_html(), report.to_junit()] {
        assert!(!text.contains("<script>") && !text.contains('\u{1b}'));
    }
    assert_eq!(report.to_junit().matches("<testcase").count(), report.results.len());
}
