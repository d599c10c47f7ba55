//! `aaep guard`: sets a coding agent up so that it asks, proves that it does, and takes it back.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use aaep_bridge::doors::Door;
use aaep_bridge::guard::canary::{self, CanaryOutcome};
use aaep_bridge::guard::checks::{self, Weight};
use aaep_bridge::guard::{
    Cannot, Guard, GuardPaths, Installed, PROGRAMS, Plan, Removed, Scope, find,
};
use aaep_bridge::host::Host;
use clap::{Args, Subcommand};

use crate::acp;
use crate::allowed::{self, AllowedOptions};
use crate::exit::{Exit, say};

/// Set a coding agent up so that it asks you, and prove that it does.
///
/// Started with `aaep guard run`, an agent asks over a protocol that fails closed: the strongest way, and
/// nothing in your files. For when it is started by itself, its hook is set up. What would be changed in
/// your files is shown, and you are asked first. Then the agent's program calls a tool that has to be
/// refused, in both ways, and you are told what that proved.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
It ends with 0 if the guard holds as far as it can be tried, 1 if it does not, and 2 if nothing was done.
What each program cannot be made to do is in docs/bridges.md.

Examples:
  aaep guard claude
  aaep guard run claude
  aaep guard codex --dry-run
  aaep guard status
  aaep guard allowed
  aaep guard remove gemini")]
pub(crate) struct GuardOptions {
    #[command(subcommand)]
    command: Option<GuardCommand>,
    /// The program: claude, codex, gemini, opencode, copilot, qwen or kimi.
    #[arg(value_name = "PROGRAM", value_parser = program)]
    program: Option<Host>,
    #[command(flatten)]
    scope: ScopeOptions,
    /// Make the change without a question.
    #[arg(long)]
    yes: bool,
    /// Show what would be changed, and change nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

#[derive(Debug, Subcommand)]
enum GuardCommand {
    Run(RunOptions),
    Status(StatusOptions),
    Remove(RemoveOptions),
    Allowed(AllowedOptions),
}

/// Start an agent in this terminal, in the strongest way that it has.
///
/// It asks over a protocol that fails closed: if aaep is gone, so is the agent. What you type goes to it,
/// and everything that it says and does is heard here, as by aaep listen. When it asks, type yes or no.
/// Nothing has to be set up first.
#[derive(Args, Debug)]
#[command(after_help = "\
Modes in which the agent asks less are refused. A line that begins with / is for aaep, such as /stop or
/quit. Speech, braille and sounds are set as for aaep listen: AAEP_SPEAK and so on.

Examples:
  aaep guard run claude
  aaep guard run codex -- /opt/codex/bin/codex
  aaep guard run opencode --sessions")]
struct RunOptions {
    /// The program: claude, codex, gemini, opencode, copilot, qwen or kimi.
    #[arg(value_name = "PROGRAM", value_parser = acp::door)]
    program: Door,
    #[command(flatten)]
    terminal: acp::TerminalOptions,
    /// Where the program is, and what else to give it.
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<String>,
}

/// Repeat the proof, and look for settings that switch it off.
#[derive(Args, Debug)]
struct StatusOptions {
    /// The programs. Without any: all that are set up.
    #[arg(value_name = "PROGRAM", value_parser = program)]
    programs: Vec<Host>,
    #[command(flatten)]
    scope: ScopeOptions,
}

/// Take it back: files are as they were before.
#[derive(Args, Debug)]
struct RemoveOptions {
    /// The program.
    #[arg(value_name = "PROGRAM", value_parser = program)]
    program: Host,
    #[command(flatten)]
    scope: ScopeOptions,
}

#[derive(Args, Clone, Copy, Debug)]
struct ScopeOptions {
    /// In your own settings. This is what happens without any of the three.
    #[arg(long, group = "whose")]
    user: bool,
    /// In the settings of the project that you are in.
    #[arg(long, group = "whose")]
    project: bool,
    /// In the settings of the machine, which agents of other users cannot change. Needs root.
    #[arg(long, group = "whose")]
    managed: bool,
}

impl ScopeOptions {
    fn named(self) -> Option<Scope> {
        match (self.user, self.project, self.managed) {
            (true, _, _) => Some(Scope::User),
            (_, true, _) => Some(Scope::Project),
            (_, _, true) => Some(Scope::Managed),
            _ => None,
        }
    }
}

fn program(name: &str) -> Result<Host, String> {
    PROGRAMS.into_iter().find(|host| host.id() == name).ok_or_else(|| {
        let known: Vec<_> = PROGRAMS.iter().map(|host| host.id()).collect();
        format!("there is no program of this name; there are {}", known.join(", "))
    })
}

pub(crate) fn run(options: &GuardOptions, out: &mut impl Write) -> io::Result<Exit> {
    let paths = match paths() {
        Ok(paths) => paths,
        Err(why) => {
            say(&why);
            return Ok(Exit::Unable);
        }
    };
    match &options.command {
        Some(GuardCommand::Run(options)) => start(options, out),
        Some(GuardCommand::Status(options)) => status(options, &paths, out),
        Some(GuardCommand::Remove(options)) => remove(options, &paths, out),
        Some(GuardCommand::Allowed(options)) => allowed::run(options, out),
        None => match options.program {
            Some(host) => set_up(host, options, &paths, out),
            None => {
                say("name a program, such as `aaep guard claude`. See `aaep guard --help`.");
                Ok(Exit::Unable)
            }
        },
    }
}

fn start(options: &RunOptions, out: &mut impl Write) -> io::Result<Exit> {
    acp::run_at_door(options.program, &options.terminal, &options.command, out)
}

fn paths() -> Result<GuardPaths, String> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("HOME").ok_or("HOME is not set. Set it, and try again.")?;
    let state = absolute("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
    let project = std::env::current_dir().map_err(|error| format!("where are we? {error}"))?;
    let mut elsewhere = BTreeMap::new();
    for (host, name) in [(Host::Claude, "CLAUDE_CONFIG_DIR"), (Host::Codex, "CODEX_HOME")] {
        elsewhere.extend(absolute(name).map(|path| (host.id(), path)));
    }
    let configuration = absolute("XDG_CONFIG_HOME").map(|path| path.join("opencode"));
    elsewhere.extend(configuration.map(|path| (Host::Opencode.id(), path)));
    Ok(GuardPaths { home, project, etc: "/etc".into(), elsewhere, state: state.join("aaep/guard") })
}

fn guard(host: Host, scope: Scope, paths: &GuardPaths) -> io::Result<Guard> {
    Ok(Guard { host, scope, paths: paths.clone(), program: std::env::current_exe()? })
}

fn installed(host: Host) -> Option<Installed> {
    find(host, &std::env::var_os("PATH").unwrap_or_default())
}

fn set_up(
    host: Host,
    options: &GuardOptions,
    paths: &GuardPaths,
    out: &mut impl Write,
) -> io::Result<Exit> {
    let guard = guard(host, options.scope.named().unwrap_or(Scope::User), paths)?;
    let installed = installed(host);
    match &installed {
        Some(found) => writeln!(
            out,
            "{} {} is at {}.",
            host.name(),
            found.version_text(),
            found.path.display()
        )?,
        None => writeln!(
            out,
            "{} was not found in PATH. It can be set up, but not tried.",
            host.name()
        )?,
    }
    if let Some(door) = Door::of(host) {
        writeln!(
            out,
            "The strongest way is `aaep guard run {}`: over {}, which fails closed. For when it is started by itself, its hook asks before each tool.",
            host.id(),
            door.protocol()
        )?;
    }
    let plan = match guard.plan() {
        Ok(plan) => plan,
        Err(why) => return unable(&why, out),
    };
    show(&plan, out)?;
    let trusts = host == Host::Codex && guard.scope == Scope::User && installed.is_some();
    if trusts {
        writeln!(out, "Codex is told to trust these hooks, in its config.toml.")?;
    }
    if options.dry_run {
        writeln!(out, "Nothing was changed.")?;
        return Ok(Exit::Good);
    }
    if !plan.is_done() {
        if !options.yes && !agreed(out)? {
            writeln!(out, "Nothing was changed.")?;
            return Ok(Exit::Unable);
        }
        if let Err(why) = guard.make(&plan) {
            return unable(&why, out);
        }
        writeln!(out, "Done. `aaep guard remove {}` takes it back.", host.id())?;
    }
    if let Some(found) = installed.as_ref().filter(|_| trusts) {
        match guard.trust(&found.path) {
            Ok(words) => words.map_or(Ok(()), |words| writeln!(out, "{words}"))?,
            Err(why) => writeln!(out, "{why}")?,
        }
    }
    let door = prove_door(&guard, installed.as_ref(), out)?;
    let exit = prove(&guard, installed.as_ref(), out)?;
    writeln!(
        out,
        "Start it with `aaep guard run {}`. If you start it by itself, run `aaep listen` in a terminal of your own, to hear it and to answer.",
        host.id()
    )?;
    Ok(exit.max(door))
}

fn unable(why: &Cannot, out: &mut impl Write) -> io::Result<Exit> {
    out.flush()?;
    say(&why.to_string());
    Ok(Exit::Unable)
}

fn show(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    let path = plan.path.display();
    if plan.by_hand {
        return writeln!(out, "{path} has the hook already. Somebody wrote it; it stays as it is.");
    }
    if plan.is_done() {
        return writeln!(out, "{path} is set up already.");
    }
    match plan.before {
        Some(_) => writeln!(out, "This is added to {path}; everything else in it stays:")?,
        None => writeln!(out, "{path} is made, with this in it:")?,
    }
    // Pieces are kept last first.
    for line in plan.pieces.iter().rev().flat_map(|piece| piece.lines()) {
        if !line.trim().is_empty() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn agreed(out: &mut impl Write) -> io::Result<bool> {
    write!(out, "Make this change? Type yes or no: ")?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "yes" | "y"))
}

/// Says what was found and proved.
fn prove(guard: &Guard, installed: Option<&Installed>, out: &mut impl Write) -> io::Result<Exit> {
    let findings = checks::look(guard, installed, &|name| std::env::var(name).ok());
    let mut holds = true;
    for finding in &findings {
        let mark = match finding.weight {
            Weight::Off => "Does not hold: ",
            Weight::Weak => "Weak: ",
            Weight::Note => "Note: ",
        };
        holds &= finding.weight < Weight::Off;
        writeln!(out, "{mark}{}", finding.text)?;
    }
    out.flush()?;
    let mut outcomes = vec![canary::hook(guard)];
    if let (CanaryOutcome::Held(_), Some(installed)) = (&outcomes[0], installed) {
        outcomes.push(canary::program(guard, installed));
    }
    for outcome in &outcomes {
        holds &= tell(outcome, out)?;
    }
    Ok(if holds { Exit::Good } else { Exit::Wrong })
}

/// Says what was proved of the program's door.
fn prove_door(
    guard: &Guard,
    installed: Option<&Installed>,
    out: &mut impl Write,
) -> io::Result<Exit> {
    out.flush()?;
    let outcome = installed.and_then(|installed| canary::door(guard, installed));
    let holds = outcome.map_or(Ok(true), |outcome| tell(&outcome, out))?;
    Ok(if holds { Exit::Good } else { Exit::Wrong })
}

/// Says what came of a proof. Whether the guard may still hold.
fn tell(outcome: &CanaryOutcome, out: &mut impl Write) -> io::Result<bool> {
    match outcome {
        CanaryOutcome::Held(what) => writeln!(out, "Proved: {what}")?,
        CanaryOutcome::Unproven(what) => writeln!(out, "Not proved: {what}")?,
        CanaryOutcome::Broken(what) => writeln!(out, "Does not hold: {what}")?,
    }
    Ok(!matches!(outcome, CanaryOutcome::Broken(_)))
}

fn status(options: &StatusOptions, paths: &GuardPaths, out: &mut impl Write) -> io::Result<Exit> {
    let mut exit = Exit::Good;
    let mut any = false;
    for host in PROGRAMS {
        let named = options.programs.contains(&host);
        if !options.programs.is_empty() && !named {
            continue;
        }
        let mut door_is_told = false;
        for scope in Scope::ALL {
            let guard = guard(host, scope, paths)?;
            let meant = match options.scope.named() {
                Some(named) => named == scope,
                None => guard.is_set_up() || (named && scope == Scope::User),
            };
            // Without a name, what was never set up is not looked at.
            if guard.path().is_err() || !meant {
                continue;
            }
            any = true;
            let installed = installed(host);
            let version = installed.as_ref().map(Installed::version_text).unwrap_or_default();
            if !door_is_told {
                door_is_told = true;
                writeln!(out, "{} {version}, with `aaep guard run {}`:", host.name(), host.id())?;
                exit = exit.max(prove_door(&guard, installed.as_ref(), out)?);
            }
            writeln!(out, "{} {version}, {} settings:", host.name(), scope.name())?;
            exit = exit.max(prove(&guard, installed.as_ref(), out)?);
        }
    }
    if !any {
        writeln!(out, "No program is set up. `aaep guard claude` sets one up.")?;
        exit = Exit::Wrong;
    }
    Ok(exit)
}

fn remove(options: &RemoveOptions, paths: &GuardPaths, out: &mut impl Write) -> io::Result<Exit> {
    let scope = options.scope.named().unwrap_or(Scope::User);
    let guard = guard(options.program, scope, paths)?;
    let path = match guard.path() {
        Ok(path) => path,
        Err(why) => return unable(&why, out),
    };
    match guard.remove() {
        Ok(Removed::AsBefore) => {
            writeln!(out, "{} is as it was before, to the byte.", path.display())?;
        }
        Ok(Removed::OursOnly) => writeln!(
            out,
            "Our part is gone from {}; what was changed since is kept.",
            path.display()
        )?,
        Ok(Removed::Nothing) => {
            writeln!(out, "There is nothing of ours to take out of {}.", path.display())?;
        }
        Err(why) => return unable(&why, out),
    }
    let (name, id) = (options.program.name(), options.program.id());
    writeln!(out, "{name} asks you no longer when it is started by itself.")?;
    writeln!(out, "With `aaep guard run {id}` it does.")?;
    Ok(Exit::Good)
}
