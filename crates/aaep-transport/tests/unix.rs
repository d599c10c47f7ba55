//! Unix sockets beyond the contract: whose place it is.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real sockets and files

#[path = "../../../testing/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;

use aaep_transport::TooLong;
use aaep_transport::link::{LinkError, Options};
use aaep_transport::unix::{Listener, PlaceError, connect};
use tokio::io::AsyncWriteExt;

fn bind(path: &Path) -> Result<Listener, PlaceError> {
    Listener::bind(path, Options { max_message: 1000, ..Options::default() })
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

// covers: W10
#[tokio::test]
async fn the_place_is_private_and_cleaned_up() {
    let home = tempfile::tempdir().unwrap();
    let (directory, path) = (home.path().join("aaep"), home.path().join("aaep/agent.sock"));
    let listener = bind(&path).unwrap();
    assert_eq!((mode(&directory), mode(&path)), (0o700, 0o600));
    drop(listener);
    assert!(!path.exists());
}

// covers: W10
#[tokio::test]
async fn a_live_socket_is_refused_and_a_stale_one_replaced() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("aaep/agent.sock");
    let first = bind(&path).unwrap();
    let refused = bind(&path).err().unwrap();
    assert!(refused.to_string().contains("another hub listens"), "{refused}");
    drop(first);
    // A listener of another program, which knows nothing of our lock.
    let foreign = std::os::unix::net::UnixListener::bind(&path).unwrap();
    assert!(matches!(bind(&path).err().unwrap(), PlaceError::Taken(_)));
    drop(foreign); // as after a crash: the file stays
    assert!(path.exists());
    let second = bind(&path).unwrap();
    let (_there, here) = tokio::join!(second.accept(), connect(&path, Options::default()));
    here.unwrap();
}

// covers: W10
#[tokio::test]
async fn a_place_that_is_not_ours_alone_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("open")).unwrap();
    fs::set_permissions(at("open"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink(home.path(), at("link")).unwrap();
    fs::write(at("file"), "").unwrap();
    fs::create_dir(at("own")).unwrap();
    fs::set_permissions(at("own"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(at("own/agent.sock"), "precious").unwrap();
    for (directory, why) in [
        ("open", "mode has to be 0700"),
        ("link", "symbolic link"),
        ("file", "not a directory"),
        ("own", "not a socket"),
    ] {
        let refused = bind(&at(directory).join("agent.sock")).err().unwrap().to_string();
        assert!(refused.contains(why) && refused.contains("XDG_RUNTIME_DIR"), "{refused}");
    }
    assert_eq!(mode(&at("open")), 0o755);
    assert_eq!(fs::read_to_string(at("own/agent.sock")).unwrap(), "precious");
    assert!(matches!(bind(&at("missing/deep/a.sock")), Err(PlaceError::Unusable { .. })));
}

// covers: D5, W1
#[tokio::test]
async fn what_is_too_long_or_not_text_is_refused_and_the_link_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("aaep/agent.sock");
    let listener = bind(&path).unwrap();
    let mut here = tokio::net::UnixStream::connect(&path).await.unwrap();
    let mut there = listener.accept().await;
    let long = [&1001_u32.to_be_bytes()[..], &[b'x'; 1001]].concat();
    here.write_all(&[&long[..], b"\0\0\0\x01\xFF", b"\0\0\0\x02{}", b"\0\0\0\x09{"].concat())
        .await
        .unwrap();
    drop(here);
    assert_eq!(there.receive().await, Err(LinkError::TooLong(TooLong { max: 1000 })));
    assert_eq!(there.receive().await, Err(LinkError::NotText));
    assert_eq!(there.receive().await.unwrap().unwrap().as_str(), "{}");
    assert!(matches!(there.receive().await, Err(LinkError::Lost(_))), "it was cut off");
    assert_eq!(there.receive().await, Ok(None));
}

const STRANGER: &str = "AAEP_TEST_STRANGER";

/// Not a test by itself: what the stranger below does, in a process of its own.
#[tokio::test]
async fn stranger() {
    let Some(path) = std::env::var_os(STRANGER) else { return };
    // The listener is root's, whom everybody trusts; it is the one that refuses.
    let mut link = connect(Path::new(&path), Options::default()).await.unwrap();
    let _ = link.send("stranger").await;
    assert!(matches!(link.receive().await, Ok(None) | Err(_)));
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    // The server closes the connection, perhaps before this.
    let _ = std::io::Write::write_all(&mut stream, b"\0\0\0\x08stranger");
    let read = std::io::Read::read(&mut stream, &mut [0; 1]);
    assert!(matches!(read, Ok(0) | Err(_)));
}

// covers: W10
#[tokio::test]
async fn another_user_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("aaep/agent.sock");
    let listener = bind(&path).unwrap();
    // The modes would keep the stranger out; they are opened here to see the second defence.
    for (place, mode) in [(home.path(), 0o755), (path.parent().unwrap(), 0o755), (&path, 0o666)] {
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
    }
    let program = home.path().join("stranger");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let accepting = tokio::spawn(async move {
        let mut there = listener.accept().await;
        there.receive().await
    });
    let mut command = std::process::Command::new(&program);
    command.args(["--exact", "stranger"]).env(STRANGER, &path).uid(65534).gid(65534);
    let run = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    match run {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            skipped("only root can act as another user");
            return;
        }
        run => {
            let run = run.unwrap();
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        }
    }
    let mut here = connect(&path, Options::default()).await.unwrap();
    here.send("own user").await.unwrap();
    let first = accepting.await.unwrap();
    assert_eq!(first.unwrap().unwrap().as_str(), "own user", "the stranger came first");
}
