//! The published schemas, read from a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use aaep_conformance::published::{self, Schema};
use anyhow::{Context, bail};
use serde_json::{Map, Value};

pub(super) struct Schemas {
    files: BTreeMap<Schema, Value>,
    /// Every word that a schema or one of our tables allows somewhere.
    words: Vec<String>,
}

/// A part of a schema, with the file it is part of.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) file: &'a Value,
    pub(super) here: &'a Value,
}

impl Schemas {
    /// Reads every schema. A file without a table is an error, and so is a table without a file.
    pub(super) fn load(dir: &Path) -> anyhow::Result<Self> {
        let mut files = BTreeMap::new();
        for schema in published::all() {
            let path = dir.join(schema.path());
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read the schema {}", path.display()))?;
            let file = serde_json::from_str(&text)
                .with_context(|| format!("{} is not JSON", path.display()))?;
            files.insert(schema, file);
        }
        for folder in [dir.to_path_buf(), dir.join("core"), dir.join("handshake")] {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let known = published::all().any(|schema| path == dir.join(schema.path()));
                if path.to_string_lossy().ends_with(".schema.json") && !known {
                    bail!("{} has no table in aaep-conformance", path.display());
                }
            }
        }
        let mut schemas = Self { files, words: Vec::new() };
        schemas.words = schemas.collect_words();
        Ok(schemas)
    }

    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    /// The schemas' constants, and our tables': a word that only one side knows is worth trying.
    /// Ours are read from what the tables say of a document in which everything is wrong.
    fn collect_words(&self) -> Vec<String> {
        let mut words = BTreeSet::new();
        for (schema, file) in &self.files {
            constants(file, &mut words);
            let wrong = self.all_wrong(self.root(*schema));
            for violation in published::judge_against(*schema, &wrong) {
                words.extend(violation.text.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
        words.into_iter().collect()
    }

    /// A document with every member there is, and `null` wherever no object or array belongs.
    fn all_wrong(&self, part: Part<'_>) -> Value {
        let part = self.resolve(part);
        match (part.text("type"), part.get("items")) {
            (Some("object"), _) => {
                let members = self.members(part).into_iter();
                members.map(|(name, part)| (name.to_owned(), self.all_wrong(part))).collect()
            }
            (Some("array"), Some(item)) => Value::Array(vec![self.all_wrong(item)]),
            _ => Value::Null,
        }
    }

    /// A validator for each schema. The schemas find each other by `$id`; nothing is fetched.
    pub(super) fn validators(&self) -> anyhow::Result<BTreeMap<Schema, jsonschema::Validator>> {
        let mut registry = jsonschema::Registry::new();
        for (schema, file) in &self.files {
            let id = file.get("$id").and_then(Value::as_str);
            registry = registry.add(id.with_context(|| format!("{schema} has no $id"))?, file)?;
        }
        let registry = registry.prepare()?;
        let mut validators = BTreeMap::new();
        for (schema, file) in &self.files {
            let validator = jsonschema::options()
                .with_draft(jsonschema::Draft::Draft202012)
                .should_validate_formats(true)
                .offline()
                .with_registry(&registry)
                .build(file)
                .map_err(|error| anyhow::anyhow!("{schema} does not compile: {error}"))?;
            validators.insert(*schema, validator);
        }
        Ok(validators)
    }

    /// The examples the schemas bring along.
    pub(super) fn examples(&self) -> Vec<(Schema, Value)> {
        let of = |file: &Value| file.get("examples").and_then(Value::as_array).cloned();
        let each = |(schema, file): (&Schema, &Value)| {
            let schema = *schema;
            of(file).unwrap_or_default().into_iter().map(move |example| (schema, example))
        };
        self.files.iter().flat_map(each).collect()
    }

    pub(super) fn root(&self, schema: Schema) -> Part<'_> {
        let file = &self.files[&schema];
        Part { file, here: file }
    }

    /// The part itself, or what its `$ref` names.
    pub(super) fn resolve<'a>(&'a self, part: Part<'a>) -> Part<'a> {
        let Some(reference) = part.text("$ref") else {
            return part;
        };
        if let Some(pointer) = reference.strip_prefix('#') {
            let here = part.file.pointer(pointer).unwrap_or(part.here);
            return Part { file: part.file, here };
        }
        let is_named = |file: &&Value| file.get("$id").and_then(Value::as_str) == Some(reference);
        match self.files.values().find(is_named) {
            Some(file) => Part { file, here: file },
            None => part,
        }
    }

    /// The members an object may have by this part and all it builds on; a later one of the same
    /// name is the narrower.
    pub(super) fn members<'a>(&'a self, part: Part<'a>) -> BTreeMap<&'a str, Part<'a>> {
        let mut members = BTreeMap::new();
        for base in part.parts("allOf") {
            members.extend(self.members(self.resolve(base)));
        }
        for (name, here) in part.map("properties") {
            members.insert(name.as_str(), Part { file: part.file, here });
        }
        members
    }

    /// The members an object must have by this part and all it builds on.
    pub(super) fn required<'a>(&'a self, part: Part<'a>) -> Vec<&'a str> {
        let bases = part.parts("allOf");
        let mut required: Vec<_> =
            bases.flat_map(|base| self.required(self.resolve(base))).collect();
        required.extend(part.parts("required").filter_map(|part| part.here.as_str()));
        required
    }
}

/// The strings under `const` and `enum`, at any depth.
fn constants(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if name == "const" || name == "enum" {
                    let listed = member.as_array().into_iter().flatten();
                    words.extend(
                        listed.chain([member]).filter_map(Value::as_str).map(str::to_owned),
                    );
                }
                constants(member, words);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| constants(item, words)),
        _ => {}
    }
}

impl<'a> Part<'a> {
    pub(super) fn get(self, keyword: &str) -> Option<Part<'a>> {
        Some(Part { file: self.file, here: self.here.get(keyword)? })
    }

    pub(super) fn text(self, keyword: &str) -> Option<&'a str> {
        self.here.get(keyword)?.as_str()
    }

    pub(super) fn number(self, keyword: &str) -> Option<i64> {
        self.here.get(keyword)?.as_i64()
    }

    pub(super) fn parts(self, keyword: &str) -> impl Iterator<Item = Part<'a>> + use<'a> {
        let items = self.here.get(keyword).and_then(Value::as_array);
        items.into_iter().flatten().map(move |here| Part { file: self.file, here })
    }

    fn map(self, keyword: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.here.get(keyword).and_then(Value::as_object).into_iter().flat_map(Map::iter)
    }
}
