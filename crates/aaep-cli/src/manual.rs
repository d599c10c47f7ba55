//! `aaep completions` and `aaep man`: what a shell and a reader of manuals need to know, made from the
//! definitions that the command itself reads.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::exit::{self, Exit};

/// Print what a shell needs to complete this command.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  aaep completions bash > ~/.local/share/bash-completion/completions/aaep
  aaep completions zsh > ~/.zfunc/_aaep
  aaep completions fish > ~/.config/fish/completions/aaep.fish")]
pub(crate) struct CompletionsOptions {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Print the manual page, or write one page for each command.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  aaep man | man -l -
  aaep man --out ~/.local/share/man/man1")]
pub(crate) struct ManOptions {
    /// Write the pages of all commands to this directory.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
}

pub(crate) fn completions(options: &CompletionsOptions, out: &mut impl Write) -> io::Result<Exit> {
    // The generator panics when it cannot write: memory always takes it.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "aaep", &mut script);
    out.write_all(&script)?;
    Ok(Exit::Good)
}

pub(crate) fn pages(options: &ManOptions, out: &mut impl Write) -> io::Result<Exit> {
    let Some(directory) = &options.out else {
        clap_mangen::Man::new(Arguments::command()).render(out)?;
        return Ok(Exit::Good);
    };
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), directory));
    match written {
        Ok(()) => {
            writeln!(out, "Wrote the manual pages to {}.", directory.display())?;
            Ok(Exit::Good)
        }
        Err(error) => {
            exit::say(&format!("cannot write to {}: {error}", directory.display()));
            Ok(Exit::Unable)
        }
    }
}
