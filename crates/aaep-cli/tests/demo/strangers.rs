//! Another user's program in the hub's place: it is told nothing, and its yes is not believed.

use std::os::unix::fs::PermissionsExt;

use crate::fake_hub::{FakeHub, WORDS};
use crate::support::*;
use crate::{Ended, aaep, demo, ended};

const TOKEN: &str = "aaep_stolenstolenstolenstolenstolenstolensto12";

async fn asked(options: &[&str]) -> Ended {
    let mut command = aaep(&["ask", "Delete the build?"]);
    command.args(options).env("AAEP_TOKEN", TOKEN);
    ended(command.spawn().unwrap()).await
}

// covers: W5, S5
#[test]
fn ask_believes_no_yes_of_another_users_program_and_shows_it_no_token() {
    run(async {
        let Some(fake) = FakeHub::of_nobody("0") else { return };
        for options in [&[][..], &["--json"]] {
            let refused = asked(&[&["--hub", &fake.url()], options].concat()).await;
            assert_eq!(refused.code, 2, "{}{}", refused.out, refused.err);
            let said = format!("{}{}", refused.out, refused.err);
            assert!(said.contains("belongs to another user"), "{said}");
            assert!(!said.contains(WORDS), "{said}");
        }
        assert_eq!(fake.got(), "");
        // That it would have worked, with somebody's word for it.
        let fooled = asked(&["--hub", &fake.url(), "--trust-loopback"]).await;
        assert_eq!((fooled.code, fooled.out.as_str()), (0, "Accepted by your own hand.\n"));
        assert!(fake.got().contains(TOKEN));
    });
}

// covers: W5, S5, W10
#[test]
fn a_socket_of_another_user_is_not_asked() {
    run(async {
        // Like /tmp: anybody may put something there, and nobody may remove what is another's.
        let directory = tempfile::tempdir().unwrap();
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(directory.path(), mode(0o1777)).unwrap();
        let path = directory.path().join("aaep-hub.sock").display().to_string();
        let Some(fake) = FakeHub::of_nobody(&path) else { return };
        let url = format!("unix:{path}");
        for command in
            [&["ask", "Well?", "--hub", &url][..], &["demo", "--say", "x", "--hub", &url]]
        {
            let refused = ended(aaep(command).env("AAEP_TOKEN", TOKEN).spawn().unwrap()).await;
            assert_eq!(refused.code, 2, "{}{}", refused.out, refused.err);
            assert!(refused.err.contains("belongs to another user"), "{}", refused.err);
        }
        let refused = listened(&url).await;
        assert!(refused.contains("belongs to another user"), "{refused}");
        assert_eq!(fake.got(), "");
    });
}

/// What `aaep listen` says, until it has looked at the hub and says what it thinks of it.
async fn listened(url: &str) -> String {
    use std::io::BufRead;
    let mut command = aaep(&["listen", url]);
    let (out, into) = std::io::pipe().unwrap();
    command.stdout(into.try_clone().unwrap()).stderr(into);
    let child = Listening(command.env("AAEP_TOKEN", TOKEN).spawn().unwrap());
    drop(command); // and with it our ends of the pipe
    let out = std::io::BufReader::new(out);
    let read = tokio::task::spawn_blocking(move || {
        let mut said = String::new();
        for line in out.lines().map_while(Result::ok) {
            said += &line;
            if line.contains("Connected to") || line.contains("another user") {
                break;
            }
        }
        said
    });
    let said = soon("what listen says", read).await.unwrap();
    drop(child);
    said
}

/// Ends with the test, also with one that fails: what it says is read to its end.
struct Listening(std::process::Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// covers: W5, S5
#[test]
fn listen_and_say_send_nothing_to_another_users_program() {
    run(async {
        let Some(fake) = FakeHub::of_nobody("0") else { return };
        for url in [fake.url(), fake.url().replace("http:", "ws:")] {
            let said = listened(&url).await;
            assert!(said.contains("belongs to another user"), "{url}: {said}");
        }
        let say = aaep(&["demo", "--say", "help", "--hub", &fake.url()]).spawn().unwrap();
        let say = ended(say).await;
        assert_eq!(say.code, 2);
        assert!(say.err.contains("belongs to another user"), "{}", say.err);
        assert_eq!(fake.got(), "");
    });
}

// covers: D34
#[test]
fn ask_prints_nothing_raw() {
    run(async {
        let words = "you.\u{1b}]0;owned\u{7}\u{9b}2J\nAccepted by root.\r\u{202e}eurt\u{7f}";
        let fake = FakeHub::of_ours(words);
        let raw = |text: &str| {
            text.trim_end_matches('\n')
                .contains(|sign: char| sign.is_control() || sign == '\u{202e}')
        };
        for options in [&["--hub", &fake.url()][..], &["--hub", &fake.url(), "--json"]] {
            let yes = asked(options).await;
            assert_eq!(yes.code, 0, "{}{}", yes.out, yes.err);
            assert!(!raw(&yes.out) && !raw(&yes.err), "{yes:?}");
            assert_eq!(yes.out.matches('\n').count(), 1);
        }
        let json = asked(&["--hub", &fake.url(), "--json"]).await;
        let said: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(said["decided_by"], words);
        // The words of an error.
        let refused = asked(&["--hub", &format!("{}/nowhere", fake.url())]).await;
        let say = aaep(&["demo", "--say", "help", "--hub", &fake.url()]).spawn().unwrap();
        for refused in [refused, ended(say).await] {
            assert!(!raw(&refused.out) && !raw(&refused.err), "{refused:?}");
        }
    });
}

// covers: W10
#[test]
fn the_socket_is_found_by_itself_and_serves_ask_and_say() {
    run(async {
        let hub = demo(&[]);
        let runtime = hub.socket().parent().unwrap().parent().unwrap().to_owned();
        let local = |arguments: &[&str]| {
            let mut command = aaep(arguments);
            command.env("XDG_RUNTIME_DIR", &runtime).env("HOME", hub.directory());
            command
        };
        let mut ear = Ear::unix(&hub).await;
        let child = local(&["ask", "Delete the build?"]).spawn().unwrap();
        let request = ear.event("awaiting.confirmation").await;
        ear.decide(&request, "accept").await;
        let yes = ended(child).await;
        assert_eq!((yes.code, yes.out.as_str()), (0, "Accepted on this machine.\n"), "{}", yes.err);
        let said = ended(local(&["demo", "--say", "help"]).spawn().unwrap()).await;
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    });
}
