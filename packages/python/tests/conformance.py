"""An agent of the installed package, with the real hub, before the conformance suite at level 3. Its report is
kept in docs/conformance, and compared with what is kept; with AAEP_REPORTS=write it is replaced.

    AAEP_PROGRAM=/path/to/aaep AAEP_DOCS=/path/to/docs python conformance.py
"""

import json
import os
import re
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from aaep import Agent, NotApproved

PROGRAM = os.environ["AAEP_PROGRAM"]
KEPT = Path(os.environ["AAEP_DOCS"]) / "conformance"
PEOPLE = [
    ("owner", "accessibility_consumer", "ann"), ("agent", "agent", "ann"), ("stranger", "accessibility_consumer", "bob"),
]


def token(name):
    return f"aaep_{name:x<43}"


def hub(directory):
    """A hub that knows these people, in this directory."""
    text = ""
    for name, role, user in PEOPLE:
        place = directory / name
        place.touch(mode=0o600)
        place.write_text(token(name) + "\n")
        text += f'[[principals]]\nname = "{name}"\nrole = "{role}"\nuser = "{user}"\ntoken_file = "{place}"\n'
    (directory / "aaep.toml").write_text(text)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(directory), "AAEP_DEVELOPMENT__OWN_REPLIES": "true",
        "AAEP_UNIX_SOCKET__ENABLED": "false",
    }
    command = [PROGRAM, "hub", "--config", str(directory / "aaep.toml"), "--ephemeral", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    url = ""
    for line in process.stdout:
        if line.startswith("Listening:"):
            url = line.split(":", 1)[1].strip()
        if line.startswith("Ready."):
            break
    return process, url


def stream(session, pieces):
    with session.output() as output:
        for piece in pieces:
            output.write(piece)


def transfer(session, text):
    seconds = 1 if "1 second" in text else 300
    words = {"action": "Transfer 20 euros to Ann.", "consequence": "The money is gone."}
    with session.confirm("transfer", {"euros": "20", "to": "Ann"}, timeout_seconds=seconds, **words) as call:
        call.summary("20 euros were moved.")


def play(session, text):
    """What the agent does when it is asked for this."""
    if text == "balance":
        with session.tool("balance", "Asking the bank."):
            pass
    elif text == "ask me something":
        session.ask("Where are you?")
    elif text == "three sentences":
        stream(session, ["One. ", "Two. ", "Three."])
    elif text == "help":
        stream(session, [f"Sentence number {number} of many. " for number in range(40)])
    elif text == "a long job":
        for percent in (20, 60, 90):
            session.progress(percent)
    elif text == "fail":
        raise ZeroDivisionError("it failed")
    elif text == "give up":
        session.cancel("Given up.")
    elif "take it back" in text:
        asking = threading.Thread(target=taken_back, args=(session, text), daemon=True)
        asking.start()
        time.sleep(0.5)
        session.cancel("It is no longer needed.")
        asking.join()
    else:
        transfer(session, text)


def taken_back(session, text):
    try:
        transfer(session, text)
    except Exception:  # it was taken back, which this thread hears as an error
        pass


def door(agent, url):
    """Where the suite begins sessions of the agent; the manifest is the hub's."""

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            origin = "/".join(url.split("/")[:3])
            with urllib.request.urlopen(origin + self.path) as found:
                self.tell(found.read())

        def do_POST(self):
            text = json.loads(self.rfile.read(int(self.headers["content-length"])))["user_message"]
            opened = threading.Event()
            threading.Thread(target=self.work, args=(text, opened), daemon=True).start()
            opened.wait(30)
            self.tell(json.dumps({"session_id": self.session}).encode())

        def work(self, text, opened):
            try:
                with agent.session("Trying something.") as session:
                    self.session = session.id
                    opened.set()
                    play(session, text)
            except (NotApproved, ZeroDivisionError):
                pass

        def tell(self, body):
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Conformance(unittest.TestCase):
    # covers: V3
    def test_an_agent_of_this_package_conforms_at_level_3(self):
        with tempfile.TemporaryDirectory() as directory:
            directory = Path(directory)
            process, url = hub(directory)
            try:
                agent = Agent("conformance", url, token=token("agent"), trust_loopback=True)
                server = door(agent, url)
                control = f"http://127.0.0.1:{server.server_address[1]}"
                suite = subprocess.run([
                    PROGRAM, "conformance", "producer", url, "--level", "3", "--start", "sessions", "--control", control,
                    "--token-file", str(directory / "owner"), "--stranger-token-file", str(directory / "stranger"),
                    "--trust-loopback",
                ], stdout=subprocess.PIPE, text=True, timeout=170)
                server.shutdown()
                server.server_close()
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
        self.assertEqual(suite.returncode, 0, suite.stdout)
        lasting = suite.stdout.replace(url, "an agent of the Python package")
        lasting = re.sub(r" not exercised, in .*|, in this report of.*", "", lasting)
        place = KEPT / "python.txt"
        if os.environ.get("AAEP_REPORTS") == "write":
            KEPT.mkdir(parents=True, exist_ok=True)
            place.write_text(lasting)
        self.assertEqual(place.read_text(), lasting)


if __name__ == "__main__":
    unittest.main()
