//! `cargo xtask test`: everything that must hold before a change is accepted.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{answers, cargo, run as run_program};
use crate::{
    agents, api, at, book, cluster, features, fuzz, guests, operators, package, page, python,
    requirements, rules, sim, typescript, voices,
};

/// The crates that must also compile where there is no operating system beneath them.
const CORE: &[&str] =
    &["aaep-types", "aaep-shaping", "aaep-engine", "aaep-policy", "aaep-subscriber"];

const WASM: &str = "wasm32-unknown-unknown";

/// Where the connections of Windows are compiled, and the C compiler that some dependencies need there.
const WINDOWS: &str = "x86_64-pc-windows-gnu";
const WINDOWS_CC: &str = "x86_64-w64-mingw32-gcc";

/// How many rules are switched off; `cargo xtask rules` tries as many as one likes.
const SAMPLED_RULES: usize = 3;

/// What became of a step that did not fail.
enum StepResult {
    Passed,
    Skipped(String),
}

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<StepResult>,
}

/// The cheap steps come first, so that a small slip is found early.
const STEPS: &[Step] = &[
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step { name: "clippy", about: "no compiler or clippy warning", run: clippy },
    Step { name: "test", about: "unit, integration and documentation tests", run: tests },
    Step { name: "doc", about: "the documentation builds without warnings", run: doc },
    Step { name: "api", about: "the libraries offer what docs/api says", run: interface_is_listed },
    Step {
        name: "features",
        about: "every feature is documented and compiles alone; an agent links no server",
        run: features_stand_alone,
    },
    Step {
        name: "requirements",
        about: "every rule of a built part is enforced and covered",
        run: requirements_check,
    },
    Step {
        name: "rules",
        about: "three rules of the core, switched off in a copy, are missed by their tests",
        run: rules_are_missed,
    },
    Step {
        name: "book",
        about: "the pages of the documentation fit together; with mdBook, the site and axe-core on it",
        run: book_fits_together,
    },
    Step {
        name: "operators",
        about: "a hub behind the real nginx and Caddy",
        run: operators_are_served,
    },
    Step {
        name: "package",
        about: "what people install, packed twice the same, installed from there, and removed",
        run: packages_are_installed,
    },
    Step { name: "wasm", about: "the core crates compile for WebAssembly", run: wasm },
    Step {
        name: "windows",
        about: "what listens compiles for Windows, named pipes included",
        run: windows,
    },
    Step {
        name: "sim",
        about: "100,000 schedules, every crash point and every mutant of the simulator",
        run: simulate,
    },
    Step {
        name: "guests",
        about: "the published packages find no failure of ours in the demo",
        run: guests_come,
    },
    Step {
        name: "page",
        about: "the page, by keyboard, in Chromium against the real command",
        run: page_is_tried,
    },
    Step {
        name: "at",
        about: "what Orca says of the page in Chromium and Firefox, as kept in web/heard",
        run: page_is_heard,
    },
    Step {
        name: "voices",
        about: "what is heard and felt, with the real Speech Dispatcher, espeak-ng and BRLTTY",
        run: voices_are_heard,
    },
    Step {
        name: "agents",
        about: "the bridges, with the real Claude Code, Codex and Gemini CLI and a scripted model",
        run: agents_are_held,
    },
    Step {
        name: "python",
        about: "the Python package, installed into a fresh environment, with the real hub",
        run: python_is_tried,
    },
    Step {
        name: "typescript",
        about: "the packages @aaep/agent and @aaep/subscriber, as they are installed, with the real hub",
        run: typescript_is_tried,
    },
    Step {
        name: "cluster",
        about: "the logs of a cluster, on real PostgreSQL and NATS servers",
        run: cluster_is_tried,
    },
    Step { name: "fuzz", about: "a short fuzz run of every target", run: short_fuzz },
];

pub(crate) fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let chosen = choose(args)?;
    run_steps(&chosen)
}

/// What `--quick` runs: everything that an edit breaks most often, with the long tests shortened.
const QUICK: &[Step] = &[
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step { name: "clippy", about: "no compiler or clippy warning", run: clippy },
    Step {
        name: "test",
        about: "unit and integration tests, the long ones cut short",
        run: quick_tests,
    },
    Step {
        name: "requirements",
        about: "every rule of a built part is enforced and covered",
        run: requirements_check,
    },
];

/// Runs every step, also after one that failed, so that the end of the output names everything that
/// has to be mended.
fn run_steps(steps: &[&Step]) -> Result<()> {
    let mut passed = 0;
    let mut failed = Vec::new();
    let begun = Instant::now();
    for (index, step) in steps.iter().enumerate() {
        println!("Step {} of {}, {}: {}.", index + 1, steps.len(), step.name, step.about);
        let started = Instant::now();
        match (step.run)() {
            Ok(StepResult::Passed) => {
                passed += 1;
                println!("Passed {} in {} s.", step.name, started.elapsed().as_secs());
            }
            Ok(StepResult::Skipped(why)) => println!("Skipped {}: {why}", step.name),
            Err(error) => {
                println!("Failed {}: {error:#}", step.name);
                println!("To run this step alone: cargo xtask test --only {}", step.name);
                failed.push(step.name);
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    println!("All steps together took {} s.", begun.elapsed().as_secs());
    ensure!(failed.is_empty(), "failed steps: {}", failed.join(", "));
    Ok(())
}

/// Reads `--quick`, `--skip STEP` and `--only STEP`; the last two may be repeated.
fn choose(args: &[String]) -> Result<Vec<&'static Step>> {
    let (mut skip, mut only) = (Vec::new(), Vec::new());
    let mut steps = STEPS;
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let list = match word.as_str() {
            "--quick" => {
                steps = QUICK;
                continue;
            }
            "--skip" => &mut skip,
            "--only" => &mut only,
            _ => bail!("unknown argument {word:?}; known are --quick, --skip STEP and --only STEP"),
        };
        let name = words.next().with_context(|| format!("{word} needs the name of a step"))?;
        if !step_names().contains(&name.as_str()) {
            bail!("there is no step {name:?}; the steps are {}", step_names().join(", "));
        }
        list.push(name.as_str());
    }
    let chosen: Vec<_> = steps
        .iter()
        .filter(|step| only.is_empty() || only.contains(&step.name))
        .filter(|step| !skip.contains(&step.name))
        .collect();
    if chosen.is_empty() {
        bail!("--only and --skip leave no step to run");
    }
    Ok(chosen)
}

fn passed(command: &mut Command) -> Result<StepResult> {
    run_program(command)?;
    Ok(StepResult::Passed)
}

fn fmt() -> Result<StepResult> {
    passed(&mut cargo(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<StepResult> {
    passed(&mut cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn tests() -> Result<StepResult> {
    passed(&mut cargo(["test", "--workspace", "--no-fail-fast"]))
}

fn cluster_is_tried() -> Result<StepResult> {
    match cluster::test()? {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => Ok(StepResult::Passed),
    }
}

fn quick_tests() -> Result<StepResult> {
    let mut command = cargo(["test", "--workspace", "--lib", "--bins", "--tests"]);
    passed(command.env("AAEP_KILLS", "10").env("AAEP_SOAK_SECONDS", "2"))
}

fn doc() -> Result<StepResult> {
    passed(cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn interface_is_listed() -> Result<StepResult> {
    match api::missing() {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => api::run(&[]).map(|()| StepResult::Passed),
    }
}

fn features_stand_alone() -> Result<StepResult> {
    features::run(&[])?;
    Ok(StepResult::Passed)
}

fn requirements_check() -> Result<StepResult> {
    requirements::check()?;
    Ok(StepResult::Passed)
}

fn rules_are_missed() -> Result<StepResult> {
    rules::sample(SAMPLED_RULES)?;
    Ok(StepResult::Passed)
}

fn book_fits_together() -> Result<StepResult> {
    book::test()?;
    Ok(StepResult::Passed)
}

fn operators_are_served() -> Result<StepResult> {
    match operators::missing() {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => operators::test().map(|()| StepResult::Passed),
    }
}

fn packages_are_installed() -> Result<StepResult> {
    match package::missing() {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => package::test().map(|()| StepResult::Passed),
    }
}

fn wasm() -> Result<StepResult> {
    if !is_installed(WASM)? {
        let hint = "to have it checked: rustup target add";
        return Ok(StepResult::Skipped(format!("{WASM} is not installed; {hint} {WASM}")));
    }
    let mut command = cargo(["check", "--no-default-features", "--target", WASM]);
    for name in CORE {
        command.args(["--package", name]);
    }
    passed(&mut command)
}

fn windows() -> Result<StepResult> {
    if !is_installed(WINDOWS)? {
        let hint = "to have it checked: rustup target add";
        return Ok(StepResult::Skipped(format!("{WINDOWS} is not installed; {hint} {WINDOWS}")));
    }
    if !answers(WINDOWS_CC) {
        let hint = "to have it checked: apt-get install gcc-mingw-w64-x86-64";
        return Ok(StepResult::Skipped(format!("there is no {WINDOWS_CC}; {hint}")));
    }
    let mut command = cargo(["check", "--target", WINDOWS]);
    command.args(["--package", "aaep-transport", "--features", "aaep-transport/test-util"]);
    command.args(["--package", "aaep-subscriber", "--features", "aaep-subscriber/client"]);
    passed(&mut command)
}

/// Looks for the target's standard library itself, since not every compiler comes from rustup.
fn is_installed(target: &str) -> Result<bool> {
    if !answers("rustc") {
        bail!("rustc does not run; install Rust from https://rustup.rs");
    }
    let output =
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output()?;
    let path = String::from_utf8(output.stdout).context("rustc printed a path that is no text")?;
    Ok(std::path::Path::new(path.trim()).is_dir())
}

fn simulate() -> Result<StepResult> {
    // `cargo xtask sim` runs three times as many.
    sim::run(&["--schedules".to_owned(), "100000".to_owned()])?;
    Ok(StepResult::Passed)
}

fn guests_come() -> Result<StepResult> {
    if cfg!(not(unix)) {
        return Ok(StepResult::Skipped("the guests are run on Unix".into()));
    }
    match guests::missing() {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => guests::test().map(|()| StepResult::Passed),
    }
}

fn page_is_tried() -> Result<StepResult> {
    match page::missing() {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => page::test().map(|()| StepResult::Passed),
    }
}

fn page_is_heard() -> Result<StepResult> {
    Ok(at::test()?.map_or(StepResult::Passed, StepResult::Skipped))
}

fn voices_are_heard() -> Result<StepResult> {
    match voices::missing() {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => voices::test().map(|()| StepResult::Passed),
    }
}

fn agents_are_held() -> Result<StepResult> {
    match agents::missing() {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => agents::test().map(|()| StepResult::Passed),
    }
}

fn python_is_tried() -> Result<StepResult> {
    match python::missing() {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => python::test().map(|()| StepResult::Passed),
    }
}

fn typescript_is_tried() -> Result<StepResult> {
    match typescript::missing() {
        Some(why) => Ok(StepResult::Skipped(why)),
        None => typescript::test().map(|()| StepResult::Passed),
    }
}

fn short_fuzz() -> Result<StepResult> {
    fuzz::run(&["--seconds".to_owned(), "5".to_owned()])?;
    Ok(StepResult::Passed)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn names(args: &[&str]) -> Result<Vec<&'static str>> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        Ok(choose(&args)?.iter().map(|step| step.name).collect())
    }

    #[test]
    fn without_arguments_every_step_runs_in_order() {
        assert_eq!(names(&[]).unwrap(), step_names());
    }

    #[test]
    fn a_quick_run_has_no_step_of_its_own() {
        let quick = names(&["--quick"]).unwrap();
        assert!(quick.iter().all(|step| step_names().contains(step)));
        assert!(quick.len() < step_names().len());
        assert_eq!(names(&["--quick", "--only", "fmt"]).unwrap(), ["fmt"]);
    }

    #[test]
    fn a_skipped_step_is_left_out() {
        assert!(!names(&["--skip", "fuzz"]).unwrap().contains(&"fuzz"));
    }

    #[test]
    fn only_leaves_out_everything_else() {
        assert_eq!(names(&["--only", "fmt", "--only", "doc"]).unwrap(), ["fmt", "doc"]);
    }

    #[test]
    fn a_misspelled_step_is_refused_rather_than_ignored() {
        let error = names(&["--skip", "fuz"]).unwrap_err();
        assert!(error.to_string().contains("the steps are fmt"));
    }

    #[test]
    fn running_no_step_at_all_is_not_a_success() {
        assert!(names(&["--only", "fmt", "--skip", "fmt"]).is_err());
    }

    #[test]
    fn a_failed_step_fails_the_run_and_keeps_no_later_one_from_it() {
        static REACHED: AtomicBool = AtomicBool::new(false);
        fn fails() -> Result<StepResult> {
            bail!("broken")
        }
        fn passes() -> Result<StepResult> {
            REACHED.store(true, Ordering::Relaxed);
            Ok(StepResult::Passed)
        }
        let steps = [
            &Step { name: "one", about: "fails", run: fails },
            &Step { name: "two", about: "is run all the same", run: passes },
        ];
        let error = run_steps(&steps).unwrap_err();
        assert_eq!(error.to_string(), "failed steps: one");
        assert!(REACHED.load(Ordering::Relaxed));
    }
}
