//! The command `aaep`: judges messages and streams of AAEP, the Agent Accessibility Event Protocol,
//! prints its JSON Schemas, explains the policy, runs the hub and a demonstration, asks for consent
//! in scripts and before tools of coding agents, hears and answers from a terminal, and looks at what
//! the hub kept.
//!
//! All output is plain lines, made to be heard one by one: no colour, frame or spinner.
//!
//! ```console
//! $ aaep validate events.jsonl
//! $ aaep check stream.jsonl
//! $ aaep conformance producer http://127.0.0.1:8707/aaep/v1
//! $ aaep capture --out stream.jsonl
//! $ aaep replay stream.jsonl
//! $ aaep inspect stream.jsonl
//! $ aaep schema --out schemas
//! $ aaep policy explain bank.transfer '{"amount": 5}'
//! $ aaep demo
//! $ aaep hub
//! $ aaep audit verify
//! $ aaep presence set
//! $ aaep ask "Delete the build?" && rm -r build
//! $ aaep listen
//! $ aaep login https://hub.example.org:8707
//! $ aaep status
//! $ aaep guard claude
//! $ aaep hook < call.json
//! $ aaep mcp --name files -- mcp-server-filesystem .
//! $ aaep acp -- gemini --acp
//! $ aaep doctor
//! $ aaep completions bash
//! $ aaep man
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `otlp` (on by default) | `log.otlp`: the hub sends each request as a span to a collector, by OTLP over HTTP |
#![allow(clippy::disallowed_methods)] // a command reads files, standard input and its arguments

/// A hub runs for months, and every connection allocates and frees on whichever thread serves it. The
/// C library's allocator keeps what was freed in pieces that fit nothing else: under `cargo xtask bench
/// tenants memory` it held 550 MB for 62 MB in use.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod acp;
mod admin;
mod allowed;
mod arguments;
mod ask;
mod audit;
mod capture;
mod check;
mod conformance;
mod demo;
mod discovery;
mod doctor;
mod exit;
mod guard;
mod hook;
mod hub;
mod input;
mod inspect;
mod judge;
mod lines;
mod listen;
mod log;
mod login;
mod manifest;
mod manual;
mod mcp;
mod policy;
mod presence;
mod reader;
mod replay;
mod schema;
mod signals;
mod status;
mod stdio;
mod systemd;
mod token;
mod validate;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use exit::Exit;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
    let result = run(arguments.command, &mut out).and_then(|exit| out.flush().map(|()| exit));
    match result {
        Ok(exit) => exit.into(),
        // The reader of the pipe has gone, and there is nobody left to tell.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // Dropping the writer would only try again.
            let _ = out.into_parts();
            Exit::Unable.into()
        }
        Err(error) => {
            exit::say(&format!("cannot write: {error}. Make room, or write somewhere else."));
            let _ = out.into_parts();
            Exit::Unable.into()
        }
    }
}

fn run(command: Command, out: &mut impl Write) -> io::Result<Exit> {
    match command {
        Command::Validate(options) => validate::run(&options, out),
        Command::Check(options) => check::run(&options, out),
        Command::Conformance(options) => conformance::run(options, out),
        Command::Capture(options) => capture::run(&options, out),
        Command::Inspect(options) => inspect::run(&options, out),
        Command::Replay(options) => replay::run(options, out),
        Command::Schema(options) => schema::run(&options, out),
        Command::Policy(options) => policy::run(&options.command, out),
        Command::Hub(options) => hub::run(&options, out),
        Command::Audit(options) => audit::run(&options, out),
        Command::Admin(options) => admin::run(&options, out),
        Command::Manifest(options) => manifest::run(&options, out),
        Command::Token(options) => token::run(&options, out),
        Command::Presence(options) => presence::run(&options, out),
        Command::Demo(options) => demo::run(&options, out),
        Command::Ask(options) => ask::run(&options, out),
        Command::Listen(options) => listen::run(&options, out),
        Command::Login(options) => login::run(&options, out),
        Command::Logout(options) => login::log_out(&options, out),
        Command::Status(options) => status::run(&options, out),
        Command::Guard(options) => guard::run(&options, out),
        Command::Hook(options) => hook::run(&options, out),
        Command::Mcp(options) => mcp::run(&options, out),
        Command::Acp(options) => acp::run(&options, out),
        Command::Doctor(options) => doctor::run(&options, out),
        Command::Completions(options) => manual::completions(&options, out),
        Command::Man(options) => manual::pages(&options, out),
    }
}
