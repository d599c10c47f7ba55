//! `cargo xtask grpc`: the Rust for gRPC, made anew from the `.proto`.

use anyhow::{Result, bail};

use crate::workspace::{cargo, run as run_program};

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("grpc takes no arguments");
    }
    // The test that compares the two writes what it would compare.
    let mut test = cargo(["test", "--package", "aaep-transport", "--test", "generated"]);
    run_program(test.env("AAEP_WRITE_GRPC", "1"))
}
