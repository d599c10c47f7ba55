//! `docs/rules.tsv`: which rules exist, and which parts of the system are built.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use super::ids::is_id;

/// One row of the file.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) section: String,
    pub(super) force: Force,
    pub(super) side: String,
    pub(super) parts: Vec<String>,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    Must,
    Should,
    May,
    Decision,
    Invariant,
}

impl Force {
    fn parse(letter: &str) -> Result<Self> {
        Ok(match letter {
            "M" => Self::Must,
            "S" => Self::Should,
            "O" => Self::May,
            "D" => Self::Decision,
            "I" => Self::Invariant,
            _ => bail!("{letter:?} is no force; use M, S, O, D or I"),
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
            Self::Decision => "decision",
            Self::Invariant => "invariant",
        }
    }

    /// Whether a built part that does not enforce and cover the rule is a failure.
    pub(super) fn binds(self) -> bool {
        matches!(self, Self::Must | Self::Decision | Self::Invariant)
    }
}

/// A group of rules under one heading.
#[derive(Debug)]
pub(super) struct Chapter {
    pub(super) title: String,
    pub(super) rules: Vec<Rule>,
}

/// A part of the system that exists, and the folder that must enforce its rules.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) part: String,
    pub(super) folder: String,
}

#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) chapters: Vec<Chapter>,
    pub(super) built: Vec<Built>,
}

impl Rules {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut rules = Self::default();
        for (index, line) in text.lines().enumerate() {
            rules.add(line).with_context(|| format!("line {}", index + 1))?;
        }
        rules.refuse_duplicates()?;
        rules.refuse_unused_parts()?;
        Ok(rules)
    }

    fn add(&mut self, line: &str) -> Result<()> {
        if let Some(title) = line.strip_prefix("## ") {
            self.chapters.push(Chapter { title: title.to_owned(), rules: Vec::new() });
            return Ok(());
        }
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let columns: Vec<&str> = line.split('\t').collect();
        if let ["built", part, folder] = columns[..] {
            self.built.push(Built { part: part.to_owned(), folder: folder.to_owned() });
            return Ok(());
        }
        let chapter = self.chapters.last_mut().context("a rule stands before any `## ` heading")?;
        chapter.rules.push(parse_rule(&columns)?);
        Ok(())
    }

    fn refuse_duplicates(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        match self.all().find(|rule| !seen.insert(&rule.id)) {
            Some(twice) => bail!("{} is there twice", twice.id),
            None => Ok(()),
        }
    }

    /// A misspelled part would quietly ask nothing of anyone.
    fn refuse_unused_parts(&self) -> Result<()> {
        for built in &self.built {
            if !self.all().any(|rule| rule.parts.contains(&built.part)) {
                bail!("no rule belongs to the built part {:?}", built.part);
            }
        }
        Ok(())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Rule> {
        self.chapters.iter().flat_map(|chapter| &chapter.rules)
    }

    pub(super) fn find(&self, id: &str) -> Option<&Rule> {
        self.all().find(|rule| rule.id == id)
    }
}

fn parse_rule(columns: &[&str]) -> Result<Rule> {
    let [id, section, force, side, parts, text] = columns else {
        bail!("{} columns instead of 6, separated by tabs", columns.len());
    };
    if !is_id(id) {
        bail!("{id:?} is no rule id: a capital letter and a number");
    }
    if columns.iter().any(|column| column.trim().is_empty()) {
        bail!("{id} has an empty column");
    }
    Ok(Rule {
        id: (*id).to_owned(),
        section: (*section).to_owned(),
        force: Force::parse(force)?,
        side: (*side).to_owned(),
        parts: parts.split(',').map(str::to_owned).collect(),
        text: (*text).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# comment\nbuilt\ttypes\tcrates/t\n\n## 3 Envelope\n";
    const ROW: &str = "E7\t3.2.3\tM\tP\ttypes,engine\tIds are ids.\n";

    #[test]
    fn chapters_rules_and_built_parts_are_read() {
        let rules = Rules::parse(&format!("{HEAD}{ROW}")).unwrap();
        assert_eq!(rules.chapters[0].title, "3 Envelope");
        assert_eq!(rules.built[0].folder, "crates/t");
        let rule = rules.find("E7").unwrap();
        assert_eq!(rule.parts, ["types", "engine"]);
        assert_eq!(rule.force, Force::Must);
    }

    #[test]
    fn a_rule_that_is_there_twice_is_refused() {
        let error = Rules::parse(&format!("{HEAD}{ROW}{ROW}")).unwrap_err();
        assert!(error.to_string().contains("E7 is there twice"));
    }

    #[test]
    fn a_missing_column_is_reported_with_its_line() {
        let error = Rules::parse(&format!("{HEAD}E7\t3.2.3\tM\n")).unwrap_err();
        assert!(format!("{error:#}").starts_with("line 5: 3 columns"), "{error:#}");
    }

    #[test]
    fn a_built_part_that_no_rule_names_is_refused() {
        assert!(Rules::parse(&format!("built\ttypse\tcrates/t\n{HEAD}{ROW}")).is_err());
    }
}
