//! Published servers and clients of the Model Context Protocol, with `aaep mcp` between them. Skipped
//! like the tests in `real`.

use std::io::{BufRead, BufReader};

use super::programs::programs;
use super::*;

/// A server in Python that keeps what it is given.
const SERVER: &str = r#"
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("notes")
@server.tool()
def keep(text: str) -> str:
    open(sys.argv[1], "a").write(text + "\n")
    return "kept " + text
server.run("stdio")
"#;

/// A client in Python: two calls, in the version of the protocol that is named.
const CLIENT: &str = r#"
import asyncio, sys
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
async def main():
    to = stdio_client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env=None))
    async with Client(to, mode=sys.argv[1]) as client:
        print("tools", [tool.name for tool in (await client.list_tools()).tools], flush=True)
        for text in ["first", "second"]:
            result = await client.call_tool("keep", {"text": text})
            print(text, result.is_error, result.content[0].text, flush=True)
asyncio.run(main())
"#;

/// A client in JavaScript: over HTTP or standard input, calls one tool after the other.
const SDK: &str = r#"
const [sdk, way, tools, ...rest] = process.argv.slice(1);
const { Client } = require(sdk + "/dist/cjs/client/index.js");
const { StreamableHTTPClientTransport } = require(sdk + "/dist/cjs/client/streamableHttp.js");
const { StdioClientTransport } = require(sdk + "/dist/cjs/client/stdio.js");
(async () => {
  const client = new Client({ name: "probe", version: "0" });
  const transport = way === "http" ? new StreamableHTTPClientTransport(new URL(rest[0]))
    : new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env });
  const [send, wanted] = [transport.send.bind(transport), process.env.PROTOCOL];
  transport.send = (message, options) => {
    if (wanted && message.method === "initialize") message.params.protocolVersion = wanted;
    return send(message, options);
  };
  const agree = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => { console.log("version " + version); agree?.(version); };
  await client.connect(transport);
  console.log("tools " + (await client.listTools()).tools.map((tool) => tool.name).join(" "));
  for (const call of JSON.parse(tools)) {
    const result = await client.callTool(call);
    console.log(Boolean(result.isError) + " " + JSON.stringify(result.content));
  }
  await client.close();
  process.exit(0);
})().catch((error) => { console.log("failed " + error); process.exit(1); });
"#;

fn prepare(command: &mut Command, home: &Path) {
    command.env_clear().env("HOME", home).env("XDG_RUNTIME_DIR", home.join("run"));
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

fn sdk(bin: &Path, home: &Path, protocol: &str, way: &str, calls: Value, rest: &[&str]) -> Child {
    let mut command = Command::new("node");
    command.arg("-e").arg(SDK).arg("--").arg(bin.join("node_modules/@modelcontextprotocol/sdk"));
    command.arg(way).arg(calls.to_string()).args(rest);
    prepare(&mut command, home);
    command.env("PROTOCOL", protocol).spawn().unwrap()
}

/// Says yes to what should be, and no to the rest.
async fn decide(ear: &mut Ear, decisions: &[(&str, &str)]) {
    for (action, decision) in decisions {
        let asked = ear.event("awaiting.confirmation").await;
        assert_eq!(asked["action"], *action);
        ear.decide(&asked, decision).await;
    }
}

#[test]
fn a_published_client_and_server_of_each_version_talk_through_the_proxy() {
    let Some(bin) = programs() else { return };
    let python = bin.join("python/bin/python");
    for mode in ["legacy", "2026-07-28"] {
        run(async {
            let hub = Hub::start(Setup::default());
            let home = hub.home();
            let mut ear = Ear::unix(&hub).await;
            let kept = home.join("kept.txt");
            let mut command = Command::new(&python);
            command.args([
                "-c",
                CLIENT,
                mode,
                env!("CARGO_BIN_EXE_aaep"),
                "mcp",
                "--name",
                "notes",
                "--hub",
            ]);
            command.arg(format!("unix:{}", hub.socket().display())).arg("--").arg(&python);
            command.args(["-c", SERVER]).arg(&kept);
            prepare(&mut command, home);
            let client = command.spawn().unwrap();
            decide(&mut ear, &[("Use keep of notes.", "accept"), ("Use keep of notes.", "reject")])
                .await;
            let ended = ended(client).await;
            assert_eq!(ended.code, 0, "{mode}: {ended:?}");
            assert!(ended.out.contains("first False kept first"), "{mode}: {ended:?}");
            assert!(ended.out.contains("second True The person said no."), "{mode}: {ended:?}");
            assert_eq!(std::fs::read_to_string(&kept).unwrap(), "first\n", "{mode}");
        });
    }
}

#[test]
fn a_published_client_comes_over_http_to_published_servers() {
    let Some(bin) = programs() else { return };
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let inside = project(home);
        let mut ear = Ear::unix(&hub).await;
        let program = |name: &str| bin.join("node_modules/.bin").join(name);
        let config = json!({ "mcpServers": {
            "files": { "command": program("mcp-server-filesystem"), "args": [inside] },
            "every": { "command": program("mcp-server-everything"), "args": ["stdio"] } } });
        let path = home.join("servers.json");
        std::fs::write(&path, config.to_string()).unwrap();
        let mut door = Command::new(env!("CARGO_BIN_EXE_aaep"));
        door.args(["mcp", "--listen", "127.0.0.1:0", "--config"]).arg(&path);
        prepare(&mut door, home);
        let mut door = door.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(door.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().trim_end_matches('.').rsplit(' ').next().unwrap().to_owned();
        let file = |name: &str| json!({ "path": inside.join(name), "content": "x" });
        let calls = json!([
            { "name": "files__write_file", "arguments": file("YES") },
            { "name": "files__write_file", "arguments": file("NO") },
            { "name": "every__echo", "arguments": { "message": "over http" } }]);
        let client = sdk(&bin, home, "2025-06-18", "http", calls, &[&url]);
        decide(
            &mut ear,
            &[
                ("Use write_file of files.", "accept"),
                ("Use write_file of files.", "reject"),
                ("Use echo of every.", "accept"),
            ],
        )
        .await;
        let ended = ended(client).await;
        let _ = door.kill();
        let _ = door.wait();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(ended.out.contains("version 2025-06-18"), "{ended:?}");
        assert!(
            ended.out.contains("Echo: over http") && ended.out.contains("The person said no."),
            "{ended:?}"
        );
        assert!(inside.join("YES").exists() && !inside.join("NO").exists());
    });
}

#[test]
fn a_published_server_over_http_is_used_by_a_published_client() {
    let Some(bin) = programs() else { return };
    for protocol in ["2025-06-18", "2025-11-25"] {
        used_over_http(&bin, protocol);
    }
}

fn used_over_http(bin: &Path, protocol: &str) {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Command::new(bin.join("node_modules/.bin/mcp-server-everything"));
        server.arg("streamableHttp");
        prepare(&mut server, home);
        let mut server = server.env("PORT", port.to_string()).spawn().unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        let url = format!("http://127.0.0.1:{port}/mcp");
        let calls = json!([
            { "name": "echo", "arguments": { "message": "from afar" } },
            { "name": "get-sum", "arguments": { "a": 1, "b": 2 } }]);
        let words = [env!("CARGO_BIN_EXE_aaep"), "mcp", "--name", "afar", "--url", &url];
        let client = sdk(bin, home, protocol, "stdio", calls, &words);
        decide(&mut ear, &[("Use echo of afar.", "accept"), ("Use get-sum of afar.", "reject")])
            .await;
        let ended = ended(client).await;
        let _ = server.kill();
        let _ = server.wait();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(ended.out.contains(&format!("version {protocol}")), "{ended:?}");
        assert!(
            ended.out.contains("false [{\"type\":\"text\",\"text\":\"Echo: from afar\"}]"),
            "{ended:?}"
        );
        assert!(
            ended.out.contains("true ") && ended.out.contains("The person said no."),
            "{ended:?}"
        );
    });
}
