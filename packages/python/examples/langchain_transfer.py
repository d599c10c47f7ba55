"""LangChain: python langchain_transfer.py accept (or reject)

A scripted model stands for a real one; everything else is LangChain and LangGraph.
"""

import asyncio
import sys

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from aaep import Agent, Consent, Gate, Hub
from aaep.adapters.langchain import run

CONSENT = {"transfer": Consent("Transfer {amount} euros to {to}.", "It cannot be called back.")}


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


def model():
    call = {"name": "transfer", "args": {"to": "ann", "amount": "500.00"}, "id": "call_1"}
    balance = {"name": "balance", "args": {}, "id": "call_0"}
    said = [AIMessage("", tool_calls=[balance]), AIMessage("", tool_calls=[call]), AIMessage("That is all.")]
    return Scripted(messages=iter(said))


async def main(hub):
    async with Agent("langchain-bank", hub.url).session("Moving money.") as session:
        gate = Gate(session, CONSENT)

        async def balance() -> str:
            """The balance."""
            return "1200.00"

        @tool
        async def transfer(to: str, amount: str) -> str:
            """Moves money."""
            print(f"moved {amount} to {to}")
            return "moved"

        agent = create_agent(
            model(), [tool(gate.wrap(balance)), transfer], checkpointer=InMemorySaver(),
            middleware=[HumanInTheLoopMiddleware(interrupt_on={"transfer": True})],
        )
        given = {"messages": [("user", "Send Ann 500 euros.")]}
        state = await run(agent, given, gate, {"configurable": {"thread_id": "1"}})
        for message in state["messages"]:
            if message.type == "tool" and message.status == "error":
                print("not moved:", message.content)
        print(state["messages"][-1].content)


with Hub(answer=sys.argv[1]) as hub:
    asyncio.run(main(hub))
    hub.wait_for("session.completed")
    print([event["type"].removeprefix("aaep:agent.") for event in hub.events])
