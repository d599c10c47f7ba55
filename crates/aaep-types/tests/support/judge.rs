//! A second opinion: our own schemas, judged by the jsonschema crate.

use aaep_types::schema;
use serde_json::Value;
use std::collections::BTreeMap;

/// Our schemas, compiled, with formats checked.
pub struct Judge(BTreeMap<String, jsonschema::Validator>);

impl Judge {
    pub fn new() -> Self {
        let schemas = schema::all();
        let resources = schemas.iter().map(|schema| {
            let id = format!("{}{}", schema::BASE, schema.path);
            (id, jsonschema::Resource::from_contents(schema.document.clone()))
        });
        let registry = jsonschema::Registry::new().extend(resources).unwrap().prepare().unwrap();
        let compile = |document| {
            jsonschema::options()
                .with_registry(&registry)
                .should_validate_formats(true)
                .build(document)
                .unwrap()
        };
        let compiled =
            schemas.iter().map(|schema| (schema.path.clone(), compile(&schema.document)));
        Self(compiled.collect())
    }

    /// Whether the schema of the document's type accepts it.
    pub fn accepts(&self, document: &Value) -> bool {
        let path = schema::path_for(document["type"].as_str().unwrap_or_default());
        self.0[&path].is_valid(document)
    }

    /// The first thing that its schema objects to, for messages.
    pub fn objection(&self, document: &Value) -> String {
        let path = schema::path_for(document["type"].as_str().unwrap_or_default());
        let first = self.0[&path].iter_errors(document).next();
        first.map_or("none".into(), |error| format!("{} at {}", error, error.instance_path()))
    }
}
