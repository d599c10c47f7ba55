//! Clients that ordinary generators make of the `.proto`, in Python and TypeScript: they hear and answer.

use std::io::{BufRead, BufReader};

use super::*;
use crate::grpc::hub;

const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../aaep-transport/proto");
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hub/guests");

/// Lets the client hear a question, and looks whether its yes counts.
async fn hears_and_answers(client: impl Fn(&str, &str, &str) -> Command) {
    let person = hub().person();
    let address = person.hub.grpc().replace("grpc://", "");
    for way in ["stream", "calls"] {
        let mut command = client(&address, &person.token("reader"), way);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (listening, mut child) = tokio::task::spawn_blocking(move || {
            (lines.any(|line| line.unwrap() == "listening"), (child, lines))
        })
        .await
        .unwrap();
        assert!(listening, "{way}: it does not listen");
        let agent = person.agent();
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        assert_eq!(agent.outcome(&request).await, "accepted", "{way}");
        assert_eq!(agent.invoke(&request, "{}").await.status.as_u16(), 200);
        agent.complete(&session).await;
        let waiting = tokio::task::spawn_blocking(move || {
            let heard: Vec<String> = child.1.by_ref().map_while(Result::ok).collect();
            (child.0.wait().unwrap(), heard)
        });
        let (status, heard) = soon("the end of the client", waiting).await.unwrap();
        assert!(status.success(), "{way}: {heard:?}");
        assert!(heard.iter().any(|kind| kind == "aaep:agent.session.completed"), "{heard:?}");
    }
}

// covers: W11
#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn a_python_client_made_of_the_proto_hears_and_answers() {
    run(async {
        let made = tempfile::tempdir().unwrap();
        let mut generator = guest("python");
        generator.args(["-m", "grpc_tools.protoc", "-I", PROTO]);
        for option in ["--python_out", "--grpc_python_out"] {
            generator.arg(format!("{option}={}", made.path().display()));
        }
        generator.arg("aaep/v1/aaep.proto");
        succeeds(generator);
        hears_and_answers(|address, token, way| {
            let mut client = guest("python");
            client.arg(format!("{HERE}/by_grpc.py")).args([address, token, way]);
            client.env("PYTHONPATH", made.path());
            client
        })
        .await;
    });
}

// covers: W11
#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn a_typescript_client_made_of_the_proto_hears_and_answers() {
    let Some(modules) = std::env::var_os("AAEP_GUESTS_NODE") else {
        crate::skipped::skipped("there is no Node.js for the client in TypeScript");
        return;
    };
    run(async {
        let modules = PathBuf::from(modules).join("node_modules");
        let made = tempfile::tempdir_in(modules.parent().unwrap()).unwrap();
        let program = |name: &str| {
            let mut command = Command::new(modules.join(".bin").join(name));
            command.current_dir(made.path()).stdin(Stdio::null());
            command
        };
        let mut generator = program("proto-loader-gen-types");
        generator.args(["--keepCase", "--defaults", "--grpcLib=@grpc/grpc-js", "--outDir=made"]);
        generator.args(["-I", PROTO, "--", "aaep/v1/aaep.proto"]);
        succeeds(generator);
        std::fs::copy(format!("{HERE}/by_grpc.ts"), made.path().join("client.ts")).unwrap();
        let mut compiler = program("tsc");
        compiler.args(["--strict", "--skipLibCheck", "--esModuleInterop", "--target", "es2022"]);
        compiler.args(["--module", "commonjs", "--moduleResolution", "node", "client.ts"]);
        succeeds(compiler);
        hears_and_answers(|address, token, way| {
            let mut client = Command::new("node");
            client.arg(made.path().join("client.js")).args([PROTO, address, token, way]);
            client
        })
        .await;
    });
}
