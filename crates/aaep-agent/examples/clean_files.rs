//! Cleans a directory: finds what looks like rubbish, asks once for all of it, and deletes exactly
//! that. A batch is one tool with an array: one question, one consent, one call.
//!
//! ```console
//! $ cargo run -p aaep-agent --example clean_files -- ./somewhere http://127.0.0.1:8707
//! $ cargo run -p aaep-agent --features embedded --example clean_files -- ./somewhere
//! ```
#![allow(missing_docs, clippy::disallowed_methods)] // an example is a program

mod common;

use std::error::Error;
use std::path::{Path, PathBuf};

use aaep_agent::{Agent, Confirmation, Producer, Progress, RiskLevel, Session, Words};

/// What people delete without a second thought, and sometimes regret.
const RUBBISH: [&str; 4] = ["tmp", "bak", "swp", "log"];

/// How many names are read out; the rest is counted.
const NAMED: usize = 5;

/// How many files are looked at in one go.
const MOST: usize = 1000;

/// Says how many files were deleted.
pub async fn run(agent: &Agent, directory: &Path) -> Result<usize, Box<dyn Error>> {
    let shown = directory.display();
    let session = agent.session(format!("Cleaning {shown}.")).language("en").open().await?;
    let found = find(&session, directory.to_owned()).await?;
    if found.is_empty() {
        session.complete("There was nothing to clean.").await?;
        return Ok(0);
    }
    let count = found.len();
    let request = Confirmation::irreversible(
        "delete_files",
        format!("Delete {count} files in {shown}: {}.", names(&found)),
        "They do not go to the trash; they are gone.",
    )
    .risk(RiskLevel::Medium)
    // Consent is bound to this very list.
    .arguments(&found);

    let parked = session.park(found, request).await?;
    let approval = match parked.decision().await {
        Ok(approval) => approval,
        Err(why) => {
            println!("Nothing was deleted. {why}");
            drop(parked);
            if !session.is_stopped() {
                session.complete("Nothing was deleted.").await?;
            }
            return Ok(0);
        }
    };
    let (found, call) = session.invoke(parked, approval).await?;
    let mut deleted = 0;
    for (number, path) in (1..).zip(&found) {
        match tokio::task::block_in_place(|| std::fs::remove_file(path)) {
            Ok(()) => deleted += 1,
            Err(error) => eprintln!("{}: {error}", path.display()),
        }
        let percent = u8::try_from(number * 100 / count).unwrap_or(100);
        session.progress(Progress::percent(percent)).await?;
    }
    let words = format!("{deleted} of {count} files were deleted.");
    if deleted == count {
        call.succeed(&*words).await?
    } else {
        call.fail(&*words).await?
    }
    session.complete(Words::new(words).terse("Cleaned.")).await?;
    Ok(deleted)
}

/// Looking needs no consent; it is announced.
async fn find(session: &Session, directory: PathBuf) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let look = async move {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(directory)?.take(MOST) {
            let path = entry?.path();
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if path.is_file() && RUBBISH.contains(&ending) {
                found.push(path);
            }
        }
        found.sort();
        Ok::<_, std::io::Error>(found)
    };
    let tool = session.tool("list_files").summary("Looking for files that can go.");
    let found =
        tool.run_saying(look, |found| format!("{} files found.", found.len()).into()).await?;
    Ok(found)
}

/// The names that matter, first.
fn names(found: &[PathBuf]) -> String {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut names: Vec<String> = found.iter().take(NAMED).map(name).collect();
    if found.len() > NAMED {
        names.push(format!("and {} more", found.len() - NAMED));
    }
    names.join(", ")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("Name the directory to clean.")?;
    let producer = Producer::new("file-cleaner").name("File cleaner");
    let place = common::Place::find(arguments.next(), producer).await?;
    run(&place.agent, Path::new(&directory)).await?;
    place.leave().await
}
