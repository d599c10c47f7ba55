//! A server that has no file descriptors left waits, and goes on. In a program of its own: the
//! limit holds for the whole process.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real sockets

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::time::Duration;

use aaep_transport::server::Server;
use axum::Router;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

thread_local! {
    /// Opened while there still are descriptors.
    static STAT: RefCell<File> = RefCell::new(File::open("/proc/self/stat").unwrap());
}

/// What this process has worked so far, in hundredths of a second.
fn ticks() -> u64 {
    let stat = STAT.with_borrow_mut(|stat| {
        stat.rewind().unwrap();
        let mut text = String::new();
        stat.read_to_string(&mut text).unwrap();
        text
    });
    // The fields after the name, which ends with a bracket: user and system time are the 14th
    // and 15th of all.
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn a_server_survives_running_out_of_descriptors() {
    let server = Server::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap();
    let hello = Router::new().fallback(|| async { "hello" });
    tokio::spawn(server.serve(hello, std::future::pending()));
    let mut early = TcpStream::connect(address).await.unwrap();
    hello_from(&mut early).await;

    assert!(ticks() < 1000);
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: limit.maximum }).unwrap();
    let mut held = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        held.push(file);
    }
    held.pop(); // room for the client's end, and none for the server's
    let mut late = TcpStream::connect(address).await.unwrap();
    // Who is inside is served meanwhile.
    hello_from(&mut early).await;
    let before = ticks();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(ticks() - before < 50, "half a second of work to do nothing");

    drop(held);
    hello_from(&mut late).await;
}

async fn hello_from(stream: &mut TcpStream) {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        let byte = tokio::time::timeout(Duration::from_secs(60), stream.read_u8()).await;
        answer.push(byte.expect("no answer").unwrap());
    }
}
