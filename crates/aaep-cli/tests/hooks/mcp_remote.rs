//! `aaep mcp --url` before a server whose streams break off.

use std::io::{BufRead, BufReader};

use super::mcp_more::{Client, aaep, allow};
use super::*;

/// A server over HTTP that breaks the stream of each answer off after its first message, and writes down
/// what it is asked. It goes on with it, or does not: `goes_on`, `forgets`, `unnumbered`, `again`.
const SERVER: &str = r#"
import http.server, json, sys
log, way = open(sys.argv[1], "a", buffering=1), sys.argv[2]
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words): pass
    def stream(self, text):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("mcp-session-id", "s")
        self.end_headers()
        self.wfile.write(text.encode())
    def do_GET(self):
        last = self.headers.get("last-event-id")
        log.write("GET %s %s\n" % (last, self.headers.get("mcp-protocol-version")))
        answer = {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "whole"}]}}
        if last is None or way == "forgets": self.send_error(405)
        elif way == "again": self.stream("id: %sx\ndata: \n\n" % last)
        else: self.stream("id: 2\ndata: %s\n\n" % json.dumps(answer))
    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["content-length"])))
        log.write("POST %s\n" % m["method"])
        if m["method"] == "tools/call":
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "half"}}
            number = "" if way == "unnumbered" else "id: 1\n"
            return self.stream("%sdata: %s\n\n" % (number, json.dumps(note)))
        if "id" not in m:
            self.send_response(202); self.end_headers(); return
        result = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {}, "serverInfo": {"name": "s", "version": "0"}}
        self.stream("data: %s\n\n" % json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}))
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[test]
fn a_stream_that_breaks_off_is_taken_up_again_or_fails_clearly_and_nothing_runs_twice() {
    for (way, is_whole) in
        [("goes_on", true), ("forgets", false), ("unnumbered", false), ("again", false)]
    {
        run(async {
            let hub = Hub::start(Setup::default());
            let home = hub.home();
            let mut ear = Ear::unix(&hub).await;
            let log = home.join("log.txt");
            let mut server = Command::new("python3");
            server.args(["-c", SERVER]).arg(&log).arg(way).stdout(Stdio::piped());
            let mut server = server.spawn().unwrap();
            let mut port = String::new();
            BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
            let url = format!("http://127.0.0.1:{}/mcp", port.trim());
            let mut client = Client::start(aaep(home, &["--name", "web", "--url", &url]));
            let begin = json!({ "protocolVersion": "2025-06-18", "capabilities": {} });
            client
                .say(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin }));
            assert_eq!(client.hear()["result"]["protocolVersion"], "2025-06-18");
            client.call(7, "keep");
            allow(&mut ear, "Use keep of web.").await;
            assert_eq!(client.hear()["params"]["data"], "half");
            let answer = client.hear();
            assert_eq!(answer["id"], 7, "{way}: {answer}");
            assert_eq!(answer.get("result").is_some(), is_whole, "{way}: {answer}");
            let code = answer["error"]["code"].as_i64();
            assert_eq!(code, (!is_whole).then_some(-32001), "{way}: {answer}");
            let asked = std::fs::read_to_string(&log).unwrap();
            assert_eq!(asked.matches("POST tools/call").count(), 1, "{way}: {asked}");
            let resumed = asked.contains("GET 1 2025-06-18");
            assert_eq!(resumed, way != "unnumbered", "{way}: {asked}");
            let _ = server.kill();
            let _ = server.wait();
        });
    }
}
