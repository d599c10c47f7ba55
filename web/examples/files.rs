//! Writes every file of the element into a folder, as the hub serves them: `files FOLDER`.
#![allow(clippy::disallowed_methods)] // it writes files

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| std::io::Error::other("name a folder"))?;
    for file in aaep_page::files() {
        let path = Path::new(&folder).join(&*file.path);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(&folder)))?;
        std::fs::write(path, &*file.text)?;
    }
    Ok(())
}
