//! The Rust for gRPC is what the `.proto` gives.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // files

use std::path::Path;

/// `cargo xtask grpc` sets it: write instead of comparing.
const WRITE: &str = "AAEP_WRITE_GRPC";

// covers: W11
#[test]
fn the_committed_code_is_what_the_proto_gives() {
    let write = std::env::var_os(WRITE).is_some();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .bytes(".")
        .type_attribute(".", "#[allow(clippy::all)]")
        .build_transport(false)
        .out_dir(made.path())
        .compile_fds(protox::compile(["aaep/v1/aaep.proto"], [here.join("proto")]).unwrap())
        .unwrap();
    let made = std::fs::read_to_string(made.path().join("aaep.v1.rs")).unwrap();
    let kept = here.join("src/grpc/generated/aaep.v1.rs");
    if write {
        std::fs::write(&kept, &made).unwrap();
        return;
    }
    let is_same = std::fs::read_to_string(&kept).unwrap() == made;
    assert!(is_same, "the .proto and its code differ: run cargo xtask grpc");
}
