"""LangChain and LangGraph: interrupts of the human-in-the-loop middleware become questions of consent."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command

from .. import Gate


async def run(agent: Any, given: Any, gate: Gate, config: dict[str, Any]) -> Any:
    """Runs an agent of `create_agent`, or a graph, to its end. What its `HumanInTheLoopMiddleware` holds
    back is asked through the gate; the tool runs after a yes, and the model is told of a no. What a graph
    of your own hands to `interrupt` is a question, and is resumed with its answer. The agent needs a
    checkpointer, and `config` a `thread_id`. When the user stops the session, the agent is given up.

    Tools that the middleware does not hold back: hand `gate.wrap(function)` to the framework.
    """
    state = await gate.unless_stopped(agent.ainvoke(given, config))
    while interrupts := state.get("__interrupt__"):
        held = [one for one in interrupts if _is_approval(one.value)]
        answers: dict[str, Any] = {}
        for one in interrupts:
            if one not in held:
                answers[one.id] = await _asked(gate.session, one.value)
        calls = [
            (f"{one.id}/{place}", request["name"], request["args"])
            for one in held for place, request in enumerate(one.value["action_requests"])
        ]
        async with gate.held_back(calls) as decisions:
            for one in held:
                places = range(len(one.value["action_requests"]))
                answers[one.id] = {"decisions": [_decision(decisions[f"{one.id}/{place}"]) for place in places]}
            asked, before = _asked_for(state, held), len(state.get("messages", []))
            state = await gate.unless_stopped(agent.ainvoke(Command(resume=answers), config))
            _tell(state.get("messages", [])[before:], decisions, asked)
    return state


def _is_approval(value: Any) -> bool:
    return isinstance(value, dict) and "action_requests" in value


async def _asked(session: Any, value: Any) -> str:
    """An interrupt of a graph's own is a question."""
    text = value.get("question", value) if isinstance(value, dict) else value
    return str(await session.ask(text if isinstance(text, str) else json.dumps(text)))


def _decision(decision: Any) -> dict[str, Any]:
    if decision.approved:
        return {"type": "approve"}
    return {"type": "reject", "message": decision.text}


def _asked_for(state: dict[str, Any], held: list[Any]) -> dict[str, str]:
    """Which of the model's calls each request is about: requests name the tool and its arguments, in the
    order of the calls. What is held back inside a subgraph stands in none of our messages."""
    said = next((one for one in reversed(state.get("messages", [])) if isinstance(one, AIMessage)), None)
    calls = list(said.tool_calls) if said is not None else []
    found: dict[str, str] = {}
    for one in held:
        for place, request in enumerate(one.value["action_requests"]):
            same = (call for call in calls if (call["name"], call["args"]) == (request["name"], request["args"]))
            call = next(same, None)
            if call is not None and call["id"]:
                calls.remove(call)
                found[f"{one.id}/{place}"] = call["id"]
    return found


def _tell(messages: list[Any], decisions: dict[str, Any], asked: dict[str, str]) -> None:
    """The framework may have taken a tool's exception and told the model."""
    ended = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    for name, decision in decisions.items():
        if not decision.approved:
            continue
        call = decision.call
        if name in asked:
            mine = [ended[asked[name]]] if asked[name] in ended else []
        else:
            mine = [one for one in ended.values() if one.name == call.tool]
        statuses = {one.status for one in mine}
        if len(statuses) > 1:
            call.unknown()
        elif not statuses:
            call.failed(f"{call.tool} was not run.")
        elif statuses == {"error"}:
            call.failed()
