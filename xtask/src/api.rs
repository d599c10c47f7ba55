//! `cargo xtask api`: the public interface of every library, listed in `docs/api/`, so that a change
//! of it is seen in review.
//!
//! The listing is taken from the pages that `cargo doc` makes: what is on them is what users see. That
//! needs no nightly compiler. When a new compiler words its pages differently, write the listings anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::{cargo, root, run as run_program, target_dir};

const HELP: &str = "If the change is wanted: `cargo xtask api --write`, commit docs/api, and say in CHANGELOG.md what breaks.";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let write = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--write"] => true,
        _ => bail!("api takes --write, or nothing"),
    };
    let libraries = libraries()?;
    let mut command = cargo(["doc", "--no-deps", "--all-features", "--lib", "--quiet"]);
    for library in &libraries {
        command.args(["--package", library]);
    }
    run_program(&mut command)?;
    let folder = folder();
    if write {
        fs::create_dir_all(&folder)?;
    }
    let mut differences = Vec::new();
    for library in &libraries {
        let listing = listing(&target_dir().join("doc"), &library.replace('-', "_"))?;
        let path = folder.join(format!("{library}.txt"));
        if write {
            fs::write(&path, listing)?;
            continue;
        }
        let before = fs::read_to_string(&path).unwrap_or_default();
        differences.extend(compare(&before, &listing).map(|line| format!("{library}: {line}")));
    }
    if !differences.is_empty() {
        bail!("the public interface has changed:\n{}\n{HELP}", differences.join("\n"));
    }
    println!("{} libraries: docs/api says what they offer.", libraries.len());
    Ok(())
}

/// Where the listings are.
fn folder() -> PathBuf {
    root().join("docs/api")
}

/// Why nothing can be compared, if that is so.
pub(crate) fn missing() -> Option<String> {
    let why = "there are no listings in docs/api yet; to write them: cargo xtask api --write";
    (!folder().is_dir()).then(|| why.to_owned())
}

/// The libraries that are published.
fn libraries() -> Result<Vec<String>> {
    let mut found = vec!["aaep-page".to_owned()];
    for entry in fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let is_library = folder.join("src/lib.rs").is_file();
        if is_library && !manifest.contains("publish = false") {
            let name =
                folder.file_name().and_then(|name| name.to_str()).context("an odd folder")?;
            found.push(name.to_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// Everything that a library offers, one line each, in order.
fn listing(doc: &Path, library: &str) -> Result<String> {
    let folder = doc.join(library);
    let all = fs::read_to_string(folder.join("all.html"))
        .with_context(|| format!("{library} has no list of its items; was its page made?"))?;
    let mut lines = BTreeSet::new();
    // Links inside the page lead to its headings.
    let links = between(&all, "<li><a href=\"", "\"").filter(|link| !link.starts_with('#'));
    for link in links {
        let page = fs::read_to_string(folder.join(link))
            .with_context(|| format!("the page {link} of {library} is missing"))?;
        let module = link.rsplit_once('/').map(|(module, _)| module.replace('/', "::"));
        let module = module.map_or_else(|| library.to_owned(), |it| format!("{library}::{it}"));
        // A page is named for the kind of its item, and the item.
        let file = link.rsplit('/').next().and_then(|file| file.strip_suffix(".html"));
        let name = file.and_then(|file| file.split_once('.')).map_or(link, |(_, name)| name);
        let item = format!("{module}::{name}");
        lines.extend(items(&page).map(|text| format!("{item}: {text}")));
    }
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// What a page declares: the item itself, its methods, and what it implements.
fn items(page: &str) -> impl Iterator<Item = String> + '_ {
    // What every type gets from the compiler or from a blanket implementation says nothing.
    let end = ["id=\"synthetic-implementations\"", "id=\"blanket-implementations\""];
    let end = end.iter().filter_map(|mark| page.find(mark)).min().unwrap_or(page.len());
    let (own, automatic) = page.split_at(end);
    let traits = own.find("id=\"trait-implementations\"").unwrap_or(own.len());
    let (own, traits) = own.split_at(traits);
    let declared = between(own, "<pre class=\"rust item-decl\"><code>", "</code></pre>");
    let members = between(own, "class=\"code-header\">", "</h");
    // Of a trait's implementation the head is enough.
    let implemented = between(traits, "<h3 class=\"code-header\">", "</h3>");
    let refused = between(automatic, "<h3 class=\"code-header\">", "</h3>");
    let refused = refused.map(plain).filter(|text| text.contains(" !") || text.contains("for !"));
    declared.chain(members).chain(implemented).map(plain).chain(refused)
}

/// The text of a piece of a page, on one line.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        // A line break inside a declaration is one.
        rest = after.split_once('>').map_or("", |(tag, after)| {
            if tag.starts_with("br") || tag.starts_with("div") {
                text.push(' ');
            }
            after
        });
    }
    text.push_str(rest);
    for (entity, sign) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, sign);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every piece of a text between these two.
fn between<'a>(text: &'a str, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(start).skip(1).filter_map(move |piece| Some(piece.split_once(end)?.0))
}

fn compare(before: &str, now: &str) -> impl Iterator<Item = String> {
    let before: BTreeSet<&str> = before.lines().collect();
    let now: BTreeSet<&str> = now.lines().collect();
    let gone = before.difference(&now).map(|line| format!("gone: {line}"));
    let new = now.difference(&before).map(|line| format!("new: {line}"));
    gone.chain(new).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r##"<pre class="rust item-decl"><code>pub struct Call { <span class="comment">/* private fields */</span> }</code></pre>
        <section id="method.key"><h4 class="code-header">pub fn <a href="#" class="fn">key</a>(&amp;self) -&gt; <a>Option</a>&lt;&amp;<a>str</a>&gt;</h4></section>
        <h2 id="trait-implementations">Trait Implementations</h2>
        <h3 class="code-header">impl <a>Drop</a> for <a>Call</a></h3>
        <h4 class="code-header">fn <a>drop</a>(&amp;mut self)</h4>
        <h2 id="synthetic-implementations">Auto Trait Implementations</h2>
        <h3 class="code-header">impl <a>Freeze</a> for <a>Call</a></h3>
        <h3 class="code-header">impl !<a>UnwindSafe</a> for <a>Call</a></h3>"##;

    #[test]
    fn a_page_is_listed_with_what_users_can_rely_on() {
        let found: Vec<_> = items(PAGE).collect();
        let wanted = [
            "pub struct Call { /* private fields */ }",
            "pub fn key(&self) -> Option<&str>",
            "impl Drop for Call",
            "impl !UnwindSafe for Call",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_gone_and_what_is_new_is_named() {
        let found: Vec<_> = compare("a\nb\n", "b\nc\n").collect();
        assert_eq!(found, ["gone: a", "new: c"]);
    }
}
