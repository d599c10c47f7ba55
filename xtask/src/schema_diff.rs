//! `cargo xtask schema-diff DIR [--mutations N] [--seed S]`: do our tables and the published
//! schemas give the same verdicts?
//!
//! The judge is the `jsonschema` crate with the schemas of `DIR`. The documents are the schemas'
//! own examples, and seeded variations of them: some still valid, most damaged. Each is judged by
//! the schema that its `type` selects and by the schema it was made from. The same seed gives the
//! same documents.

mod mutate;
mod pattern;
mod random;
mod sample;
mod schemas;

use std::collections::BTreeMap;
use std::path::PathBuf;

use aaep_conformance::published::{self, Schema};
use anyhow::{Context, bail};
use serde_json::Value;

use random::Random;
use schemas::Schemas;

/// How many differences are shown in full.
const SHOWN: usize = 20;

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let options = Options::parse(args)?;
    let schemas = Schemas::load(&options.dir)?;
    let mut comparison = Comparison::new(&schemas)?;

    let examples = schemas.examples();
    for (schema, example) in &examples {
        comparison.compare(*schema, example);
    }
    let mut random = Random::new(options.seed);
    for _ in 0..options.mutations {
        let (schema, document) = mutate::document(&schemas, &examples, &mut random);
        comparison.compare(schema, &document);
    }
    comparison.report(options.mutations > 0)
}

struct Options {
    dir: PathBuf,
    mutations: u64,
    seed: u64,
}

impl Options {
    fn parse(args: &[String]) -> anyhow::Result<Self> {
        let usage = "usage: cargo xtask schema-diff DIR [--mutations N] [--seed S]";
        let mut options = Self { dir: PathBuf::new(), mutations: 20_000, seed: 1 };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let number = match arg.as_str() {
                "--mutations" => &mut options.mutations,
                "--seed" => &mut options.seed,
                dir if options.dir.as_os_str().is_empty() && !dir.starts_with('-') => {
                    options.dir = PathBuf::from(dir);
                    continue;
                }
                _ => bail!("{usage}"),
            };
            let text = args.next().context(usage)?;
            *number = text.parse().with_context(|| format!("{arg} takes a number, not {text}"))?;
        }
        if options.dir.as_os_str().is_empty() {
            bail!("{usage}");
        }
        Ok(options)
    }
}

/// The two judges side by side, and the score.
struct Comparison {
    judges: BTreeMap<Schema, jsonschema::Validator>,
    outcomes: BTreeMap<Schema, Outcomes>,
    documents: u64,
    differences: u64,
}

/// What the published schema said of the documents put before it.
#[derive(Default)]
struct Outcomes {
    accepted: u64,
    rejected: u64,
}

impl Comparison {
    fn new(schemas: &Schemas) -> anyhow::Result<Self> {
        let judges = schemas.validators()?;
        Ok(Self { judges, outcomes: BTreeMap::new(), documents: 0, differences: 0 })
    }

    fn compare(&mut self, origin: Schema, document: &Value) {
        self.documents += 1;
        let selected = published::schema_for(document);
        self.compare_by(selected, document);
        if origin != selected {
            self.compare_by(origin, document);
        }
    }

    fn compare_by(&mut self, schema: Schema, document: &Value) {
        let Some(judge) = self.judges.get(&schema) else {
            return; // Schemas::load has made sure that every schema has a judge
        };
        let theirs = judge.is_valid(document);
        let outcomes = self.outcomes.entry(schema).or_default();
        *(if theirs { &mut outcomes.accepted } else { &mut outcomes.rejected }) += 1;

        let ours = published::judge_against(schema, document);
        if theirs == ours.is_empty() {
            return;
        }
        self.differences += 1;
        if self.differences <= SHOWN as u64 {
            println!("difference {} by {schema}: {document}", self.differences);
            println!("  the published schema {}", if theirs { "accepts" } else { "rejects" });
            for error in judge.iter_errors(document) {
                println!("    {}: {error}", error.instance_path());
            }
            println!("  our tables {}", if ours.is_empty() { "accept" } else { "reject" });
            for violation in ours {
                println!("    {violation}");
            }
        }
    }

    /// Prints the score; an error if a verdict differed, or if too little was put to the test.
    fn report(&self, mutated: bool) -> anyhow::Result<()> {
        println!("{:>9} {:>9}  schema", "accepted", "rejected");
        for (schema, Outcomes { accepted, rejected }) in &self.outcomes {
            println!("{accepted:>9} {rejected:>9}  {schema}");
        }
        println!("documents {}, differences {}", self.documents, self.differences);
        if self.documents == 0 {
            bail!("nothing was compared");
        }
        if self.differences > 0 {
            bail!("{} verdicts differ from the published schemas", self.differences);
        }
        for schema in published::all().filter(|_| mutated) {
            match self.outcomes.get(&schema) {
                Some(&Outcomes { accepted: 1.., rejected: 1.. }) => {}
                _ => bail!("{schema} never said both yes and no: raise --mutations"),
            }
        }
        Ok(())
    }
}
