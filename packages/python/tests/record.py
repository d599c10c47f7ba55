"""What the package sends for the calls of `vectors/agent.json`, to a server that writes it down.

    python record.py VECTORS            compares
    python record.py VECTORS --write    writes what the Rust library sends
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from aaep import Agent, NotApproved, Stopped

SESSION = "sess_d1d5f0e9a71ff3250000000000000001"
EVENT = "evt_d1d5f0e9a71ff3250000000000000002"
CALL = "call_d1d5f0e9a71ff3250000000000000003"
sent = []


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer = None
    """What the next look at a request finds."""
    decision = "accepted"
    """What people say."""
    stopped = False
    """Whether the user stopped the session."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.removeprefix("/aaep/v1/")
        sent.append({"path": path.replace(SESSION, "SESSION").replace(EVENT, "REQUEST"), "body": tidy(body)})
        assert self.headers["idempotency-key"] and self.headers["aaep-session-secret"]
        if self.stopped:
            self.reply(404, {"error": "stopped", "text": "The user stopped this session."})
        elif path.endswith("/requests"):
            Recorder.answer = answer_to(body)
            self.reply(201, state("pending"))
        elif path.endswith("/invoke"):
            self.reply(200, {"tool_call_id": CALL, "arguments": body.get("arguments")})
        elif path.endswith("/events"):
            self.reply(201, {"event_id": EVENT, "sequence_number": 1})
        else:
            self.reply(201, {"session_id": SESSION})

    def do_GET(self):
        if self.stopped:
            self.reply(404, {"error": "stopped", "text": "The user stopped this session."})
        elif "/sessions/" in self.path:
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
        return state(Recorder.decision, decided_by="ann")
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


class Failed(Exception):
    """What a tool throws."""


def ran(call, how):
    """What is done as a tool."""
    if "done" in how:
        call.summary(how["done"])
    if "failed" in how:
        call.failed(how["failed"])
    if how.get("throws"):
        raise Failed


def confirmed(session, given, how):
    names = {"timeoutSeconds": "timeout_seconds", "acceptOnSilence": "accept_on_silence"}
    named = {names.get(name, name): value for name, value in given.items() if name not in ("tool", "arguments")}
    with session.confirm(given["tool"], given["arguments"], **named) as call:
        ran(call, how)


def called(session, vector):
    """Makes the call, which ends as the vector says."""
    how = vector.get("how", {})
    answer = how.get("answer")
    Recorder.decision, Recorder.stopped = "rejected" if answer == "rejected" else "accepted", answer == "stopped"
    wanted = {"rejected": NotApproved, "stopped": Stopped}.get(answer, Failed if how.get("throws") else None)
    try:
        call(session, vector["call"], vector["with"], how)
    except (Failed, NotApproved, Stopped) as error:
        assert wanted is type(error), error
    else:
        assert wanted is None, vector


def call(session, what, given, how):
    match what:
        case "thinking":
            session.thinking(given)
        case "progress":
            session.progress(given.get("percent"), description=given.get("description"), eta_seconds=given.get("etaSeconds"),
                             step=tuple(given["step"]) if "step" in given else None)
        case "tool":
            with session.tool(given["name"], given["summary"], given.get("arguments"), risk=given.get("risk")) as call:
                ran(call, how)
        case "confirm":
            confirmed(session, given, how)
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
        called(session, vector)
        if "--write" in sys.argv:
            vector["sent"] = list(sent)
        elif vector["sent"] != sent:
            wrong.append((vector, list(sent)))
assert opened == [{"path": "agent/sessions", "body": {
    "producer": {"agent_id": "recorded"}, "summary_normal": "Moving money.", "language": "en",
}}] or "--write" in sys.argv or not print(opened), opened
if "--write" in sys.argv:
    path.write_text("[\n" + ",\n".join(f"  {json.dumps(vector, ensure_ascii=False)}" for vector in vectors) + "\n]\n")
assert len(sent) == 1, "after a stop nothing more is said"
for vector, found in wrong:
    print("wanted", json.dumps(vector["sent"]), "\nfound ", json.dumps(found))
print(f"{len(vectors) - len(wrong)} of {len(vectors)} vectors")
sys.exit(bool(wrong))
