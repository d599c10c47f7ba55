"""Microsoft Agent Framework: python agent_framework_transfer.py accept (or reject)

A scripted model stands for a real one; everything else is the framework.
"""

import asyncio
import sys

from agent_framework import Agent as Assistant
from agent_framework import BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message, tool

from aaep import Agent, Consent, Gate, Hub
from aaep.adapters.agent_framework import run

CONSENT = {"transfer": Consent("Transfer {amount} euros to {to}.", "It cannot be called back.")}


class Scripted(FunctionInvocationLayer, BaseChatClient):
    said = 0

    async def _reply(self):
        self.said += 1
        if self.said == 1:
            contents = [Content.from_function_call("call_0", "balance", arguments={})]
        elif self.said == 2:
            contents = [Content.from_function_call("call_1", "transfer", arguments={"to": "ann", "amount": "500.00"})]
        else:
            contents = [Content.from_text("That is all.")]
        return ChatResponse(messages=[Message("assistant", contents)])

    def _inner_get_response(self, *, messages, stream, options, **_):
        return self._reply()


async def main(hub):
    async with Agent("maf-bank", hub.url).session("Moving money.") as session:
        gate = Gate(session, CONSENT)

        async def balance() -> str:
            """The balance."""
            return "1200.00"

        @tool(approval_mode="always_require")
        async def transfer(to: str, amount: str) -> str:
            """Moves money."""
            print(f"moved {amount} to {to}")
            return "moved"

        bank = Assistant(client=Scripted(), tools=[tool(gate.wrap(balance)), transfer])
        response = await run(bank, "Send Ann 500 euros.", gate)
        print(response.text)


with Hub(answer=sys.argv[1]) as hub:
    asyncio.run(main(hub))
    hub.wait_for("session.completed")
    print([event["type"].removeprefix("aaep:agent.") for event in hub.events])
