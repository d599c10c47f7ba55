"""Pydantic AI: python pydantic_ai_transfer.py accept (or reject)

A scripted model stands for a real one; everything else is Pydantic AI.
"""

import asyncio
import sys

from pydantic_ai import Agent as Assistant
from pydantic_ai import DeferredToolRequests
from pydantic_ai import Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from aaep import Agent, Consent, Gate, Hub
from aaep.adapters.pydantic_ai import run

CONSENT = {"transfer": Consent("Transfer {amount} euros to {to}.", "It cannot be called back.")}


def scripted(messages, info):
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    if turn == 0:
        return ModelResponse([ToolCallPart("balance", {}, "call_0")])
    if turn == 1:
        return ModelResponse([ToolCallPart("transfer", {"to": "ann", "amount": "500.00"}, "call_1")])
    return ModelResponse([TextPart("That is all.")])


async def main(hub):
    async with Agent("pydantic-bank", hub.url).session("Moving money.") as session:
        gate = Gate(session, CONSENT)

        async def balance() -> str:
            """The balance."""
            return "1200.00"

        async def transfer(to: str, amount: str) -> str:
            """Moves money."""
            print(f"moved {amount} to {to}")
            return "moved"

        tools = [Tool(gate.wrap(balance), takes_ctx=False), Tool(transfer, takes_ctx=False, requires_approval=True)]
        bank = Assistant(FunctionModel(scripted), tools=tools, output_type=[str, DeferredToolRequests])
        result = await run(bank, "Send Ann 500 euros.", gate)
        print(result.output)


with Hub(answer=sys.argv[1]) as hub:
    asyncio.run(main(hub))
    hub.wait_for("session.completed")
    print([event["type"].removeprefix("aaep:agent.") for event in hub.events])
