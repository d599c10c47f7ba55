"""A hub of one's own, for tests and notebooks."""

from __future__ import annotations

from typing import Any, Literal


class Hub:
    """Starts the program `aaep` as a hub on a free port of this machine that keeps nothing.

    `answer` has everything that is asked answered so, as a person with a listener would, or stops the
    agent; without it, somebody has to listen at `url`. `response` is what questions are answered with.
    `settings` are variables of its configuration,
    such as `AAEP_POLICY`. The program is looked for in `AAEP_PROGRAM`, on the path, and
    beside the interpreter, where `pip install aaep-cli` puts it.

    >>> from aaep import Hub
    >>> with Hub() as hub:
    ...     hub.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        *,
        program: str | None = None,
        answer: Literal["accept", "reject", "stop"] | None = None,
        response: str | float | bool | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        import os
        import shutil
        import sys

        # An environment need not be activated.
        beside = os.path.dirname(sys.executable)
        found = program or os.environ.get("AAEP_PROGRAM") or shutil.which("aaep") or shutil.which("aaep", path=beside)
        if not found:
            text = "The program aaep is not here. Install it (pip install aaep-cli), or name it in AAEP_PROGRAM."
            raise FileNotFoundError(text)
        self._program, self._answer, self._settings = found, answer, dict(settings or {})
        self._response, self._subscription = response, ""
        self.url = ""
        self.events: list[dict[str, Any]] = []
        """What was heard, where `answer` is given."""
        self._heard: Any = None
        self._listener: Any = None

    def start(self) -> Hub:
        """Starts it, and waits until it is ready."""
        import os
        import subprocess

        environment = {name: value for name, value in os.environ.items() if not name.startswith("AAEP_")}
        environment["AAEP_DEVELOPMENT__LOCAL_REPLIES"] = "true"
        environment["AAEP_UNIX_SOCKET__ENABLED"] = "false"
        environment.update(self._settings)
        command = [self._program, "hub", "--ephemeral", "--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if line.startswith("Listening:"):
                self.url = line.split(":", 1)[1].strip().split()[0]
            if line.startswith("Ready."):
                break
        if not self.url:
            self.stop()
            raise RuntimeError("The hub did not start. It said: " + "".join(said[-5:]))
        self._drain(self._process.stdout)
        if self._answer:
            self._listen()
        return self

    def _drain(self, lines: Any) -> None:
        import threading

        def read() -> None:
            with lines:
                for _ in lines:
                    pass

        threading.Thread(target=read, daemon=True).start()

    def _listen(self) -> None:
        import http.client
        import threading
        from urllib.parse import urlsplit

        parts = urlsplit(self.url)
        self._base = parts.path.rstrip("/") or "/aaep/v1"
        self._address = (parts.hostname or "127.0.0.1", parts.port or 80)
        able = {"supports_confirmation_reply": True, "supports_clarification_reply": True, "languages": ["en"]}
        wanted = {
            "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "aaep-python-hub",
            "capabilities": able,
        }
        self._subscription = self._post("subscriptions", wanted)["subscription_id"]
        self._listener = http.client.HTTPConnection(*self._address)
        path = f"{self._base}/events?subscription_id={self._subscription}"
        self._listener.request("GET", path, headers={"Accept": "text/event-stream"})
        stream = self._listener.getresponse()
        threading.Thread(target=self._answer_all, args=(stream,), daemon=True).start()

    def _answer_all(self, stream: Any) -> None:
        import json

        try:
            for line in stream:
                if line.startswith(b"data:"):
                    event = json.loads(line[5:])
                    self.events.append(event)
                    if "reply_token" in event:
                        self._reply(event)
        except (OSError, ValueError, AttributeError):
            return  # the hub is gone

    def _reply(self, event: dict[str, Any]) -> None:
        if self._answer == "stop":
            self.stop_agent(event["session_id"])
        elif event["type"].endswith("awaiting.clarification"):
            if self._response is not None:
                reply = {"type": "clarification.reply", "reply_token": event["reply_token"]}
                self._send(reply | {"response": self._response})
        elif self._answer:
            token, decision = event["reply_token"], self._answer
            self._send({"type": "confirmation.reply", "reply_token": token, "decision": decision})

    def stop_agent(self, session_id: str) -> None:
        """Stops a session, as its user can. Only where `answer` is given."""
        self._send({"type": "control:cancel", "session_id": session_id})

    def _send(self, message: dict[str, Any]) -> None:
        from datetime import datetime, timezone

        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._post("replies", message | {"subscription_id": self._subscription, "timestamp": now})

    def _post(self, path: str, message: dict[str, Any]) -> dict[str, Any]:
        import http.client
        import json

        connection = http.client.HTTPConnection(*self._address)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"{self._base}/{path}", json.dumps(message), headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"The hub answered {answer.status}: {body.decode()}")
        return json.loads(body) if body else {}

    def wait_for(self, kind: str, times: int = 1, *, seconds: float = 20) -> dict[str, Any]:
        """Waits until events of this kind, such as `session.completed`, were heard so many times."""
        import time

        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = [event for event in list(self.events) if event["type"] == f"aaep:agent.{kind}"]
            if len(found) >= times:
                return found[times - 1]
            time.sleep(0.02)
        raise TimeoutError(f"no {kind} was heard, only {[event['type'] for event in self.events]}")

    def stop(self) -> None:
        """Stops it."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except Exception:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Hub:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
