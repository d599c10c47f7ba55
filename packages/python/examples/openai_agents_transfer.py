"""OpenAI Agents SDK: python openai_agents_transfer.py accept (or reject)

A scripted model stands for a real one; everything else is the SDK.
"""

import asyncio
import sys

from agents import Agent as Assistant
from agents import Model, ModelResponse, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from aaep import Agent, Consent, Gate, Hub
from aaep.adapters.openai_agents import run

CONSENT = {"transfer": Consent("Transfer {amount} euros to {to}.", "It cannot be called back.")}


class Scripted(Model):
    def __init__(self):
        call = ResponseFunctionToolCall(
            name="transfer", arguments='{"to": "ann", "amount": "500.00"}', call_id="call_1", type="function_call"
        )
        look = ResponseFunctionToolCall(name="balance", arguments="{}", call_id="call_0", type="function_call")
        text = ResponseOutputText(text="That is all.", type="output_text", annotations=[])
        end = ResponseOutputMessage(id="msg_1", content=[text], role="assistant", status="completed", type="message")
        self.said = iter([[look], [call], [end]])

    async def get_response(self, *_, **__):
        return ModelResponse(output=next(self.said), usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


async def main(hub):
    async with Agent("openai-bank", hub.url).session("Moving money.") as session:
        gate = Gate(session, CONSENT)

        async def balance() -> str:
            """The balance."""
            return "1200.00"

        @function_tool(needs_approval=True, failure_error_function=None)
        async def transfer(to: str, amount: str) -> str:
            """Moves money."""
            print(f"moved {amount} to {to}")
            return "moved"

        bank = Assistant("bank", model=Scripted(), tools=[function_tool(gate.wrap(balance)), transfer])
        result = await run(bank, "Send Ann 500 euros.", gate)
        print(result.final_output)


set_tracing_disabled(True)
with Hub(answer=sys.argv[1]) as hub:
    asyncio.run(main(hub))
    hub.wait_for("session.completed")
    print([event["type"].removeprefix("aaep:agent.") for event in hub.events])
