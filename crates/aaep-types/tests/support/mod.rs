//! What the tests share: the vectors, and the other judge.
#![allow(dead_code)] // each test uses its part
#![allow(clippy::disallowed_methods)] // vectors are files
#![allow(clippy::unwrap_used, clippy::expect_used)] // this is test code, though not in a `#[test]`

pub mod build;
pub mod judge;
pub mod mutate;

use std::path::Path;

/// One file of `vectors/`.
pub struct Vector {
    /// The rule that its name begins with.
    pub rule: String,
    /// Its name, for messages.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The files of one folder of `vectors/`, in the order of their names.
pub fn vectors(folder: &str) -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(folder);
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Vector {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let rule = name.split('.').next().unwrap_or_default().to_owned();
    Vector { rule, bytes: std::fs::read(path).unwrap(), name }
}
