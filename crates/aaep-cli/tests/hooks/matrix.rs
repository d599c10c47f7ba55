//! What each program does when its hook says something, or fails: the table of docs/guard-matrix.md.
//!
//! `cargo xtask guard-matrix` runs the whole table and writes it down; the step `agents` of the tests runs
//! what `aaep hook` answers and the commonest failures, with every program. "It ran" is a file on disk.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::programs::*;
use super::*;

/// How long a program may take for all of it.
const PATIENCE: Duration = Duration::from_secs(150);

/// What happens to the hook, or what it answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Case {
    NoHook,
    Yes,
    No,
    NobodyAnswers,
    NoHub,
    HubKilled,
    GarbageIn,
    HookKilled,
    TwoAtOnce,
    HookMissing,
    Exit1,
    Garbage,
    HalfAnswer,
    HostTimeout,
    Exit2Silent,
    Exit2SayingAllow,
    AskThere,
    DenyExit1,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    Ran,
    Blocked,
    /// It was killed, because it waited for ever.
    Waits,
}

impl Case {
    const ALL: [Self; 18] = [
        Self::NoHook,
        Self::Yes,
        Self::No,
        Self::NobodyAnswers,
        Self::NoHub,
        Self::HubKilled,
        Self::GarbageIn,
        Self::TwoAtOnce,
        Self::HookKilled,
        Self::HookMissing,
        Self::Exit1,
        Self::Garbage,
        Self::HalfAnswer,
        Self::HostTimeout,
        Self::Exit2Silent,
        Self::Exit2SayingAllow,
        Self::AskThere,
        Self::DenyExit1,
    ];

    /// What the tests try with every program.
    const HELD: [Self; 9] = [
        Self::Yes,
        Self::No,
        Self::NobodyAnswers,
        Self::NoHub,
        Self::HubKilled,
        Self::GarbageIn,
        Self::TwoAtOnce,
        Self::HookKilled,
        Self::Garbage,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::NoHook => "there is no hook",
            Self::Yes => "`aaep hook`, you say yes",
            Self::No => "`aaep hook`, you say no",
            Self::NobodyAnswers => "`aaep hook`, nobody answers",
            Self::NoHub => "`aaep hook`, there is no hub",
            Self::HubKilled => "`aaep hook`, the hub is killed while you are asked",
            Self::GarbageIn => "`aaep hook`, which is given garbage",
            Self::TwoAtOnce => "`aaep hook`, two calls at once, no to one and yes to the other",
            Self::HookKilled => "`aaep hook` is killed while you are asked",
            Self::HookMissing => "the hook's command is missing",
            Self::Exit1 => "the hook ends with 1",
            Self::Garbage => "the hook says garbage, and ends with 0",
            Self::HalfAnswer => "the hook says half a no, and ends with 0",
            Self::HostTimeout => "the hook takes longer than the program waits",
            Self::Exit2Silent => "the hook ends with 2, and says nothing",
            Self::Exit2SayingAllow => "the hook says yes, and ends with 2",
            Self::AskThere => "the hook says \"ask\", and nobody is at the program",
            Self::DenyExit1 => "the hook says no, and ends with 1",
        }
    }

    /// What has to be seen, whatever the program: what `aaep hook` answers holds.
    fn wanted(self) -> Option<Seen> {
        match self {
            Self::NoHook | Self::Yes => Some(Seen::Ran),
            Self::No
            | Self::NobodyAnswers
            | Self::NoHub
            | Self::HubKilled
            | Self::GarbageIn
            | Self::TwoAtOnce => Some(Seen::Blocked),
            _ => None,
        }
    }

    /// How the document puts it.
    fn cell(self, seen: Seen) -> &'static str {
        match seen {
            Seen::Ran if self.wanted().is_none() => "**runs**",
            Seen::Ran => "runs",
            Seen::Blocked => "blocked",
            Seen::Waits => "waits",
        }
    }
}

/// The answer of a hook in this program's form.
fn answer(program: Program, word: &str) -> Value {
    match program {
        Program::Gemini | Program::Opencode => json!({ "decision": word, "reason": "why" }),
        Program::Copilot => {
            json!({ "permissionDecision": word, "permissionDecisionReason": "why" })
        }
        _ => json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
            "permissionDecision": word, "permissionDecisionReason": "why" } }),
    }
}

/// A hook that says this and ends with that.
fn says(text: &str, code: u8) -> String {
    format!("cat > /dev/null\nprintf '%s\\n' '{text}'\nexit {code}")
}

fn script(case: Case, program: Program) -> String {
    let word = |word| answer(program, word).to_string();
    match case {
        Case::NoHook => String::new(),
        Case::NobodyAnswers => hook(program, "--host-timeout 5"),
        Case::NoHub => hook(program, "--hub unix:/nowhere"),
        Case::HubKilled => hook(program, "--host-timeout 12"),
        Case::GarbageIn => format!("cat > /dev/null\necho '{{\"tool' | {}", ours(program)),
        Case::Yes | Case::No | Case::HookKilled | Case::TwoAtOnce => hook(program, ""),
        Case::HookMissing => "exec /nowhere/aaep hook".into(),
        Case::Exit1 => says("", 1),
        Case::Garbage => says("this is no answer", 0),
        Case::HalfAnswer => {
            let no = word("deny");
            says(&no[..no.len() / 2], 0)
        }
        Case::HostTimeout => format!("cat > /dev/null\nsleep 8\n{}", says(&word("deny"), 2)),
        Case::Exit2Silent => "cat > /dev/null\nexit 2".into(),
        Case::Exit2SayingAllow => says(&word("allow"), 2),
        Case::AskThere => says(&word("ask"), 0),
        Case::DenyExit1 => says(&word("deny"), 1),
    }
}

async fn seen(bin: &Path, case: Case, program: Program) -> Seen {
    let hub = Hub::start(Setup::default());
    let home = hub.home();
    let ((ran, command), (other, second)) = (mark(home, "RAN"), mark(home, "OTHER"));
    let both: &[&str] = &[&command, &second];
    let model = model(program, &[if case == Case::TwoAtOnce { both } else { &both[..1] }]);
    let mut ear = Ear::unix(&hub).await;
    let waits = (case == Case::HostTimeout).then_some(3);
    let mut command = program.command(bin, home, &script(case, program), &model, waits);
    if case == Case::HookMissing {
        std::fs::remove_file(home.join("hook.sh")).unwrap();
    }
    // Whatever it says goes to a file: nobody reads it meanwhile.
    let log = std::fs::File::create(home.join("log")).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut agent = command.spawn().unwrap();
    let said = || std::fs::read_to_string(home.join("log")).unwrap_or_default();
    let answers = async {
        match case {
            Case::Yes | Case::No => {
                let request = asked(&mut ear, program).await;
                assert!(!ran.exists(), "{program:?} did not wait");
                let decision = if case == Case::Yes { "accept" } else { "reject" };
                ear.decide(&request, decision).await;
            }
            Case::TwoAtOnce => {
                for _ in 0..2 {
                    let request = asked(&mut ear, program).await;
                    let yes = request["action"].as_str().unwrap().contains("OTHER");
                    ear.decide(&request, if yes { "accept" } else { "reject" }).await;
                }
            }
            Case::HubKilled => {
                asked(&mut ear, program).await;
                hub.kill();
            }
            Case::HookKilled => {
                asked(&mut ear, program).await;
                kill_hook(home);
            }
            _ => {}
        }
    };
    if tokio::time::timeout(PATIENCE, answers).await.is_err() {
        panic!("{program:?}, {case:?}: nobody was asked\n{}\n{}", said(), model.told());
    }
    let end = std::time::Instant::now() + PATIENCE;
    let waited = loop {
        match agent.try_wait().unwrap() {
            Some(_) => break false,
            None if std::time::Instant::now() > end => break true,
            None => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    // Some leave helpers behind.
    let group = format!("-{}", agent.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    let _ = agent.wait();
    if case == Case::TwoAtOnce {
        assert!(other.exists(), "{program:?}: what was approved did not run\n{}", said());
    }
    let seen = match (ran.exists(), waited) {
        (true, _) => Seen::Ran,
        (_, true) => Seen::Waits,
        _ => Seen::Blocked,
    };
    if let Some(wanted) = case.wanted() {
        assert_eq!(seen, wanted, "{program:?}, {case:?}:\n{}\n{}", said(), model.told());
    }
    // That nothing ran proves something only if the program came to the tool.
    if seen == Seen::Blocked && case != Case::AskThere && case != Case::HookKilled {
        assert!(!model.told().is_empty(), "{program:?}, {case:?}: no tool was wanted\n{}", said());
    }
    seen
}

fn tried(bin: &Path, case: Case, program: Program) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(seen(bin, case, program))
}

/// The programs that are tried: all, or those that AAEP_MATRIX_PROGRAMS names.
fn chosen() -> Vec<Program> {
    let named = std::env::var("AAEP_MATRIX_PROGRAMS").unwrap_or_default();
    let is_chosen =
        |program: &Program| named.is_empty() || named.split(',').any(|id| id == program.id());
    Program::ALL.into_iter().filter(is_chosen).collect()
}

/// What the document says of a case with a program.
fn kept(case: Case, program: Program) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guard-matrix.md");
    let text = std::fs::read_to_string(file).unwrap();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
    let is_of = |cell: &String| cell.split(' ').next() == Some(program.id());
    let at = rows.next().unwrap().iter().position(is_of).unwrap();
    rows.find(|row| row[1] == case.words()).unwrap()[at].clone()
}

/// What `aaep hook` answers holds; what happens when it cannot answer is what the document says.
fn holds(program: Program) {
    let Some(bin) = programs() else { return };
    for case in Case::HELD {
        let seen = tried(&bin, case, program);
        assert_eq!(case.cell(seen), kept(case, program), "{program:?}, {case:?}");
    }
}

#[test]
fn what_you_answer_holds_with_claude() {
    holds(Program::Claude);
}

#[test]
fn what_you_answer_holds_with_codex() {
    holds(Program::Codex);
}

#[test]
fn what_you_answer_holds_with_gemini() {
    holds(Program::Gemini);
}

#[test]
fn what_you_answer_holds_with_qwen() {
    holds(Program::Qwen);
}

#[test]
fn what_you_answer_holds_with_kimi() {
    holds(Program::Kimi);
}

#[test]
fn what_you_answer_holds_with_copilot() {
    holds(Program::Copilot);
}

#[test]
fn what_you_answer_holds_with_opencode() {
    holds(Program::Opencode);
}

/// The version that a program says.
fn version(bin: &Path, program: Program) -> String {
    let home = tempfile::tempdir().unwrap();
    let model = Model::start(Vec::new()).unwrap();
    let set_up = program.command(bin, home.path(), "", &model, None);
    let mut command = Command::new(set_up.get_program());
    command.arg("--version").env_clear();
    command.envs(set_up.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said = command.output().map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    let said = said.unwrap_or_default();
    let mut words = said.split_whitespace().map(|word| word.trim_end_matches('.'));
    let is_version = |word: &&str| {
        word.matches('.').count() == 2 && word.starts_with(|c: char| c.is_ascii_digit())
    };
    words.find(is_version).unwrap_or("?").to_owned()
}

/// Writes the whole table where AAEP_MATRIX says.
#[test]
fn the_table_of_what_each_program_does_is_made() {
    let (Some(file), Some(bin)) = (std::env::var_os("AAEP_MATRIX"), programs()) else { return };
    let programs = chosen();
    let mut table = String::from("| |");
    for program in &programs {
        table += &format!(" {} {} |", program.id(), version(&bin, *program));
    }
    table += "\n|---|";
    table += &"---|".repeat(programs.len());
    let all: Vec<_> =
        Case::ALL.into_iter().flat_map(|case| programs.iter().map(move |it| (case, *it))).collect();
    let (next, cells) = (AtomicUsize::new(0), Mutex::new(vec![None; all.len()]));
    let work = || {
        while let Some((at, (case, program))) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, *all.get(at)?)))
        {
            let seen = std::panic::catch_unwind(|| tried(&bin, case, program)).ok();
            eprintln!("{}, {}: {seen:?}", program.id(), case.words());
            cells.lock().unwrap()[at] = seen;
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers.min(4)).for_each(|_| drop(scope.spawn(work)));
    });
    let cells = cells.into_inner().unwrap();
    let mut failed = Vec::new();
    for ((case, program), seen) in all.iter().zip(cells) {
        if *program == programs[0] {
            table += &format!("\n| {} |", case.words());
        }
        if seen.is_none() {
            failed.push((program.id(), *case));
        }
        table += &format!(" {} |", seen.map_or("not measured", |seen| case.cell(seen)));
    }
    std::fs::write(file, table + "\n").unwrap();
    assert!(failed.is_empty(), "{failed:?}");
}
