//! `docs/heard.md`: the transcripts, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace::root;

/// What screen readers once did with the page, and the scenario that shows that it is over.
const GONE: &[(&str, &str)] = &[
    ("the question was not said when it came, or not whole", "typing"),
    ("in Firefox no outcome was heard", "typing"),
    ("lines that came together changed places, or were dropped", "two"),
    (
        "with two requests, the second was read before the outcome of the first; nothing said that \
      another had come",
        "two",
    ),
    (
        "in braille the agent's words were missing, and what was reported replaced itself ten times a \
      second",
        "braille",
    ),
    ("more time gave the request another number, and read all of it again", "more-time"),
    ("the last warning left three seconds, and took two of them", "timed-out"),
    ("shortcuts were Orca's own in browse mode", "browsing"),
    ("after an answer in browse mode the person was nowhere", "browsing"),
    ("Escape did nothing in browse mode, and Up left the dialog", "later"),
    ("sending read the question again", "typing"),
    ("the buttons of the next request were still those of an answer on its way", "two"),
    ("after an answer a form, a field and a hint came before the outcome", "typing"),
    ("a timer said its name, again and again, and never its time", "timed-out"),
    ("progress was said twice and fell behind; now only the latest is said", "chatter"),
    ("a result was said again when all was done", "grave"),
    ("\u{201c}Write your answer first\u{201d} was said twice", "question"),
    ("after a yes, what was accepted sounded like another question", "grave"),
    ("an outcome named an account: \u{201c}Rejected by local\u{201d}", "typing"),
    ("`aaep ask --name deployer` was announced as a shell script", "script"),
    ("a dialog for stopping outlived its agent, and said nothing", "stop"),
    ("a shortcut for yes or no said nothing when a question was open", "question"),
    ("letters that were typed when a request came were lost", "writing"),
    ("in a terminal that Orca reads, nothing was spoken when a request came", "beside"),
    ("the hub's own account of an action ran into what was said next", "grave"),
    ("the browser asked whether to keep the PIN, ahead of what the page said", "pin"),
    ("that a token was refused was said twice, and in Firefox not at all", "refused"),
];

/// By scenario, then by browser and Orca: the text of the transcript.
type Transcripts = BTreeMap<String, BTreeMap<String, String>>;

pub(super) fn write() -> Result<()> {
    let path = root().join("docs").join("heard.md");
    let text = made()?;
    std::fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))
}

/// Fails if the document is not made from the transcripts as they are.
pub(super) fn check() -> Result<()> {
    let path = root().join("docs").join("heard.md");
    let kept = std::fs::read_to_string(&path)
        .with_context(|| format!("could not read {}", path.display()))?;
    if kept != made()? {
        bail!("docs/heard.md is not up to date; write it with `cargo xtask at --document`");
    }
    Ok(())
}

/// The document of the transcripts as they are.
fn made() -> Result<String> {
    let terminal = root().join("crates/aaep-cli/tests/listen/heard");
    Ok(document(&read(&root().join("web").join("heard"))?)? + &of_terminal(&terminal)?)
}

/// What is heard and felt in the terminal.
fn of_terminal(folder: &Path) -> Result<String> {
    let mut out = String::from(TERMINAL);
    for file in entries(folder)? {
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("could not read {}", file.display()))?;
        let (about, heard) = text.split_once("\n\n").unwrap_or(("", &text));
        write!(out, "\n### {}\n\n{about}\n\n```text\n{heard}```\n", name(&file))?;
    }
    Ok(out)
}

/// Reads `orca-43/chromium-two.txt` and so on.
fn read(folder: &Path) -> Result<Transcripts> {
    let mut all = Transcripts::new();
    for version in entries(folder)? {
        for file in entries(&version)? {
            let orca = name(&version).replace("orca-", "Orca ");
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("could not read {}", file.display()))?;
            let stem = name(&file);
            let Some((browser, scenario)) = stem.split_once('-') else {
                bail!("{} is not named as BROWSER-SCENARIO.txt", file.display());
            };
            let with = match browser {
                "lxterminal" => format!("{orca} and LXTerminal"),
                browser => format!("{orca} and {}", capital(browser)),
            };
            all.entry(scenario.to_owned()).or_default().insert(with, text);
        }
    }
    Ok(all)
}

/// What is in a folder, sorted by name.
fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let found = std::fs::read_dir(folder)
        .with_context(|| format!("could not read {}", folder.display()))?;
    let mut paths: Vec<_> = found.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn document(all: &Transcripts) -> Result<String> {
    let mut out = String::from(HEAD);
    for (what, scenario) in GONE {
        if !all.contains_key(*scenario) {
            bail!("no transcript shows that this is over: {what}");
        }
        writeln!(out, "| {what} | [{0}](#{0}) |", scenario)?;
    }
    for (scenario, transcripts) in all {
        let about = transcripts.values().next().and_then(|text| text.lines().next());
        write!(out, "\n## {scenario}\n\n{}\n", about.unwrap_or_default())?;
        for (with, text) in transcripts {
            let (head, heard) = text.split_once("\n\n").unwrap_or(("", text));
            let agreed = head.lines().nth(1).unwrap_or_default();
            write!(out, "\n**{with}.** {agreed}\n\n```text\n{heard}```\n")?;
        }
    }
    Ok(out)
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

const HEAD: &str = "# What is heard

Made by `cargo xtask at` from the transcripts in `web/heard`: the page with Orca, a real screen \
reader, on Debian, in real browsers, with real key presses. A line with `>` is what happens or what \
the person does; the lines below it are what they hear, in order, at 300 words a minute. A line that \
ends with \"(cut after: …)\" was interrupted there. \"Focus mode\", \"main content\" and the kinds of \
controls are Orca's own words; what it says of browse mode and of what it leaves comes or not, and is \
left out. Times that differ from run to run are written as \"some minutes\". Lines with \"braille\" are \
what stands on a display of 40 cells. [beside](#beside) and [beside-braille](#beside-braille) are `aaep listen` in a graphical \
terminal that Orca reads. What is heard in [the terminal](#in-the-terminal) with its own speech and \
braille is at the end. NVDA, JAWS and VoiceOver [were not run](screen-readers.md).

## What was wrong once

Each of these was heard before, or missing, and the named scenario shows what is heard now.

| what | see |
|---|---|
";

const TERMINAL: &str = "
## In the terminal

`aaep listen --speak` with a real Speech Dispatcher, at 500 words a minute, and `aaep listen --braille` \
with a real BRLTTY, beside a real hub. Each line is spoken in one piece. \"agent:\" is the voice in which \
the agent's own words are spoken, a language stands in brackets where it is not English, and \"(cut)\" \
was interrupted. The brackets around a line of braille are the ends of the display.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_made_from_the_transcripts() {
        check().unwrap();
    }

    #[test]
    fn a_transcript_is_shown_under_its_scenario_with_how_often_it_was_heard() {
        let text = "Two come.\nHeard like this in 5 of 5 runs.\n\n> two come\n  One.\n";
        let of = BTreeMap::from([("Orca 43 and Firefox".to_owned(), text.to_owned())]);
        let mut all: Transcripts =
            GONE.iter().map(|(_, to)| ((*to).to_owned(), of.clone())).collect();
        all.insert("two".into(), of);
        let made = document(&all).unwrap();
        let shown = "\n## two\n\nTwo come.\n\n**Orca 43 and Firefox.** Heard like this in 5 of 5 \
                     runs.\n\n```text\n> two come\n  One.\n```\n";
        assert!(made.contains(shown), "{made}");
    }

    #[test]
    fn the_terminal_has_its_transcripts_at_the_end() {
        let made = made().unwrap();
        let (_, terminal) = made.split_once("## In the terminal").unwrap();
        for shown in ["### grave\n", "agent: Transfer 20 euros to Ann.", "(cut)", "braille: [? “"]
        {
            assert!(terminal.contains(shown), "{shown}");
        }
    }

    #[test]
    fn what_no_transcript_shows_is_not_said_to_be_over() {
        assert!(GONE.is_empty() || document(&Transcripts::new()).is_err());
    }
}
