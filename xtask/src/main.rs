//! Set-up, checks and generated files of this workspace: `cargo xtask help`.
//!
//! A new subcommand is one file with a `run` function and one row in [`COMMANDS`].
#![allow(clippy::disallowed_methods)] // a tool for developers: it reads files and runs programs

mod agents;
mod api;
mod at;
mod bench;
mod book;
mod cluster;
mod features;
mod fuzz;
mod grpc;
mod guests;
mod operators;
mod package;
mod page;
mod python;
mod requirements;
mod rules;
mod schema_diff;
mod sim;
mod test;
mod typescript;
mod voices;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

/// One subcommand: what to type, what it does, and the function that does it.
struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        usage: "test [--quick] [--skip STEP]... [--only STEP]...",
        about: "Run every check, one step after the other, to the end, and name those that failed; with \
                --quick, only those for the inner loop.",
        run: test::run,
    },
    Command {
        name: "fuzz",
        usage: "fuzz [--seconds N] [TARGET]...",
        about: "Fuzz the named targets, or all of them, for N seconds each (20 by default).",
        run: fuzz::run,
    },
    Command {
        name: "api",
        usage: "api [--write]",
        about: "Compare what the libraries offer with the listings in docs/api; with --write, write them \
                anew.",
        run: api::run,
    },
    Command {
        name: "features",
        usage: "features",
        about: "Check that every feature is documented and compiles alone, and that an agent links no \
                server.",
        run: features::run,
    },
    Command {
        name: "requirements",
        usage: "requirements [--check]",
        about: "Write docs/requirements.md from docs/rules.tsv, the code, the tests and the vectors; \
                with --check, write nothing and fail on any difference or gap.",
        run: requirements::run,
    },
    Command {
        name: "rules",
        usage: "rules --mutate N [--seed S] [--rule ID]... [--package NAME]...",
        about: "Disable, in a copy, what enforces N rules picked by the seed S (1 by default), one after \
                the other; a test that covers the rule must fail each time.",
        run: rules::run,
    },
    Command {
        name: "sim",
        usage: "sim [--schedules N] [--seed S]",
        about: "Run the simulator: N schedules (300000 by default), every crash point, every mutant.",
        run: sim::run,
    },
    Command {
        name: "grpc",
        usage: "grpc",
        about: "Make the Rust for gRPC anew from crates/aaep-transport/proto; it needs protoc.",
        run: grpc::run,
    },
    Command {
        name: "guests",
        usage: "guests",
        about: "Install the published Python packages and run them against `aaep demo`, and \
                `aaep listen` against the published producer.",
        run: guests::run,
    },
    Command {
        name: "at",
        usage: "at [chromium] [firefox] [lxterminal] [terminal] [--quick] [--only NAME,...] [--repeat N] [--write] \
                [--measure] [--orca48] [--document] [--check]",
        about: "Listen to the page with Orca on a desktop without a screen, and to the terminal with \
                Speech Dispatcher and BRLTTY, compare with the transcripts that are kept (--write keeps \
                new ones, of N runs the one heard most), and make docs/heard.md; --measure says how soon requests \
                are heard; --orca48 does it with Orca 48 in a Debian 13 that it makes in a folder, as \
                root; --document and --check only make or check the document.",
        run: at::run,
    },
    Command {
        name: "page",
        usage: "page",
        about: "Check the page's scripts, and try them in Chromium against the real command.",
        run: page::run,
    },
    Command {
        name: "python",
        usage: "python",
        about: "Build the Python package, install it into a fresh environment, and try it there.",
        run: python::run,
    },
    Command {
        name: "typescript",
        usage: "typescript [--write]",
        about: "Build @aaep/agent and @aaep/subscriber, and try them as they are installed. With --write, only \
                make their types anew from our schemas.",
        run: typescript::run,
    },
    Command {
        name: "voices",
        usage: "voices",
        about: "Install Speech Dispatcher, espeak-ng and BRLTTY, and try the voices with them.",
        run: voices::run,
    },
    Command {
        name: "agents",
        usage: "agents [--write]",
        about: "Install Claude Code, Codex, Gemini CLI and other coding agents with npm, and try the \
                bridges with them and a scripted model; --write only keeps what is heard, in \
                docs/heard-agents.md.",
        run: agents::run,
    },
    Command {
        name: "guard-matrix",
        usage: "guard-matrix [PROGRAM,…]",
        about: "Try what each coding agent does when its hook says something, or fails, and write \
                docs/guard-matrix.md. It takes about ten minutes. With names of programs, only show \
                theirs.",
        run: agents::matrix,
    },
    Command {
        name: "operators",
        usage: "operators",
        about: "Try a hub behind the real nginx and Caddy, which are installed if apt-get can.",
        run: operators::run,
    },
    Command {
        name: "package",
        usage: "package [--binary FILE] [--profile NAME] [--twice] [--install]",
        about: "Build the command once and make everything that people install: archive, .deb, wheel, \
                npm packages, SBOM. --binary packages another command; --twice builds in two places \
                and compares; --install gets cargo-deb from crates.io.",
        run: package::run,
    },
    Command {
        name: "book",
        usage: "book [--install]",
        about: "Make the documentation a site with mdBook and look at it with axe-core in Chromium; \
                --install gets mdBook from crates.io.",
        run: book::run,
    },
    Command {
        name: "bench",
        usage: "bench [NAME]",
        about: "Run the named benchmark; without a name, list them.",
        run: bench::run,
    },
    Command {
        name: "schema-diff",
        usage: "schema-diff DIR [--mutations N] [--seed S]",
        about: "Compare `aaep validate --schema` with a folder of published schemas, over their \
                examples and N seeded mutations.",
        run: schema_diff::run,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((name, rest)) = args.split_first() else {
        print!("{}", help());
        return Ok(());
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        print!("{}", help());
        return Ok(());
    }
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(rest),
        None => bail!("there is no subcommand {name:?}; `cargo xtask help` lists them"),
    }
}

fn help() -> String {
    let mut text = String::from("Set-up, checks and generated files of this workspace.\n");
    for command in COMMANDS {
        text.push_str(&format!("\ncargo xtask {}\n    {}\n", command.usage, command.about));
    }
    text.push_str("\nSteps of `cargo xtask test`: ");
    text.push_str(&test::step_names().join(", "));
    text.push_str(".\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_subcommand_and_every_step() {
        let text = help();
        for command in COMMANDS {
            assert!(text.contains(&format!("cargo xtask {}", command.name)), "{}", command.name);
            assert!(command.usage.starts_with(command.name));
        }
        for step in test::step_names() {
            assert!(text.contains(step));
        }
    }

    #[test]
    fn an_unknown_subcommand_says_where_the_list_is() {
        let error = dispatch(&["tset".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("cargo xtask help"));
    }
}
