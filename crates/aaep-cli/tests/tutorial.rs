//! docs/tutorial.md: every command of it does what it says, in its order.
#![cfg(unix)] // the shown commands are those of a Unix shell
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // tests run programs

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use support::{folder, root};

/// The demo, ended with the test.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Blocks of these kinds, in their order.
fn blocks(document: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        match line.strip_prefix("```") {
            Some("") => inside = false,
            Some(kind) => {
                all.push((kind.to_owned(), String::new()));
                inside = true;
            }
            None if inside => {
                if let Some((_, text)) = all.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            None => {}
        }
    }
    all
}

/// Somebody listens in another terminal and says yes, twice, while this runs.
const ANSWERED: &str = r#"
mkfifo typed
aaep listen "$HUB_URL" < typed > listened.txt &
exec 3> typed
until grep -q Connected listened.txt; do sleep 0.1; done
(
    until grep -q 'Type yes or no' listened.txt; do sleep 0.1; done
    echo yes >&3
    until grep -q 'To be sure' listened.txt; do sleep 0.1; done
    echo yes >&3
) &
COMMAND
test ! -e report.txt
echo quit >&3
exec 3>&-
wait
"#;

fn run(script: &str, own: &Path, hub: &str, data: &str) -> String {
    let aaep = Path::new(env!("CARGO_BIN_EXE_aaep")).parent().expect("a folder");
    let ended = Command::new("timeout")
        .args(["120", "sh", "-eu", "-c", script])
        .current_dir(own)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", aaep.display()))
        .env("HOME", own)
        .env("XDG_RUNTIME_DIR", own)
        .env("HUB_URL", hub)
        .env("AAEP_URL", hub)
        .env("DEMO_DATA", data)
        .output()
        .expect("a shell");
    let (out, err) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{script}\n{}\n{out}\n{err}", ended.status);
    out.into_owned()
}

/// The demo, where it listens, and where it keeps what it is told.
fn demo(own: &Path) -> (Demo, String, String) {
    std::fs::set_permissions(own, std::fs::Permissions::from_mode(0o700)).expect("own");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["demo", "--listen", "127.0.0.1:0"])
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", own)
        .env("XDG_RUNTIME_DIR", own)
        .stdout(Stdio::piped())
        .spawn()
        .map(Demo)
        .expect("the demo starts");
    let lines = BufReader::new(demo.0.stdout.take().expect("its output")).lines();
    let (mut hub, mut data) = (String::new(), String::new());
    for line in lines.map_while(Result::ok) {
        if let Some(url) = line.strip_prefix("Listening: ") {
            hub = url.to_owned();
        }
        if let Some((_, kept)) = line.split_once("is kept in ") {
            data = kept.split(". ").next().unwrap_or_default().to_owned();
        }
        if line.starts_with("Ready.") {
            break;
        }
    }
    assert!(!hub.is_empty() && !data.is_empty(), "{hub} {data}");
    (demo, hub, data)
}

/// Somebody listens, is asked about a transfer, and says yes.
const HEARD: &str = r#"
mkfifo typed
aaep listen "$HUB_URL" < typed > listened.txt &
exec 3> typed
until grep -q Connected listened.txt; do sleep 0.1; done
aaep demo --hub "$HUB_URL" --say "transfer 20 euros to Ann" < /dev/null > said.txt &
until grep -q 'Type yes or no' listened.txt; do sleep 0.1; done
echo yes >&3
until grep -q 'To be sure' listened.txt; do sleep 0.1; done
echo yes >&3
until grep -q '^Done' listened.txt; do sleep 0.1; done
echo quit >&3
exec 3>&-
wait
"#;

/// The transcript in the README is what was heard. With AAEP_HEARD=write it is written there.
#[test]
fn the_readme_shows_what_is_heard() {
    let own = folder("readme-heard");
    let (_demo, hub, data) = demo(&own);
    run(HEARD, &own, &hub, &data);
    let heard = std::fs::read_to_string(own.join("listened.txt")).expect("what was heard");
    let story = heard.lines().skip_while(|line| !line.starts_with("Started"));
    let story: Vec<&str> = story.take_while(|line| *line != "Goodbye.").collect();
    let file = root().join("README.md");
    let readme = std::fs::read_to_string(&file).expect("README.md");
    let (before, rest) = readme.split_once("```text\n").expect("the README has a transcript");
    let (shown, after) = rest.split_once("```").expect("it ends");
    if std::env::var("AAEP_HEARD").is_ok_and(|how| how == "write") {
        let text = format!("{before}```text\n{}\n```{after}", story.join("\n"));
        std::fs::write(&file, text).expect("README.md can be written");
        return;
    }
    assert_eq!(shown.lines().collect::<Vec<_>>(), story);
}

#[test]
fn every_command_of_the_tutorial_works_in_its_order() {
    let document = std::fs::read_to_string(root().join("docs/tutorial.md")).expect("the tutorial");
    let own = folder("tutorial");
    let (_demo, hub, data) = demo(&own);
    let (mut heard, mut done) = (String::new(), 0);
    for (kind, text) in blocks(&document) {
        // The demo of the reader has the usual port; other tests may have it here.
        let text = text.replace("aaep demo --say", "aaep demo --hub \"$HUB_URL\" --say");
        match &*kind {
            "sh" => heard = run(&text, &own, &hub, &data),
            "answered" => heard = run(&ANSWERED.replace("COMMAND", &text), &own, &hub, &data),
            "heard" => assert!(heard.contains(text.trim()), "{text}\n{heard}"),
            other => unreachable!("{other}"),
        }
        done += 1;
    }
    assert!(done >= 7, "the tutorial shows its commands");
    assert!(own.join("listened.txt").exists(), "somebody listened");
}
