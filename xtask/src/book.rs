//! `cargo xtask book`: the documentation as a site. The pages are put together from docs/, what the
//! command says of itself, and the example configuration; mdBook makes the site, and axe-core looks at it
//! in Chromium.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::page;
use crate::workspace::{answers, cargo, root, run as run_program, target_dir};

/// What makes the site. `--install` gets it from crates.io by name.
const MDBOOK: &str = "0.5.4";

/// Pages of the repository's root, and their names in the site.
const FROM_ROOT: [(&str, &str); 6] = [
    ("README.md", "index.md"),
    ("CHANGELOG.md", "changelog.md"),
    ("SECURITY.md", "security.md"),
    ("ARCHITECTURE.md", "architecture.md"),
    ("DESIGN.md", "design.md"),
    ("CONTRIBUTING.md", "contributing.md"),
];

/// For those who work on the project; too long to be read.
const LEFT_OUT: [&str; 1] = ["requirements.md"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let install = match args {
        [] => false,
        [word] if word == "--install" => true,
        _ => bail!("book takes --install or nothing"),
    };
    let source = pages()?;
    let mdbook = match here() {
        Some(mdbook) => mdbook,
        None => {
            ensure!(
                install,
                "mdBook is not here; `cargo xtask book --install` gets it from crates.io"
            );
            let tools = target_dir().join("tools");
            let mut get = cargo(["install", "mdbook", "--locked", "--version", MDBOOK]);
            get.args(["--no-default-features", "--features", "search", "--root"]).arg(&tools);
            run_program(&mut get)?;
            tools.join("bin/mdbook")
        }
    };
    site(&source, &mdbook)?;
    if let Some(why) = page::missing() {
        bail!("the site cannot be looked at: {why}");
    }
    page::look_at_book(&source.join("html"))
}

/// mdBook, if it is here.
fn here() -> Option<PathBuf> {
    let own = target_dir().join("tools/bin/mdbook");
    own.is_file().then_some(own).or_else(|| answers("mdbook").then(|| "mdbook".into()))
}

fn site(source: &Path, mdbook: &Path) -> Result<()> {
    run_program(Command::new(mdbook).arg("build").arg(source))?;
    println!("The site is in {}.", source.join("html").display());
    Ok(())
}

/// The pages, and with mdBook the site. What is not here is said; getting mdBook takes minutes.
pub(crate) fn test() -> Result<()> {
    let source = pages()?;
    let Some(mdbook) = here() else {
        println!("skipped the site: there is no mdBook; `cargo xtask book --install` gets it.");
        return Ok(());
    };
    site(&source, &mdbook)?;
    match page::missing() {
        Some(why) => println!("skipped looking at the site: {why}."),
        None => page::look_at_book(&source.join("html"))?,
    }
    Ok(())
}

/// Puts the pages together, and finds every link that leads nowhere. Gives the directory of the book.
pub(crate) fn pages() -> Result<PathBuf> {
    let book = target_dir().join("book");
    if book.is_dir() {
        fs::remove_dir_all(&book)?;
    }
    let mut pages = BTreeMap::new();
    collect(&root().join("docs"), &mut pages)?;
    for (from, _) in FROM_ROOT {
        pages.insert(PathBuf::from(from), fs::read_to_string(root().join(from))?);
    }
    for (name, text) in generated()? {
        pages.insert(Path::new("docs/reference").join(name), text);
    }
    let source = book.join("src");
    let mut wrong = Vec::new();
    for (path, text) in &pages {
        let written = linked(path, text, &pages, &source, &mut wrong)?;
        let place = source.join(place_of(path));
        fs::create_dir_all(place.parent().unwrap_or(&source))?;
        fs::write(place, written)?;
    }
    ensure!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
    let summary = &pages[Path::new("docs/SUMMARY.md")];
    let listed: Vec<PathBuf> =
        links(summary).map(|link| resolve(Path::new("docs/SUMMARY.md"), link.target)).collect();
    for path in pages.keys().filter(|path| !path.ends_with("SUMMARY.md")) {
        ensure!(listed.contains(path), "{} is in no place of docs/SUMMARY.md", path.display());
    }
    fs::copy(root().join("docs/book.toml"), book.join("book.toml"))?;
    let theme = book.join("theme");
    fs::create_dir_all(&theme)?;
    for file in ["accessible.css", "accessible.js"] {
        fs::copy(root().join("docs/theme").join(file), theme.join(file))?;
    }
    Ok(book)
}

/// Every page of docs/, by its path from the root.
fn collect(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(&*name, "api" | "theme") {
            collect(&path, pages)?;
        } else if name.ends_with(".md") && !LEFT_OUT.contains(&&*name) {
            let text = fs::read_to_string(&path)?;
            pages.insert(path.strip_prefix(root())?.to_owned(), text);
        }
    }
    Ok(())
}

/// Where a page is in the site.
fn place_of(path: &Path) -> PathBuf {
    let from_root = FROM_ROOT.iter().find(|(from, _)| Path::new(from) == path);
    match (from_root, path.strip_prefix("docs")) {
        (Some((_, to)), _) => to.into(),
        (None, Ok(rest)) => rest.to_owned(),
        (None, Err(_)) => Path::new("files").join(path),
    }
}

/// A link of a page: where its target stands in the text.
struct Link<'t> {
    target: &'t str,
    at: usize,
}

/// Every link outside of blocks of code. An indented line that begins with a dash is of a list.
fn links(text: &str) -> impl Iterator<Item = Link<'_>> {
    let (mut found, mut fenced, mut start) = (Vec::new(), false, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && (!line.starts_with("    ") || line.trim_start().starts_with("- ")) {
            let mut from = 0;
            while let Some(open) = line[from..].find("](") {
                let at = from + open + 2;
                let Some(end) = line[at..].find(')') else { break };
                // Code of a line is no link, however it looks.
                if line[..at].matches('`').count() % 2 == 0 {
                    found.push(Link { target: &line[at..at + end], at: start + at });
                }
                from = at + end;
            }
        }
        start += line.len();
    }
    found.into_iter()
}

/// Where a link of a page leads, from the root, without its anchor.
fn resolve(page: &Path, target: &str) -> PathBuf {
    let target = target.split('#').next().unwrap_or_default();
    let joined = page.parent().unwrap_or(Path::new("")).join(target);
    let mut resolved = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            other => resolved.push(other),
        }
    }
    resolved
}

/// A page with its links as they are in the site; files that it names are copied there.
fn linked(
    page: &Path,
    text: &str,
    pages: &BTreeMap<PathBuf, String>,
    source: &Path,
    wrong: &mut Vec<String>,
) -> Result<String> {
    let mut written = String::new();
    let mut done = 0;
    for Link { target, at } in links(text) {
        if target.contains("://") || target.starts_with('#') || target.starts_with("mailto:") {
            continue;
        }
        let (_, anchor) = target.split_once('#').unwrap_or((target, ""));
        let mut path = resolve(page, target);
        if root().join(&path).is_dir() {
            path = path.join("README.md");
        }
        if let Some(other) = pages.get(&path) {
            if !anchor.is_empty() && !anchors(other).any(|found| found == anchor) {
                wrong.push(format!("{}: {target}: there is no such heading", page.display()));
            }
        } else if root().join(&path).is_file() {
            let place = source.join(place_of(&path));
            fs::create_dir_all(place.parent().unwrap_or(source))?;
            // It is no page of the book, so what it links to stays behind.
            fs::copy(root().join(&path), as_file(place))?;
        } else if !page.ends_with("SUMMARY.md") && !root().join(resolve(page, target)).is_dir() {
            wrong.push(format!("{}: {target}: there is no such file", page.display()));
        }
        let up = place_of(page).components().count() - 1;
        let place = place_of(&path);
        let place = if pages.contains_key(&path) { place } else { as_file(place) };
        let mut to = format!("{}{}", "../".repeat(up), place.display());
        if !anchor.is_empty() {
            to = format!("{to}#{anchor}");
        }
        written.push_str(&text[done..at]);
        written.push_str(&to);
        done = at + target.len();
    }
    written.push_str(&text[done..]);
    Ok(written)
}

/// Under which name a file that is no page is in the site: browsers show text, and mdBook leaves it alone.
fn as_file(place: PathBuf) -> PathBuf {
    match place.extension().is_some_and(|kind| kind == "png") {
        true => place,
        false => place.with_added_extension("txt"),
    }
}

/// What headings can be linked to by.
fn anchors(text: &str) -> impl Iterator<Item = String> + '_ {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// Pages that are made from the code.
fn generated() -> Result<Vec<(&'static str, String)>> {
    run_program(&mut cargo(["build", "--quiet", "--package", "aaep-cli"]))?;
    let aaep = target_dir().join("debug/aaep");
    let example = fs::read_to_string(root().join("crates/aaep-hub/aaep.example.toml"))?;
    let configuration = format!(
        "# Configuration\n\n`aaep hub` reads `aaep.toml`; flags win over `AAEP_*` variables, those over the file. This is every key with its default.\n\n```toml\n{example}```\n"
    );
    let mut commands = String::from(
        "# Commands\n\nWhat each command says of itself. `aaep man` has the same as manual pages.\n",
    );
    describe(&aaep, &[], &mut commands)?;
    let api = said(&aaep, &["schema", "--openapi"])?;
    Ok(vec![
        ("commands.md", commands),
        ("configuration.md", configuration),
        ("http.md", http(&serde_json::from_str(&api)?)),
    ])
}

fn said(aaep: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(aaep).args(arguments).env("COLUMNS", "100").output()?;
    ensure!(output.status.success(), "aaep {} failed", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

/// A command and those below it.
fn describe(aaep: &Path, command: &[&str], out: &mut String) -> Result<()> {
    let help = said(aaep, &[command, &["--help"]].concat())?;
    if !command.is_empty() {
        out.push_str(&format!("\n## aaep {}\n\n```text\n{help}```\n", command.join(" ")));
    }
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, listed)| listed);
    for line in listed.lines().take_while(|line| !line.is_empty()) {
        let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '));
        let Some(name) = name.and_then(|line| line.split_whitespace().next()) else { continue };
        if name != "help" {
            describe(aaep, &[command, &[name]].concat(), out)?;
        }
    }
    Ok(())
}

/// The API, one section for each path and method.
fn http(api: &serde_json::Value) -> String {
    let mut out = String::from(
        "# HTTP API\n\nMade from the description that every hub gives of itself at `/openapi.json` (`aaep schema --openapi` prints it). The schemas are there.\n",
    );
    for (path, methods) in api["paths"].as_object().into_iter().flatten() {
        for (method, about) in methods.as_object().into_iter().flatten() {
            if !about.is_object() {
                continue;
            }
            out.push_str(&format!("\n## {} {path}\n\n", method.to_uppercase()));
            for key in ["summary", "description"] {
                if let Some(text) = about[key].as_str() {
                    out.push_str(&format!("{}\n\n", escaped(text)));
                }
            }
            let answers = about["responses"].as_object().into_iter().flatten();
            let rows: String = answers
                .map(|(status, answer)| {
                    let text = answer["description"].as_str().unwrap_or_default();
                    format!("| {status} | {} |\n", escaped(text).replace('|', "\\|"))
                })
                .collect();
            if !rows.is_empty() {
                out.push_str(&format!("| answer | when |\n|---|---|\n{rows}"));
            }
        }
    }
    out
}

/// Text that is not meant as marks of a page.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code_and_resolved() {
        let text = "See [a](x.md#y) and `[b](z.md)`.\n\n    [c](no.md)\n```\n[d](no.md)\n```\n[e](../R.md)\n    - [f](in-a-list.md)\n";
        let found: Vec<&str> = links(text).map(|link| link.target).collect();
        assert_eq!(found, ["x.md#y", "../R.md", "in-a-list.md"]);
        assert_eq!(resolve(Path::new("docs/a.md"), "../R.md"), Path::new("R.md"));
        assert_eq!(resolve(Path::new("docs/how-to/a.md"), "../hub.md#x"), Path::new("docs/hub.md"));
        assert_eq!(place_of(Path::new("R/x.rs")), Path::new("files/R/x.rs"));
        assert_eq!(anchors("## What is *not* here, yet\n").next().unwrap(), "what-is-not-here-yet");
    }
}
