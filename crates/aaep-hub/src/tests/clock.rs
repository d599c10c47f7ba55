//! What a hub does when somebody sets the clock on the wall.
#![allow(clippy::unwrap_used)] // tests

use crate::panics::{ask, run};

// covers: I8
#[tokio::test(flavor = "multi_thread")]
async fn after_a_jump_of_the_clock_the_next_start_withdraws_what_waits() {
    let place = tempfile::tempdir().unwrap();
    let running = run(place.path()).await;
    let asked = ask(running.hub()).await;
    drop(asked);
    running.stop().await.unwrap();
    let withdrawn = |line: &String| line.contains("withdrawn");
    // With a clock that can be believed it goes on.
    let running = run(place.path()).await;
    assert!(!running.news().iter().any(withdrawn), "{:?}", running.news());
    running.hub().call(crate::core::Core::clock_jumps).await.unwrap();
    running.stop().await.unwrap();
    let running = run(place.path()).await;
    assert!(running.news().iter().any(withdrawn), "{:?}", running.news());
    running.stop().await.unwrap();
}
