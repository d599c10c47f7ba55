"""Anthropic SDK: python anthropic_transfer.py accept (or reject)

A scripted server on this machine stands for the model; everything else is the SDK.
"""

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from anthropic import AsyncAnthropic

from aaep import Agent, Consent, Gate, Hub
from aaep.adapters.anthropic import run

CONSENT = {"transfer": Consent("Transfer {amount} euros to {to}.", "It cannot be called back.")}


class Scripted(BaseHTTPRequestHandler):
    """Wants a tool, and another, and then says what it was told."""

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        turn = sum(message["role"] == "assistant" for message in said)
        if turn == 0:
            content = [{"type": "tool_use", "id": "call_0", "name": "balance", "input": {}}]
        elif turn == 1:
            wanted = {"to": "ann", "amount": "500.00"}
            content = [{"type": "tool_use", "id": "call_1", "name": "transfer", "input": wanted}]
        else:
            content = [{"type": "text", "text": "I was told: " + said[-1]["content"][0]["content"]}]
        answer = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": content,
            "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def balance():
    """The balance."""
    return "1200.00"


async def transfer(to, amount):
    """Moves money."""
    print(f"moved {amount} to {to}")
    return "moved"


async def main(hub, model):
    client = AsyncAnthropic(api_key="none", base_url=f"http://127.0.0.1:{model.server_port}")
    async with Agent("anthropic-bank", hub.url).session("Moving money.") as session:
        answer = await run(
            client, Gate(session, CONSENT), {"balance": balance, "transfer": transfer},
            messages=[{"role": "user", "content": "Send Ann 500 euros."}], model="scripted", max_tokens=100,
        )
        print(answer.content[0].text)


model = HTTPServer(("127.0.0.1", 0), Scripted)
threading.Thread(target=model.serve_forever, daemon=True).start()
with Hub(answer=sys.argv[1]) as hub:
    asyncio.run(main(hub, model))
    hub.wait_for("session.completed")
    print([event["type"].removeprefix("aaep:agent.") for event in hub.events])
