//! The suite against a correct producer, against one for each fault, and against what is no producer.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use aaep_conformance::suite::reference::{
    OWNER, Producer, ProducerFault, STRANGER, Subscriber, SubscriberFault,
};
use aaep_conformance::suite::subscriber::{Keys, Listening, Subject, Watch};
use aaep_conformance::suite::{
    CATALOG, CheckOutcome, Force, Report, SUBSCRIBER, Start, Target, producer,
};

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

/// Runs at a time: some wait long for what never comes.
const AT_ONCE: usize = 24;

/// Whether a report shows this fault, and grants nothing that depends on it.
fn caught(report: &Report, check: &str, level: u8) -> bool {
    let result = report.check(check).unwrap();
    let failed = matches!(result.outcome, CheckOutcome::Failed(_));
    failed && (report.granted() < Some(level) || result.check.force == Force::Should)
}

// covers: C16
#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_caught_by_its_check() {
    let mut wrong = Vec::new();
    for faults in ProducerFault::ALL.chunks(AT_ONCE) {
        let runs = faults.iter().map(|(fault, check)| {
            tokio::spawn(async move {
                let level = CATALOG.iter().find(|it| it.id == *check).unwrap().level;
                let producer = Producer::start(Some(*fault)).await.unwrap();
                let target = Target { level, ..target(producer.base()) };
                let report = producer::run(&target).await;
                let said = || format!("{fault:?} by {check}:\n{}", report.to_text());
                (!caught(&report, check, level)).then(said)
            })
        });
        for run in runs.collect::<Vec<_>>() {
            wrong.extend(run.await.unwrap());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn subject(level: u8) -> Subject {
    Subject {
        patience: Duration::from_secs(6),
        quiet: Duration::from_millis(500),
        ..Subject::new("http://127.0.0.1:0/aaep/v1", level)
    }
}

async fn subscriber(level: u8, fault: Option<SubscriberFault>) -> Report {
    let listening = Listening::start(&subject(level)).await.unwrap();
    let _running = Subscriber::start(listening.url(), fault).unwrap();
    listening.run().await
}

// covers: V3
#[tokio::test(flavor = "multi_thread")]
async fn a_correct_subscriber_passes_without_a_finding() {
    let report = subscriber(3, None).await;
    assert_eq!(report.granted(), Some(3), "{}", report.to_text());
    assert_eq!(report.tally()[1..], [0, 0], "{}", report.to_text());
    assert!(report.claim().contains("as a subscriber at level 3 (Negotiated)"));
}

// covers: V3
#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_a_subscriber_is_caught_by_its_check() {
    let mut wrong = Vec::new();
    for faults in SubscriberFault::ALL.chunks(AT_ONCE) {
        let runs = faults.iter().map(|(fault, check)| {
            tokio::spawn(async move {
                let level = SUBSCRIBER.iter().find(|it| it.id == *check).unwrap().level;
                let report = subscriber(level, Some(*fault)).await;
                let said = || format!("{fault:?} by {check}:\n{}", report.to_text());
                (!caught(&report, check, level)).then(said)
            })
        });
        for run in runs.collect::<Vec<_>>() {
            wrong.extend(run.await.unwrap());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_against_a_silent_or_absent_subscriber_ends() {
    let patience = Duration::from_millis(300);
    let commands = [
        vec!["true"],
        vec!["cat"],
        vec!["sh", "-c", "while :; do echo garbage; sleep 0.1; done"],
        vec!["/nonexistent"],
    ];
    for command in commands {
        let command = command.into_iter().map(str::to_owned).collect();
        let watch = Watch::Command { command, keys: Keys::default() };
        let subject = Subject { watch, patience, ..subject(3) };
        let run = aaep_conformance::suite::subscriber::run(&subject);
        let report = tokio::time::timeout(Duration::from_secs(30), run).await.unwrap();
        assert!(report.cut_short.is_some(), "{}", report.to_text());
        assert_eq!(report.granted(), None);
    }
}

/// Nobody makes the target do anything: nothing is exercised, and nothing is granted.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_traffic_that_does_not_come_ends_with_a_sentence() {
    let correct = Producer::start(None).await.unwrap();
    let patience = Duration::from_millis(200);
    let waiting = Target { start: Start::Wait, patience, ..target(correct.base()) };
    let report = producer::run(&waiting).await;
    assert!(report.cut_short.as_deref().unwrap().contains("made it say anything"));
}

// covers: V3
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_exercised_is_not_granted() {
    let correct = Producer::start(None).await.unwrap();
    let alone = Target { stranger: None, ..target(correct.base()) };
    let report = producer::run(&alone).await;
    assert!(matches!(report.check("stolen").unwrap().outcome, CheckOutcome::NotExercised(_)));
    assert_eq!(report.granted(), Some(1), "{}", report.to_text());
    assert!(matches!(report.check("borrowed").unwrap().outcome, CheckOutcome::NotExercised(_)));
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

/// Passes everything on to a producer, until so many connections were made: then all of them end, and
/// nobody is let in any more.
async fn hangs_up_after(connections: usize, base: &str) -> String {
    let to = base.split('/').nth(2).unwrap().to_owned();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = format!("http://{}/aaep/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..connections {
            let (mut near, _) = listener.accept().await.unwrap();
            let to = to.clone();
            running.spawn(async move {
                let mut far = tokio::net::TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
        running.shutdown().await;
        while let Ok((near, _)) = listener.accept().await {
            drop(near);
        }
    });
    here
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_hangs_up_at_any_step_is_reported_and_granted_nothing_more() {
    let steps = [1, 2, 3, 4, 6, 8, 10, 13, 17, 21];
    let runs = steps.map(|connections| {
        tokio::spawn(async move {
            let correct = Producer::start(None).await.unwrap();
            let through = hangs_up_after(connections, correct.base()).await;
            let target = Target { patience: Duration::from_secs(1), ..target(&through) };
            let run = producer::run(&target);
            let report = tokio::time::timeout(Duration::from_secs(110), run).await.unwrap();
            assert!(report.granted() < Some(3), "{connections}: {}", report.to_text());
            let said = report.cut_short.is_some() || report.failed().next().is_some();
            assert!(said, "{connections}: {}", report.to_text());
        })
    });
    for run in runs {
        run.await.unwrap();
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
