"""LangChain and LangGraph: interrupts of the human-in-the-loop middleware become questions of consent."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from .. import Gate


async def run(agent: Any, given: Any, gate: Gate, config: dict[str, Any]) -> Any:
    """Runs an agent of `create_agent` to its end. What its `HumanInTheLoopMiddleware` holds back is asked
    through the gate; the tool runs after a yes, and the model is told of a no. The agent needs a
    checkpointer, and `config` a `thread_id`.

    Tools that the middleware does not hold back: hand `gate.wrap(function)` to the framework.
    """
    state = await agent.ainvoke(given, config)
    while interrupts := state.get("__interrupt__"):
        calls = [
            (f"{interrupt.id}/{place}", request["name"], request["args"])
            for interrupt in interrupts
            for place, request in enumerate(interrupt.value["action_requests"])
        ]
        async with gate.held_back(calls) as decisions:
            answers = {
                interrupt.id: {
                    "decisions": [
                        _decision(decisions[f"{interrupt.id}/{place}"])
                        for place in range(len(interrupt.value["action_requests"]))
                    ]
                }
                for interrupt in interrupts
            }
            before = len(state["messages"])
            state = await agent.ainvoke(Command(resume=answers), config)
            _tell(state["messages"][before:], decisions)
    return state


def _decision(decision: Any) -> dict[str, Any]:
    if decision.approved:
        return {"type": "approve"}
    return {"type": "reject", "message": decision.text}


def _tell(messages: list[Any], decisions: dict[str, Any]) -> None:
    """The framework may have taken a tool's exception and told the model."""
    ended = {message.name: message.status for message in messages if isinstance(message, ToolMessage)}
    for decision in decisions.values():
        if decision.approved and decision.call.tool not in ended:
            decision.call.failed(f"{decision.call.tool} was not run.")
        elif decision.approved and ended[decision.call.tool] == "error":
            decision.call.failed()
