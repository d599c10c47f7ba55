//! `aaep policy`: says what is asked before a tool runs, and judges policy files.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use aaep_bridge::{Judgment, Scene, shell, tools};
use aaep_policy::{MAX_ARGUMENT_BYTES, MAX_FILE_BYTES, Matched, Policy, Problem, Ruling};
use aaep_types::json::Members;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::exit::{Exit, say};
use crate::input::Source;
use crate::lines::{Plain, Visible, count};

/// The name under which rules of a policy know commands here; agents have their own.
const SHELL_TOOL: &str = "Bash";

/// Say what is asked before a tool of an agent runs, and judge the file that decides it.
#[derive(Args, Debug)]
pub(crate) struct PolicyOptions {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    Explain(ExplainOptions),
    Check(PolicyCheckOptions),
}

/// Say what would happen before a tool or a command runs, and why.
///
/// A command of a shell, such as "rm -rf build", is judged as `aaep hook` judges it, without being run;
/// so is a tool of a coding agent, with --agent. For other tools a policy file counts; without one
/// nothing is covered, so everything is asked.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0, with 1 if the policy file has problems, and with 2 if something cannot be read.

Examples:
  aaep policy explain \"rm -rf build\"
  aaep policy explain --shell ls
  aaep policy explain --agent Write '{\"file_path\": \"/etc/motd\", \"content\": \"x\"}'
  aaep policy explain bank.transfer '{\"amount\": 5}' --policy policy.toml
  aaep policy explain files.delete --json")]
pub(crate) struct ExplainOptions {
    /// The tool, as the agent names it, or a command of a shell in quotes.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Its arguments as JSON. For -, standard input is read.
    #[arg(value_name = "ARGUMENTS", default_value = "")]
    pub(crate) arguments: String,
    /// The policy file.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// It is a command, also if it is one word.
    #[arg(long, conflicts_with = "arguments")]
    pub(crate) shell: bool,
    /// It is a tool of a coding agent, as that names it, such as Write.
    #[arg(long, conflicts_with = "shell")]
    pub(crate) agent: bool,
    /// The project's directory, for commands and coding agents. Without it: this one.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) project: Option<PathBuf>,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Judge a policy file. Say everything that is wrong with it, where, and what to do.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  aaep policy check policy.toml")]
pub(crate) struct PolicyCheckOptions {
    /// The file. For -, standard input is read.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print one line of JSON for each problem.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ExplainOptions {
    /// Whether a command is meant: names of tools hold no spaces and none of a shell's signs.
    pub(crate) fn is_command(&self) -> bool {
        let sign = |c: char| c.is_whitespace() || "|&;<>()$`\"'*?~#".contains(c);
        self.shell || (!self.agent && self.arguments.is_empty() && self.tool.contains(sign))
    }
}

pub(crate) fn run(command: &PolicyCommand, out: &mut impl Write) -> io::Result<Exit> {
    match command {
        PolicyCommand::Explain(options) => explain(options, out),
        PolicyCommand::Check(options) => check(options, out),
    }
}

fn explain(options: &ExplainOptions, out: &mut impl Write) -> io::Result<Exit> {
    let policy = match options.policy.as_deref().map(read_policy).transpose() {
        Ok(policy) => policy,
        Err(Unread::Unable(why)) => return Ok(unable(&why)),
        Err(Unread::Wrong(source, problems)) => {
            print_problems(&source, &problems, options.json, out)?;
            return Ok(Exit::Wrong);
        }
    };
    let arguments = match read_arguments(&options.arguments) {
        Ok(arguments) => arguments,
        Err(why) => return Ok(unable(&why)),
    };
    if options.agent || options.is_command() {
        return explain_agent(options, &policy.unwrap_or_default(), &arguments, out);
    }
    let none = policy.is_none();
    let ruling = policy.unwrap_or_default().decide(&options.tool, &arguments);
    if options.json {
        print_json(&options.tool, &ruling, out)?;
        return Ok(Exit::Good);
    }
    for line in ruling.explain() {
        writeln!(out, "{}", Plain(&line))?;
    }
    if none {
        writeln!(out, "No policy file was given; name one with --policy.")?;
    }
    Ok(Exit::Good)
}

/// What `aaep hook` would make of it.
fn explain_agent(
    options: &ExplainOptions,
    policy: &Policy,
    arguments: &str,
    out: &mut impl Write,
) -> io::Result<Exit> {
    let directory = options.project.clone().map_or_else(std::env::current_dir, Ok);
    let directory = match directory.and_then(|directory| directory.canonicalize()) {
        Ok(directory) if directory.is_dir() => directory,
        Ok(other) => return Ok(unable(&format!("{} is no directory.", other.display()))),
        Err(error) => {
            return Ok(unable(&format!("cannot find the project: {error}. Name its directory.")));
        }
    };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let scene = Scene::new(&directory, home);
    let (judgment, ruling) = if options.agent {
        let given = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        let judgment = tools::judge(&options.tool, &given, &directory, &scene);
        (judgment, policy.decide(&options.tool, arguments))
    } else {
        let arguments = json!({ "command": options.tool }).to_string();
        let judgment = shell::judge(&options.tool, &directory, &scene);
        (judgment, policy.decide(SHELL_TOOL, &arguments))
    };
    let judgment = judgment.under(&ruling);
    if options.json {
        print_judgment(&options.tool, &judgment, out)?;
        return Ok(Exit::Good);
    }
    for line in judgment.explain() {
        writeln!(out, "{}", Plain(&line))?;
    }
    Ok(Exit::Good)
}

fn print_judgment(command: &str, judgment: &Judgment, out: &mut impl Write) -> io::Result<()> {
    let said = json!({
        "command": command,
        "verdict": if judgment.is_asked() { "ask" } else { "announce" },
        "risk_level": judgment.risk().as_str(),
        "reversibility": judgment.reversibility().as_str(),
        "action": judgment.action(),
        "consequence": judgment.consequence(),
        "steps": judgment.acts().iter().map(|act| &act.text).collect::<Vec<_>>(),
        "explanation": judgment.explain(),
    });
    writeln!(out, "{}", Visible(&said.to_string()))
}

fn print_json(tool: &str, ruling: &Ruling, out: &mut impl Write) -> io::Result<()> {
    let rule = ruling.rule.as_ref().map(|Matched { number, line, pattern }| {
        json!({ "number": number, "line": line, "pattern": pattern })
    });
    let said = json!({
        "tool": tool,
        "verdict": ruling.verdict.as_str(),
        "rule": rule,
        "risk_level": ruling.risk.as_str(),
        "reversibility": ruling.reversibility.as_str(),
        "timeout_seconds": ruling.timeout.get(),
        "default_decision": ruling.default.as_str(),
        "action": ruling.action,
        "consequence": ruling.consequence,
        "summary": ruling.summary,
        "explanation": ruling.explain(),
    });
    writeln!(out, "{}", Visible(&said.to_string()))
}

fn check(options: &PolicyCheckOptions, out: &mut impl Write) -> io::Result<Exit> {
    match read_policy(&options.file) {
        Ok(policy) => {
            if !options.json {
                writeln!(out, "{}: no problems.", count(policy.len() as u64, "rule"))?;
            }
            Ok(Exit::Good)
        }
        Err(Unread::Unable(why)) => Ok(unable(&why)),
        Err(Unread::Wrong(source, problems)) => {
            print_problems(&source, &problems, options.json, out)?;
            if !options.json {
                writeln!(
                    out,
                    "{}; nothing of this file counts.",
                    count(problems.len() as u64, "problem")
                )?;
            }
            Ok(Exit::Wrong)
        }
    }
}

fn unable(why: &str) -> Exit {
    say(why);
    Exit::Unable
}

fn print_problems(
    source: &Source,
    problems: &[Problem],
    json: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    for problem in problems {
        let Problem { line, key, what, remedy } = problem;
        if json {
            let text = format!("{what} {remedy}");
            let said = json!({ "file": source.name(), "line": line, "key": key, "text": text });
            writeln!(out, "{}", Visible(&said.to_string()))?;
        } else {
            writeln!(out, "{source}, {}", Plain(&problem.to_string()))?;
        }
    }
    Ok(())
}

/// Why there is no policy.
enum Unread {
    Unable(String),
    Wrong(Source, Vec<Problem>),
}

/// A policy file, for another command; what is wrong with it in one line.
pub(crate) fn read(path: &Path) -> Result<Policy, String> {
    read_policy(path).map_err(|unread| match unread {
        Unread::Unable(why) => why,
        Unread::Wrong(source, problems) => {
            let first = problems.first().map(Problem::to_string).unwrap_or_default();
            format!("{source}, {} Judge it with `aaep policy check`.", Plain(&first))
        }
    })
}

fn read_policy(path: &Path) -> Result<Policy, Unread> {
    let source = Source::of(path);
    let text = read_text(&source, MAX_FILE_BYTES).map_err(Unread::Unable)?;
    Policy::parse(&text).map_err(|problems| Unread::Wrong(source, problems))
}

/// The arguments as they were typed. What is no JSON was mistyped, so it is told.
fn read_arguments(typed: &str) -> Result<String, String> {
    let text = match typed {
        "-" => read_text(&Source::StandardInput, MAX_ARGUMENT_BYTES)?,
        typed => typed.to_owned(),
    };
    if text.trim().is_empty() || text.len() > MAX_ARGUMENT_BYTES {
        return Ok(text);
    }
    let depth = aaep_types::Limits::default().max_depth;
    Members::whole(&text, depth).map_err(|fault| {
        format!(
            "the arguments are not JSON: {} (byte {}) Put them in single quotes, such as '{{\"path\": \"a.txt\"}}'.",
            fault.kind, fault.offset
        )
    })?;
    Ok(text)
}

/// Reads a text, and a little more than its bound so that the judge can say so.
fn read_text(source: &Source, bound: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(bound).unwrap_or(u64::MAX).saturating_add(1);
    let input = source.open()?;
    input.take(most).read_to_end(&mut bytes).map_err(|error| source.explain(&error))?;
    String::from_utf8(bytes).or_else(|error| {
        // The bound may have cut a character in two.
        let good = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        if bytes.len() > bound {
            bytes.resize(bound + 1, b' ');
            bytes[good..].fill(b' ');
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        Err(format!("cannot read {source}: it is not UTF-8 from byte {good} on. Save it as UTF-8."))
    })
}
