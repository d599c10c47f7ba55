"""What the package sends for the calls of `vectors/agent.json`, to a server that writes it down.

    python record.py VECTORS            compares
    python record.py VECTORS --write    writes what the Rust library sends
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from aaep import Agent

SESSION = "sess_d1d5f0e9a71ff3250000000000000001"
EVENT = "evt_d1d5f0e9a71ff3250000000000000002"
CALL = "call_d1d5f0e9a71ff3250000000000000003"
sent = []


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.removeprefix("/aaep/v1/")
        sent.append({"path": path.replace(SESSION, "SESSION").replace(EVENT, "REQUEST"), "body": tidy(body)})
        assert self.headers["idempotency-key"] and self.headers["aaep-session-secret"]
        if path.endswith("/requests"):
            Recorder.answer = answer_to(body)
            self.reply(201, state("pending"))
        elif path.endswith("/invoke"):
            self.reply(200, {"tool_call_id": CALL, "arguments": body.get("arguments")})
        elif path.endswith("/events"):
            self.reply(201, {"event_id": EVENT, "sequence_number": 1})
        else:
            self.reply(201, {"session_id": SESSION})

    def do_GET(self):
        if "/sessions/" in self.path:
            # A sign of life; nothing ends.
            threading.Event().wait(2)
            self.reply(200, {"session_id": SESSION, "state": "thinking", "calls": [], "outputs": []})
        else:
            self.reply(200, Recorder.answer)

    def reply(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def state(status, **more):
    return {
        "request_id": EVENT, "event_id": EVENT, "session_id": SESSION, "digest": "ab",
        "deadline": "2026-05-24T14:22:11.342Z", "status": status, **more,
    }


def answer_to(body):
    if body["kind"] == "confirmation":
        return state("accepted", decided_by="ann")
    answers = {"freetext": "May", "yes_no": True, "numeric": 2.5, "multiple_choice": "2"}
    return state("accepted", decided_by="ann", response=answers[body["accepted_response_kinds"][0]])


def tidy(body):
    """Without what differs from run to run."""
    for name in ("tool_call_id", "output_id"):
        if name in body:
            body[name] = name
    if "duration_ms" in body:
        body["duration_ms"] = 0
    return body


def confirmed(session, given):
    names = {"timeoutSeconds": "timeout_seconds", "acceptOnSilence": "accept_on_silence"}
    named = {names.get(name, name): value for name, value in given.items() if name not in ("tool", "arguments")}
    with session.confirm(given["tool"], given["arguments"], **named):
        pass


def call(session, what, given):
    match what:
        case "thinking":
            session.thinking(given)
        case "progress":
            session.progress(given.get("percent"), description=given.get("description"), eta_seconds=given.get("etaSeconds"),
                             step=tuple(given["step"]) if "step" in given else None)
        case "tool":
            with session.tool(given["name"], given["summary"], given.get("arguments"), risk=given.get("risk")):
                pass
        case "confirm":
            confirmed(session, given)
        case "ask":
            assert session.ask(given["question"], context=given.get("context")) == "May"
        case "askYesNo":
            assert session.ask_yes_no(given["question"]) is True
        case "askNumber":
            assert session.ask_number(given["question"]) == 2.5
        case "choose":
            assert session.choose(given["question"], given["choices"]) == 1
        case "output":
            with session.output() as output:
                output.write(given)


server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
path = Path(sys.argv[1])
vectors = json.loads(path.read_text())
with Agent("recorded", f"http://127.0.0.1:{server.server_port}").session("Moving money.") as session:
    opened, wrong = list(sent), []
    for vector in vectors:
        sent.clear()
        call(session, vector["call"], vector["with"])
        if "--write" in sys.argv:
            vector["sent"] = list(sent)
        elif vector["sent"] != sent:
            wrong.append((vector, list(sent)))
assert opened == [{"path": "agent/sessions", "body": {
    "producer": {"agent_id": "recorded"}, "summary_normal": "Moving money.", "language": "en",
}}] or "--write" in sys.argv or not print(opened), opened
if "--write" in sys.argv:
    path.write_text("[\n" + ",\n".join(f"  {json.dumps(vector, ensure_ascii=False)}" for vector in vectors) + "\n]\n")
for vector, found in wrong:
    print("wanted", json.dumps(vector["sent"]), "\nfound ", json.dumps(found))
print(f"{len(vectors) - len(wrong)} of {len(vectors)} vectors")
sys.exit(bool(wrong))
