"""A program that took the hub's place: says yes to everything, and prints what it was sent.

    fake_hub.py ADDRESS WORDS [UID]    where ADDRESS is a port, or the path of a socket

With a UID it becomes that user first.

Prints `ready PORT` first, and each chunk that it gets as `got` and its bytes in hexadecimal.
"""

import json
import os
import socket
import sys
import threading

ADDRESS, WORDS = sys.argv[1:3]
b"".decode("latin-1")  # loads what another user may not be able to
if len(sys.argv) > 3:
    uid = int(sys.argv[3])
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
SESSION, REQUEST = "sess_" + "1" * 32, "req_" + "2" * 32
EVENT = "evt_" + "2" * 32
PRINTING = threading.Lock()


def answer(method, path):
    if path.endswith("/events") and method == "POST":
        return 201, {"event_id": EVENT, "sequence_number": 1}
    if path.endswith("/agent/sessions"):
        return 201, {"session_id": SESSION}
    if path.endswith("/invoke"):
        return 200, {"tool_call_id": "call_" + "3" * 32, "arguments": None}
    if "/agent/requests" in path or path.endswith("/requests"):
        return 200, {
            "request_id": REQUEST, "event_id": EVENT, "session_id": SESSION, "digest": "sha256:0",
            "deadline": "2099-01-01T00:00:00.000Z", "status": "accepted", "decided_by": WORDS,
        }
    if "/agent/sessions/" in path:
        return 200, {"session_id": SESSION, "state": "thinking", "calls": [], "outputs": []}
    return 500, {"error": WORDS, "rule": WORDS, "section": WORDS, "text": WORDS}


def serve(peer):
    pending = b""
    while True:
        chunk = peer.recv(65536)
        if not chunk:
            return
        with PRINTING:
            print("got", chunk.hex(), flush=True)
        pending += chunk
        while b"\r\n\r\n" in pending:
            head, rest = pending.split(b"\r\n\r\n", 1)
            lines = head.decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:])
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                break
            pending = rest[length:]
            method, path, _ = lines[0].split(" ")
            if headers.get("transfer-encoding"):
                pending = b""
            path = path.split("?")[0]
            status, body = answer(method, path)
            if "wait" in lines[0] and "/agent/sessions/" in path:
                threading.Event().wait(20)
            body = json.dumps(body).encode()
            head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            peer.sendall(head.encode() + body)


if ADDRESS.isdigit():
    listener = socket.create_server(("127.0.0.1", int(ADDRESS)))
    print("ready", listener.getsockname()[1], flush=True)
else:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(ADDRESS)
    os.chmod(ADDRESS, 0o777)
    listener.listen()
    print("ready", 0, flush=True)
while True:
    taken, _ = listener.accept()
    threading.Thread(target=serve, args=(taken,), daemon=True).start()
