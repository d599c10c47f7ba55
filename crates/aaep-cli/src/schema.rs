//! `aaep schema`: prints our schemas, or writes them.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use aaep_types::published::contexts;
use aaep_types::schema::{Schema, all, bundled, path_for};
use serde_json::{Map, Value};

use crate::arguments::SchemaOptions;
use crate::exit::{Exit, say};
use crate::lines::{Plain, count};

/// The service of gRPC, for generators of clients.
const PROTO_NAME: &str = "aaep.proto";

pub(crate) fn run(options: &SchemaOptions, out: &mut impl Write) -> io::Result<Exit> {
    if options.openapi {
        let text = aaep_hub::openapi(&aaep_hub::config::BasePath::default());
        let document: Value = serde_json::from_str(&text).map_err(io::Error::other)?;
        out.write_all(&pretty(&document)?)?;
        return Ok(Exit::Good);
    }
    let schemas = if options.bundle { bundled() } else { all() };
    if options.list {
        list(&schemas, out)
    } else if let Some(folder) = &options.out {
        write_all(&schemas, folder, out)
    } else if let Some(name) = &options.name {
        print_one(&schemas, name, out)
    } else {
        let documents = schemas.into_iter().map(|schema| (schema.path, schema.document));
        out.write_all(&pretty(&Value::Object(documents.collect::<Map<_, _>>()))?)?;
        Ok(Exit::Good)
    }
}

fn list(schemas: &[Schema], out: &mut impl Write) -> io::Result<Exit> {
    for schema in schemas {
        writeln!(out, "{}", schema.name())?;
    }
    Ok(Exit::Good)
}

fn print_one(schemas: &[Schema], name: &str, out: &mut impl Write) -> io::Result<Exit> {
    if name == PROTO_NAME {
        out.write_all(aaep_transport::grpc::PROTO.as_bytes())?;
        return Ok(Exit::Good);
    }
    // §7.7: our extensions are published with their JSON-LD contexts.
    let contexts = contexts();
    let Some(schema) = find(schemas, name).or_else(|| find(&contexts, name)) else {
        let names: Vec<_> = schemas.iter().map(Schema::name).collect();
        say(&format!("there is no schema {}. These exist:\n{}", Plain(name), names.join("\n")));
        return Ok(Exit::Unable);
    };
    out.write_all(&pretty(&schema.document)?)?;
    Ok(Exit::Good)
}

/// By its name, its path, or the type of a message that is judged by it.
fn find<'a>(schemas: &'a [Schema], name: &str) -> Option<&'a Schema> {
    let named = schemas.iter().find(|schema| schema.name() == name || schema.path == name);
    // An unknown type is judged by the envelope, but a mistyped name should be told.
    let by_type = || {
        let path = path_for(name);
        schemas.iter().skip(1).find(|schema| schema.path == path)
    };
    let by_bare_name =
        || schemas.iter().find(|schema| schema.name().ends_with(&format!("/{name}")));
    named.or_else(by_type).or_else(by_bare_name)
}

fn write_all(schemas: &[Schema], folder: &Path, out: &mut impl Write) -> io::Result<Exit> {
    let contexts = contexts();
    for (done, schema) in schemas.iter().chain(&contexts).enumerate() {
        let path = folder.join(&schema.path);
        let parent = path.parent().unwrap_or(folder);
        let written =
            fs::create_dir_all(parent).and_then(|()| fs::write(&path, pretty(&schema.document)?));
        if let Err(error) = written {
            say(&format!(
                "cannot write {}: {error}. {} were written before. Choose another folder.",
                Plain(&path.to_string_lossy()),
                count(done as u64, "file")
            ));
            return Ok(Exit::Unable);
        }
    }
    let (number, folder) = (count(schemas.len() as u64, "schema"), folder.to_string_lossy());
    let contexts = count(contexts.len() as u64, "context");
    writeln!(out, "Wrote {number} and {contexts} of extensions to {}.", Plain(&folder))?;
    Ok(Exit::Good)
}

fn pretty(document: &Value) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(document)?;
    bytes.push(b'\n');
    Ok(bytes)
}
