//! The contender.

use aaep_types::schema;

/// The jsonschema crate with our schemas compiled; a message is judged by the schema of its type,
/// as a careful user of that crate would do it.
pub struct Judge(std::collections::BTreeMap<String, jsonschema::Validator>);

impl Judge {
    pub fn new() -> Self {
        let schemas = schema::all();
        let resources = schemas.iter().map(|schema| {
            let id = format!("{}{}", schema::BASE, schema.path);
            (id, jsonschema::Resource::from_contents(schema.document.clone()))
        });
        let registry =
            jsonschema::Registry::new().extend(resources).expect("ours").prepare().expect("ours");
        let compile = |document| {
            jsonschema::options()
                .with_registry(&registry)
                .should_validate_formats(true)
                .build(document)
                .expect("our schemas compile")
        };
        Self(
            schemas.iter().map(|schema| (schema.path.clone(), compile(&schema.document))).collect(),
        )
    }

    pub fn accepts(&self, line: &str) -> bool {
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(line.as_bytes()) else {
            return false;
        };
        let path = schema::path_for(value["type"].as_str().unwrap_or_default());
        self.0.get(&path).is_some_and(|validator| validator.is_valid(&value))
    }
}
