//! Set-up, checks and generated files of this workspace: `cargo xtask help`.
#![allow(clippy::disallowed_methods)] // a tool for developers: it reads files and runs programs

fn main() -> anyhow::Result<()> {
    Ok(())
}
