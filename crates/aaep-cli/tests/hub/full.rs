//! A disk that is full: no new consent, what runs stays safe, and it recovers by itself. A disk that
//! fails: the hub ends rather than guess.
#![cfg(target_os = "linux")]

use crate::skipped::skipped;
use std::io::{BufRead, Read};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::*;

/// A hub whose data lies on a disk of a few megabytes; `None` where no such disk can be made.
fn on_a_small_disk() -> Option<(Arc<Hub>, PathBuf)> {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let small = directory.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let mount = r#"mount -t tmpfs -o size=4m tmpfs "$1" && shift && exec "$@""#;
    let alone = |command: &mut Command| {
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]).arg(&small);
    };
    let mut test = Command::new("unshare");
    alone(&mut test);
    if !test.arg("true").status().is_ok_and(|status| status.success()) {
        skipped("a disk of its own cannot be made here");
        return None;
    }
    let data = small.join("data");
    let setup = Setup::durable()
        .arguments(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()])
        .limit("prompts_per_window", 10_000)
        .limit("replies_per_second", 10_000);
    let inner = setup.command(directory.path());
    let mut command = Command::new("unshare");
    alone(&mut command);
    command.arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let hub = Hub::start_with(command, directory);
    // The disk is the hub's alone; this is how it looks from outside.
    let root = PathBuf::from(format!("/proc/{}/root", hub.process()));
    let seen = root.join(small.strip_prefix("/").unwrap());
    Some((hub, seen))
}

/// Fills a disk to the last byte.
fn fill(disk: &std::path::Path) -> PathBuf {
    use std::io::Write;
    let path = disk.join("filler");
    let mut file = std::fs::File::create(&path).unwrap();
    for size in [64 * 1024, 4096, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
    path
}

/// Whether the figures say that the journal takes no records.
async fn is_stuck(hub: &Hub) -> bool {
    let answer = hub.outside(None).get("metrics").await.unwrap();
    String::from_utf8_lossy(&answer.body).contains("\naaep_journal_stuck 1\n")
}

async fn ready(hub: &Hub) -> u16 {
    hub.outside(None).get("readyz").await.unwrap().status.as_u16()
}

// covers: I10, I9
#[test]
fn on_a_full_disk_nothing_new_is_asked_and_it_goes_on_by_itself_when_there_is_room() {
    run(async {
        let Some((hub, disk)) = on_a_small_disk() else { return };
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let waiting = agent.ask_for(&session, &deletion("before.txt")).await;
        let question = ear.event("awaiting.confirmation").await;
        assert_eq!(ready(&hub).await, 200);

        let filler = fill(&disk);
        // What still fits is kept, and then nothing more is.
        let mut asked = Vec::new();
        let refused = loop {
            let large = format!("{}.txt", "x".repeat(2000 + asked.len()));
            let answer = agent.try_ask(&session, &deletion(&large)).await;
            match answer.status.as_u16() {
                201 => asked.push(body(&answer)),
                _ => break answer,
            }
            assert!(asked.len() < 2000, "the disk never got full");
            agent.withdraw(asked.last().unwrap()).await;
        };
        assert_eq!(refused.status, 503);
        hub.logs(&["WARN", "journal is full"]);
        assert_eq!(ready(&hub).await, 503);
        assert!(is_stuck(&hub).await, "an alarm can be set on it");
        assert_eq!(hub.outside(None).get("healthz").await.unwrap().status, 200);
        // Nobody's answer counts, nothing new runs, and everybody is told so.
        let reply = decision(text(&question, "reply_token"), &ear.subscription, "accept");
        let answer = person.client("reader").post("replies", reply.clone()).await.unwrap();
        assert_eq!(answer.status, 503);
        let unknown = decision("rpl_0123456789abcdef0123456789abcdef", &ear.subscription, "accept");
        let other = person.client("reader").post("replies", unknown).await.unwrap();
        assert_eq!((other.status, &other.body), (answer.status, &answer.body));
        assert_eq!(agent.post("agent/sessions", &agent.opening()).await.status, 503);
        assert_eq!(agent.invoke(&waiting, "{}").await.status, 503);
        // People can still come and hear.
        let mut late = person.phone().await;
        late.event("awaiting.confirmation").await;

        std::fs::remove_file(filler).unwrap();
        hub.logs(&["journal takes records again"]);
        while ready(&hub).await != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert!(!is_stuck(&hub).await);
        let answer = person.client("reader").post("replies", reply).await.unwrap();
        assert_eq!(answer.status, 204);
        assert_eq!(agent.outcome(&waiting).await, "accepted");
        assert_eq!(agent.invoke(&waiting, "{}").await.status, 200);
    });
}

/// Does this to every sync of a running hub from now on; `None` where that cannot be done.
fn tamper_with_syncs(hub: &Hub, how: &str) -> Option<std::process::Child> {
    let inject = format!("inject=fsync,fdatasync:{how}");
    let mut strace = Command::new("strace")
        .args(["-f", "-e", "trace=fsync,fdatasync", "-e", &inject])
        .args(["-o", "/dev/null", "-p", &hub.process().to_string()])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .ok()?;
    let mut messages = std::io::BufReader::new(strace.stderr.take().unwrap());
    let attached =
        messages.by_ref().lines().map_while(Result::ok).any(|line| line.contains("attached"));
    // Its end of the pipe stays open: strace says so of each new thread, and would die of it.
    strace.stderr = Some(messages.into_inner());
    if !attached {
        skipped("strace may not be used here");
        let _ = strace.wait();
        return None;
    }
    Some(strace)
}

// covers: I2, I3, I10
#[test]
fn when_a_sync_fails_nobody_is_told_yes_and_the_next_start_reads_what_is_there() {
    run(async {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let hub = Hub::start_in(Setup::durable(), directory.clone());
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let waiting = agent.ask_for(&session, &deletion("a.txt")).await;
        let question = ear.event("awaiting.confirmation").await;
        let Some(mut strace) = tamper_with_syncs(&hub, "error=EIO") else { return };
        let reply = decision(text(&question, "reply_token"), &ear.subscription, "accept");
        let answer = person.client("reader").post("replies", reply).await;
        if let Ok(answer) = &answer {
            assert_eq!(answer.status, 503, "{answer:?}");
        }
        assert_eq!(hub.ended().code(), Some(2));
        hub.logs(&["ERROR", "Writing the journal failed"]);
        let _ = strace.wait();

        let hub = Hub::start_in(Setup::durable(), directory);
        let person = person.at(&hub);
        let agent = person.agent();
        // Nobody was told, so both are right; what counts is that it stays so.
        let status = agent.look(&waiting, 0).await["status"].clone();
        if status == "pending" {
            person.reader().await.decide(&question, "accept").await;
        }
        assert_eq!(agent.outcome(&waiting).await, "accepted");
        assert_eq!(agent.invoke(&waiting, "{}").await.status, 200);
        assert_eq!(agent.invoke(&waiting, "{}").await.status, 409);
    });
}

// covers: I21
#[test]
fn while_the_disk_is_slow_the_only_worker_thread_still_answers_others() {
    run(async {
        // In memory, where a commit is quick: then the caller makes it, and not the
        // journal's own thread.
        let memory = PathBuf::from("/dev/shm");
        let directory = Arc::new(if memory.is_dir() {
            tempfile::tempdir_in(memory).unwrap()
        } else {
            tempfile::tempdir().unwrap()
        });
        let setup = Setup::durable().set("TOKIO_WORKER_THREADS", 1);
        let hub = Hub::start_in(setup, directory);
        let agent = hub.person().agent();
        let session = agent.open().await;
        for name in ["a.txt", "b.txt", "c.txt"] {
            agent.ask_for(&session, &deletion(name)).await;
        }
        let Some(mut strace) = tamper_with_syncs(&hub, "delay_enter=3000000") else { return };
        let asked = Instant::now();
        let slow = tokio::spawn(async move { agent.ask_for(&session, &deletion("d.txt")).await });
        let outside = hub.outside(None);
        let mut answered = 0;
        while !slow.is_finished() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let begin = Instant::now();
            assert_eq!(outside.get("healthz").await.unwrap().status, 200);
            assert!(begin.elapsed() < Duration::from_secs(1), "waited for somebody else's disk");
            answered += 1;
        }
        slow.await.unwrap();
        assert!(asked.elapsed() >= Duration::from_secs(3) && answered > 3, "{answered}");
        strace.kill().unwrap();
        let _ = strace.wait();
    });
}
