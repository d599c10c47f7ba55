//! Set-up, checks and generated files of this workspace: `cargo xtask help`.
#![allow(clippy::disallowed_methods)] // a tool for developers: it reads files and runs programs

mod schema_diff;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((task, rest)) if task == "schema-diff" => schema_diff::run(rest),
        _ => Ok(()),
    }
}
