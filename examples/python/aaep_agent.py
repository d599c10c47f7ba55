"""A short client of the agent API of an AAEP hub. Python 3.11, standard library only.

    agent = Agent(local_hub(), "my-agent")
    with agent.session("Moving $500 to savings.") as session:
        with session.confirmed(
            "transfer_funds", {"amount": "500.00"},
            action="Transfer $500 from checking to savings.",
            consequence="It cannot be easily reversed.",
        ) as call:
            move_money(call.arguments)  # runs only after somebody said yes

A session always ends: when its block ends, well, or with an error if the block raised one. What can
go wrong is told apart: `NotApproved` (somebody said no, or nobody answered), `Refused` (the hub says
which rule would have been broken), `OSError` (the hub cannot be reached), `Stranger` (another user's
program is in its place; nothing was sent).
"""

import http.client
import json
import secrets
import time
import uuid

from aaep_hub import connection


class Refused(Exception):
    """The hub refused; nothing has changed there."""

    def __init__(self, status, problem):
        self.status, self.rule = status, problem.get("rule")
        super().__init__(f"{problem.get('text', 'refused')} (status {status}, rule {self.rule})")


class NotApproved(Exception):
    """There is no approval. `status` is rejected, timed_out, cancelled, ...; `reply` what the answer
    says of itself, such as its decision_rationale."""

    def __init__(self, status, reply=None):
        self.status, self.reply = status, reply or {}
        super().__init__(f"not approved: {status}")


def problem(text):
    """What the hub says about it; nothing, if it was not the hub that answered."""
    try:
        return json.loads(text)
    except ValueError:
        return {}


class Agent:
    """`url` is what `local_hub()` of aaep_hub gives, `unix:` and a path, or https://."""

    def __init__(self, url, agent_id, token=None, patience=30.0, trust_loopback=False):
        self.url, self.trust_loopback = url, trust_loopback
        self.producer, self.token, self.patience = {"agent_id": agent_id}, token, patience
        # Without a token, whoever shows this owns the sessions that were opened with it.
        self.secret = "aaeps_" + secrets.token_urlsafe(32)

    def call(self, method, path, body=None):
        """One call. It is sent again under the same key until there is an answer, or time is up."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        else:
            headers["AAEP-Session-Secret"] = self.secret
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        deadline, pause = time.monotonic() + self.patience, 0.05
        while True:
            hub, base = connection(self.url, self.trust_loopback)
            try:
                hub.request(method, f"{base}/{path}", data, headers)
                answer = hub.getresponse()
                text = answer.read()
                if answer.status < 300:
                    return json.loads(text) if text else {}
                if answer.status not in (408, 502, 503, 504) or time.monotonic() > deadline:
                    raise Refused(answer.status, problem(text))
            except (OSError, http.client.HTTPException):  # no answer, or half of one
                if time.monotonic() > deadline:
                    raise
            finally:
                hub.close()
            time.sleep(pause)
            pause = min(pause * 2, 2.0)

    def session(self, summary, language="en"):
        return Session(self, summary, language)

    def inputs(self):
        """What people say to the agent, one after the other, for ever."""
        while True:
            for said in self.call("GET", "agent/inputs?wait=30")["inputs"]:
                if said.get("kind") == "user_input":
                    yield said["text"]


class Session:
    def __init__(self, agent, summary, language):
        self.agent, self.summary, self.language, self.ended = agent, summary, language, False

    def __enter__(self):
        body = {"producer": self.agent.producer, "summary_normal": self.summary, "language": self.language}
        self.id = self.agent.call("POST", "agent/sessions", body)["session_id"]
        return self

    def __exit__(self, kind, error, _):
        if self.ended:
            return
        try:
            if kind is None:
                self.emit("session.completed", summary_normal="Done.")
            elif kind is NotApproved:
                self.emit("session.completed", summary_normal=f"Nothing was done: {error}.")
            else:
                words = "The agent broke off: there is a fault in its program."
                self.emit("session.errored", error_category="unknown", summary_normal=words)
        except Refused as refused:
            if refused.status != 404:  # 404: somebody stopped it before
                raise

    def emit(self, kind, **payload):
        """Any event, without its envelope: the hub fills that."""
        self.ended = kind in ("session.completed", "session.cancelled", "session.errored")
        body = {"type": f"aaep:agent.{kind}", **payload}
        return self.agent.call("POST", f"agent/sessions/{self.id}/events", body)

    def say(self, text):
        """An answer, at once."""
        output = f"out_{uuid.uuid4().hex}"
        self.emit("output.streaming", chunk=text, position=0, complete=True, output_id=output)

    def tool(self, name, summary, arguments=None):
        """A tool that needs no consent: `with session.tool("search", "Looking.") as call: ...`

        Nobody hears `arguments`; they tell this call from one that waits for consent or was refused."""
        call = f"call_{uuid.uuid4().hex}"
        given = {} if arguments is None else {"arguments": arguments}
        self.emit("tool.invoked", tool=name, tool_call_id=call, summary_normal=summary, **given)
        return Call(self, name, call, arguments)

    def confirmed(self, tool, arguments, action, consequence, risk="high", seconds=300):
        """Asks, waits, and gives the call to run if somebody said yes; otherwise raises."""
        request = {
            "kind": "confirmation", "tool": tool, "arguments": arguments,
            "action": action, "consequence": consequence, "summary_normal": action,
            "risk_level": risk, "irreversible": True,
            "timeout_seconds": seconds, "default_decision": "reject",
        }
        decision = self.decide(request)
        if decision["status"] != "accepted":
            raise NotApproved(decision["status"], decision.get("reply"))
        path = f"agent/requests/{decision['request_id']}/invoke"
        granted = self.agent.call("POST", path, {})
        return Call(self, tool, granted["tool_call_id"], granted["arguments"])

    def ask(self, question, seconds=180):
        """A question with a text for an answer; None if nobody answered."""
        request = {
            "kind": "clarification", "question": question, "summary_normal": question,
            "timeout_seconds": seconds, "accepted_response_kinds": ["freetext"],
        }
        return self.decide(request).get("response")

    def decide(self, request):
        """Asks, and waits until the request has an outcome."""
        asked = self.agent.call("POST", f"agent/sessions/{self.id}/requests", request)
        while asked["status"] == "pending":
            asked = self.agent.call("GET", f"agent/requests/{asked['request_id']}?wait=30")
        return asked


class Call:
    """A tool between its start and its end. Run `arguments`: they are what was confirmed."""

    def __init__(self, session, tool, id, arguments):
        self.session, self.tool, self.id, self.arguments = session, tool, id, arguments
        self.summary = f"{tool} is done."

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        status = "success" if kind is None else "error"
        summary = self.summary if kind is None else f"{self.tool} failed."
        self.session.emit(
            "tool.completed", tool=self.tool, tool_call_id=self.id, status=status, summary_normal=summary
        )
