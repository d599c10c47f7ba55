//! What the pages of docs/ show: each command is run, or the table says where it is and why not here.
#![cfg(unix)] // the shown commands are those of a Unix shell
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // tests run programs

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use support::{folder, root};

/// What becomes of something that a page shows.
enum How {
    /// It is run by this script, which has it as `COMMAND`.
    Run(&'static str),
    /// The block becomes this file, for what is run after it.
    File(&'static str),
    /// The test or the example in this file does it; it has these words.
    In(&'static str, &'static str),
    /// Nothing runs it, for this reason.
    Not(&'static str),
}
use How::{File, In, Not, Run};

/// How it begins, and what becomes of it. A block that begins with a command is one for each line.
type Table = &'static [(&'static str, How)];

const PAGES: &[(&str, Table)] = &[
    (
        "install",
        &[
            (
                "sudo install",
                In("packaging/try.sh", "/usr/share/doc/aaep/examples/aaep.example.toml"),
            ),
            ("sudo systemctl", Not("needs systemd as the first process; try.sh verifies the unit")),
            ("systemctl --user", Not("needs a session of systemd; try.sh verifies the unit")),
            ("mkdir", Run("COMMAND")),
            (
                "aaep completions",
                Run("COMMAND\ngrep -q _aaep ~/.local/share/bash-completion/completions/aaep"),
            ),
            ("aaep man", Run("COMMAND\ntest -s ~/.local/share/man/man1/aaep-listen.1")),
            ("buildah build", In("packaging/try.sh", "--format docker")),
            ("podman run", Not("try.sh runs the image with buildah, which needs no podman")),
            ("cargo xtask package --twice", Not("builds the command twice, for many minutes")),
        ],
    ),
    ("operating", &[("scrape_configs:", Not("configures Prometheus, which is another program"))]),
    (
        "demo",
        &[
            ("aaep demo --say", Run("COMMAND --hub \"$AAEP_URL\" < answers > said.txt &\nAGREED")),
            ("aaep demo", Run("apart\nready COMMAND --ephemeral --listen 127.0.0.1:0")),
            (
                "curl",
                Run(
                    "aaep capture --out told.jsonl 2> errors.txt &\nuntil COMMAND --fail --silent && grep -q session.completed told.jsonl; do sleep 0.2; done\nkill -INT $!\nwait $!",
                ),
            ),
            ("aaep ask", Run("mkdir build\nASKED\ntest ! -e build")),
        ],
    ),
    (
        "tools",
        &[
            (
                "aaep capture --out",
                Run(
                    "COMMAND 2> errors.txt &\nsay_until 'session.completed' session.jsonl\nkill -INT $!\nwait $!",
                ),
            ),
            (
                "aaep capture ws:",
                Run("COMMAND > tools.jsonl &\nsay_until 'tool.invoked.*' tools.jsonl 10\nwait $!"),
            ),
            (
                "aaep capture http:",
                Run(
                    "THEIRS=$(played --no-delay --stay)\nCOMMAND\ngrep -q tool.invoked theirs.jsonl",
                ),
            ),
            (
                "{\"captured_at\"",
                Run(
                    "head -n 1 session.jsonl | grep -q '^{\"captured_at\":\"[^\"]*Z\",\"offset_ms\":[0-9.]*,\"message\":{'",
                ),
            ),
            ("aaep replay session.jsonl", Run("PLAYED")),
            ("aaep listen 'stdio:aaep replay", Run("HEARD '1,234.56'")),
            ("aaep inspect session.jsonl --format", Run("COMMAND\ngrep -q '</html>' session.html")),
            ("aaep inspect session.jsonl --follow", Run("STOPPED\ngrep -q 1,234.56 stopped.txt")),
            ("aaep inspect session.jsonl", Run("COMMAND | grep -q 1,234.56")),
            ("aaep inspect http", Run("STOPPED")),
        ],
    ),
    (
        "policy",
        &[
            ("[[rule]]", File("policy.toml")),
            ("aaep policy check", Run("COMMAND")),
            ("aaep policy explain", Run("COMMAND | grep -q 'Transfer'")),
            ("aaep hub", Run("apart\nready COMMAND --ephemeral --listen 127.0.0.1:0")),
            (
                "session.run_under",
                In(
                    "crates/aaep-agent/src/policy.rs",
                    "session.run_under(&policy, \"files.delete\", &arguments, work).await?;",
                ),
            ),
        ],
    ),
    (
        "presence",
        &[
            ("aaep presence set", Run("apart\nprintf '2468\\n2468\\n' | COMMAND")),
            ("[presence]", File("policy.toml")),
        ],
    ),
    (
        "profiles",
        &[
            ("{", File("medical.json")),
            ("[[hearing]]\nrole = \"auditor\"\ntypes", File("hearing.toml")),
            ("[[hearing]]", File("whole.toml")),
        ],
    ),
    (
        "conformance",
        &[
            (
                "aaep conformance producer http:",
                In("crates/aaep-cli/tests/conformance.rs", "hub-http"),
            ),
            (
                "aaep conformance subscriber",
                In("crates/aaep-cli/tests/conformance.rs", "listen-http"),
            ),
            (
                "aaep conformance producer grpc:",
                In("crates/aaep-cli/tests/conformance.rs", "hub-grpc"),
            ),
            (
                "aaep conformance producer 'stdio:",
                In("crates/aaep-cli/tests/conformance.rs", "hub-stdio"),
            ),
            (
                "cargo run --release -p aaep-conformance",
                In("crates/aaep-conformance/Cargo.toml", "name = \"faults\""),
            ),
        ],
    ),
    (
        "grpc",
        &[
            ("aaep hub --grpc", Run("apart\nready COMMAND --ephemeral --listen 127.0.0.1:0")),
            (
                "aaep listen grpc:",
                Run("apart\nserved --grpc 127.0.0.1:0\nHEARD Connected\nkill $SERVED"),
            ),
            ("aaep capture grpcs:", In("crates/aaep-cli/tests/hub/certificates.rs", "grpcs")),
            ("aaep stdio", Run("COMMAND < /dev/null")),
            // What `ssh` does with it is another program's.
            ("aaep listen 'stdio:ssh", Run("HEARD Connected")),
            ("aaep listen 'stdio:aaep replay", Run("recorded\nHEARD '1,234.56'")),
            ("aaep listen pipe:", Not("there are named pipes on Windows alone")),
        ],
    ),
    (
        "page",
        &[
            ("aaep demo", Run("apart\nready COMMAND --ephemeral --listen 127.0.0.1:0")),
            ("allowed_origins", File("aaep.toml")),
            ("<script", In("web/tests/browser/hostile.test.js", "docs/page.md")),
        ],
    ),
    (
        "cluster",
        &[
            (
                "(umask",
                Run(
                    "COMMAND\ntest \"$(wc -c < cluster.key)\" -eq 64\ntest \"$(ls -l cluster.key | cut -c 1-10)\" = -rw-------",
                ),
            ),
            ("aaep hub", In("crates/aaep-cli/tests/cluster/main.rs", "--cluster-key")),
            (
                "server_name",
                Not("three servers on three machines; the tests of the store write their own"),
            ),
        ],
    ),
];

/// What is run after the last block of a page, for the files that it gave.
const AFTER: &[(&str, &str)] = &[
    ("presence", "aaep policy check policy.toml"),
    (
        "profiles",
        "recorded\naaep check --profile medical.json session.jsonl\n\
         for file in hearing whole; do apart; ready aaep hub --config $file.toml --ephemeral --listen 127.0.0.1:0; done\n\
         apart; echo 'profile = \"medical.json\"' > aaep.toml; ready aaep hub --config aaep.toml --ephemeral --listen 127.0.0.1:0",
    ),
    ("page", "apart; ready aaep hub --config aaep.toml --ephemeral --listen 127.0.0.1:0"),
];

/// What the scripts use.
const PRELUDE: &str = r#"
until_said() { until grep -q "$1" "$2" 2> /dev/null; do sleep 0.05; done; }
# What follows has a home of its own, so that it does not meet the demo.
apart() {
    export HOME=$(mktemp -d "$OWN/XXXXXX") && export XDG_RUNTIME_DIR=$HOME
}
# Starts it, waits until it says that it is ready, and ends it.
ready() {
    "$@" > ready.txt & until_said '^Ready' ready.txt; kill $!; wait $!
}
# A hub that goes on.
served() {
    aaep hub --ephemeral --listen 127.0.0.1:0 "$@" > served.txt & SERVED=$!
    until_said '^Ready' served.txt
    GRPC=$(sed -n 's/^.*\(grpc:[^ ]*\).*$/\1/p' served.txt | head -n 1)
}
say() { aaep demo --hub "$AAEP_URL" --say balance < /dev/null > /dev/null; }
# Says something until this stands in the file, so often.
say_until() { until [ "$(grep -c "$1" "$2" 2> /dev/null)" -ge "${3:-1}" ]; do say; done; }
# A recording of a session.
recorded() {
    aaep capture --out session.jsonl 2> errors.txt &
    say_until session.completed session.jsonl; kill -INT $!; wait $!
}
# Plays the recording, and says where.
played() {
    aaep replay session.jsonl --listen 127.0.0.1:0 "$@" > played.txt 2> played-errors.txt &
    until_said '^Playing' played.txt; sed -n 's/^Playing: //p' played.txt
}
"#;

/// Scripts that have a name in the table.
const NAMED: &[(&str, &str)] = &[
    // Somebody agrees in this terminal.
    (
        "AGREED",
        "exec 3> answers\nuntil_said 'Type yes or no' said.txt\necho yes >&3\nexec 3>&-\nwait $!\ngrep -q '20 euros were sent to Ann' said.txt",
    ),
    // Somebody listens elsewhere, and agrees.
    (
        "ASKED",
        "aaep listen \"$AAEP_URL\" < answers > listened.txt & exec 3> answers\nuntil_said Connected listened.txt\n\
         (until_said 'Type yes or no' listened.txt; echo yes >&3; until_said 'To be sure' listened.txt; echo yes >&3) &\n\
         COMMAND\necho quit >&3\nexec 3>&-\nwait",
    ),
    (
        "PLAYED",
        "COMMAND > playing.txt & PLAYER=$!\nuntil_said '^Playing' playing.txt\nURL=$(sed -n 's/^Playing: //p' playing.txt)\naaep capture \"$URL\" --timeout 20 --count 5 > heard.jsonl\nwait $PLAYER\ntest \"$(wc -l < heard.jsonl)\" -eq 5",
    ),
    (
        "STOPPED",
        "(COMMAND) > stopped.txt 2> errors.txt & sleep 1\nkill -INT $! 2> /dev/null\nwait $! || true",
    ),
];

/// Somebody listens with the command until these words are heard.
const HEARD: &str = "COMMAND < answers > heard.txt & exec 3> answers\nuntil_said WORDS heard.txt\necho quit >&3\nexec 3>&-\nwait $!";

/// Addresses of the pages, and what stands for them here.
const PLACES: &[(&str, &str)] = &[
    ("http://127.0.0.1:8000/", "\"$THEIRS\""),
    ("grpc://127.0.0.1:8708", "\"$GRPC\""),
    ("127.0.0.1:8708", "127.0.0.1:0"),
    ("127.0.0.1:8800", "127.0.0.1:0"),
    ("127.0.0.1:8801", "127.0.0.1:0"),
    ("127.0.0.1:8707", "$PLACE"),
    ("--timeout 60", "--timeout 2"),
    ("/tmp/play", "\"$OWN/play\""),
];

/// The demo, ended with the test.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn started(own: &Path) -> (Demo, String) {
    std::fs::set_permissions(own, std::fs::Permissions::from_mode(0o700)).expect("own");
    let mut demo = support::aaep(&["demo", "--ephemeral", "--listen", "127.0.0.1:0"])
        .env("HOME", own)
        .env("XDG_RUNTIME_DIR", own)
        .stderr(Stdio::inherit())
        .spawn()
        .map(Demo)
        .expect("the demo starts");
    let lines = BufReader::new(demo.0.stdout.take().expect("its output")).lines();
    let mut url = None;
    for line in lines.map_while(Result::ok) {
        url = url.or_else(|| line.strip_prefix("Listening: ").map(str::to_owned));
        if line.starts_with("Ready.") {
            break;
        }
    }
    (demo, url.expect("it says where it listens"))
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(root().join(format!("docs/{name}.md"))).expect(name)
}

/// Everything that a page shows: indented or fenced blocks, and of blocks of commands each line.
fn shown(document: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let (mut fenced, mut inside) = (false, false);
    for line in document.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
            inside = false;
            continue;
        }
        let indented = line.starts_with("    ") && !line.trim_start().starts_with("- ");
        if fenced || indented || inside && line.is_empty() {
            if !inside {
                blocks.push(String::new());
            }
            inside = true;
            let block = blocks.last_mut().expect("begun");
            block.push_str(if fenced { line } else { line.strip_prefix("    ").unwrap_or(line) });
            block.push('\n');
        } else {
            inside = false;
        }
    }
    let commands = ["aaep ", "buildah ", "cargo ", "curl ", "mkdir ", "sudo ", "(umask "];
    blocks
        .into_iter()
        .flat_map(|block| {
            let block = block.trim().to_owned();
            match commands.iter().any(|begins| block.starts_with(begins)) {
                true => block.lines().map(|line| line.trim().to_owned()).collect(),
                false => vec![block],
            }
        })
        .collect()
}

/// The script with everything that has a name in it.
fn script(how: &str, command: &str) -> String {
    let mut command = command.to_owned();
    for (from, to) in PLACES {
        command = command.replace(from, to);
    }
    let mut text = how.to_owned();
    if let Some((before, words)) = how.split_once("HEARD ") {
        let (words, after) = words.split_once('\n').unwrap_or((words, ""));
        text = format!("{before}{}\n{after}", HEARD.replace("WORDS", words));
    }
    for (name, meaning) in NAMED {
        text = text.replace(name, meaning);
    }
    if command.starts_with("aaep replay") && !command.contains("--listen") {
        command.push_str(" --listen 127.0.0.1:0");
    }
    text.replace("COMMAND", &command)
}

fn run(own: &Path, hub: &str, script: &str) {
    let aaep = Path::new(env!("CARGO_BIN_EXE_aaep")).parent().expect("a folder");
    let place = hub.trim_start_matches("http://").trim_end_matches("/aaep/v1");
    let text = format!("{PRELUDE}\n{script}");
    // The whole group of processes ends with it.
    let ended = Command::new("timeout")
        .args(["--kill-after=5", "60", "sh", "-eu", "-c", &text])
        .current_dir(own)
        .env_clear()
        .env("PATH", format!("{}:{}:/usr/bin:/bin", own.join("bin").display(), aaep.display()))
        .env("HOME", own)
        .env("OWN", own)
        .env("XDG_RUNTIME_DIR", own)
        .env("AAEP_URL", hub)
        .env("PLACE", place)
        .output()
        .expect("a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&ended.stdout), text(&ended.stderr));
    assert!(ended.status.success(), "{script}\n{}\n{out}\n{err}", ended.status);
}

/// What stands for `ssh`: it runs the command here.
const SSH: &str = "#!/bin/sh\nshift\nexec \"$@\"\n";

/// Tries everything that a page shows, in its order.
fn try_page(name: &str) {
    let own = folder(&format!("docs-{name}"));
    let (_demo, hub) = started(&own);
    std::fs::create_dir(own.join("bin")).expect("a folder");
    let ssh = own.join("bin/ssh");
    std::fs::write(&ssh, SSH).expect("a program");
    std::fs::set_permissions(ssh, std::fs::Permissions::from_mode(0o755)).expect("a program");
    run(&own, &hub, "mkfifo answers");
    let (_, table) = PAGES.iter().find(|(page, _)| *page == name).expect("its table");
    let mut used = vec![false; table.len()];
    for shown in shown(&text_of(name)) {
        let row = table.iter().position(|(begins, _)| shown.starts_with(begins));
        let row = row.unwrap_or_else(|| unreachable!("docs/{name}.md: no test for\n{shown}"));
        used[row] = true;
        match &table[row].1 {
            Run(how) => run(&own, &hub, &script(how, &shown)),
            File(file) => std::fs::write(own.join(file), shown).expect("a file"),
            In(file, words) => {
                let text = std::fs::read_to_string(root().join(file)).expect(file);
                assert!(text.contains(words), "{file} has no {words:?} any more");
            }
            Not(reason) => assert!(!reason.is_empty()),
        }
    }
    for (row, used) in table.iter().zip(used) {
        assert!(used, "docs/{name}.md does not show {:?} any more", row.0);
    }
    if let Some((_, how)) = AFTER.iter().find(|(page, _)| *page == name) {
        run(&own, &hub, how);
    }
}

/// A test for each page, so that they run beside each other.
macro_rules! pages {
    ($($page:ident)*) => {
        $(#[test]
        fn $page() {
            try_page(stringify!($page));
        })*

        #[test]
        fn every_page_of_the_table_is_tried() {
            let named: Vec<&str> = PAGES.iter().map(|(page, _)| *page).collect();
            assert_eq!(named, [$(stringify!($page)),*]);
        }
    };
}

pages!(install operating demo tools policy presence profiles conformance grpc page cluster);

/// What a page names as a command: in code of a line, or as a line of a block.
fn named(document: &str) -> Vec<String> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for line in document.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced || line.starts_with("    ") {
            found.push(line.trim().to_owned());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found.retain(|text| text.starts_with("aaep "));
    found
}

/// The subcommands and options that a command has.
struct Reference(BTreeMap<String, (Vec<String>, String)>);

impl Reference {
    /// The names below it, and what it says of itself.
    fn of(&mut self, command: &str) -> &(Vec<String>, String) {
        self.0.entry(command.to_owned()).or_insert_with(|| {
            let mut words: Vec<&str> = command.split_whitespace().collect();
            words.push("--help");
            let help = support::run(&words).out;
            let listed = help.split_once("\nCommands:\n").map_or("", |(_, listed)| listed);
            let lines = listed.lines().take_while(|line| !line.is_empty());
            let names = lines.filter_map(|line| {
                let line = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
                line.split_whitespace().next().map(str::to_owned)
            });
            (names.collect(), help)
        })
    }

    /// What of this command there is not.
    fn lacks(&mut self, text: &str) -> Option<String> {
        // What stands behind a bar, `--` or `&&` is another command's.
        let own = text.split([';', '|', '&', '\'', '#']).next().unwrap_or_default();
        let own = own.split(" -- ").next().unwrap_or_default();
        let (mut command, mut path_is_over) = (String::new(), false);
        for word in own.split_whitespace().skip(1) {
            let below = &self.of(&command).0;
            if !path_is_over && below.iter().any(|name| name == word) {
                command = format!("{command} {word}").trim().to_owned();
            } else if !path_is_over && !below.is_empty() && command.is_empty() {
                let plain = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
                if plain && !word.starts_with('-') {
                    return Some(format!("aaep has no command {word}"));
                }
                path_is_over = true;
            } else {
                path_is_over = true;
            }
            let option = word.split(['=', ',', '.']).next().unwrap_or_default();
            let option = option.trim_end_matches([']', ')', ':']);
            if option.starts_with("--") && option.len() > 2 {
                let help = &self.of(&command).1;
                let has = help.split_whitespace().any(|known| {
                    known.trim_end_matches([',', '.', ')']).split('=').next() == Some(option)
                });
                if !has && !["--help", "--version"].contains(&option) {
                    return Some(format!("aaep {command} has no {option}"));
                }
            }
        }
        None
    }
}

#[test]
fn every_command_that_a_page_names_exists_with_its_options() {
    let mut reference = Reference(BTreeMap::new());
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let mut files = vec![root().join("README.md")];
    for folder in ["docs", "docs/how-to"] {
        let pages = std::fs::read_dir(root().join(folder)).expect(folder);
        files.extend(pages.map(|entry| entry.expect("an entry").path()));
    }
    files.retain(|file| file.extension().is_some_and(|kind| kind == "md"));
    for file in files {
        for text in named(&std::fs::read_to_string(&file).expect("a page")) {
            seen += 1;
            if let Some(lack) = reference.lacks(&text) {
                let file = file.file_name().unwrap_or_default().to_string_lossy();
                wrong.push(format!("{file}: `{text}`: {lack}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 200, "{seen}");
    // The check itself misses neither.
    assert!(
        reference.lacks("aaep lisen x").is_some()
            && reference.lacks("aaep hub --lisen x").is_some()
    );
}
