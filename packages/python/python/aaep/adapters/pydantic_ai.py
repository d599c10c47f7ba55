"""Pydantic AI: deferred tools become questions of consent."""

from __future__ import annotations

from typing import Any

from pydantic_ai import DeferredToolRequests, ToolDenied
from pydantic_ai.messages import ToolReturnPart

from .. import Gate


async def run(agent: Any, prompt: Any, gate: Gate, **options: Any) -> Any:
    """Runs an agent to its end. Tools with `requires_approval=True` are asked through the gate; they run
    after a yes, and the model is told of a no. When the user stops the session, the agent is given up. The
    agent's `output_type` has to list `DeferredToolRequests`.

    Other tools: `Tool(gate.wrap(function))`.
    """
    result = await gate.unless_stopped(agent.run(prompt, **options))
    while isinstance(result.output, DeferredToolRequests):
        requests = result.output
        if requests.calls:
            raise ValueError("This adapter runs no external calls; answer them before.")
        calls = [(call.tool_call_id, call.tool_name, call.args_as_dict()) for call in requests.approvals]
        async with gate.held_back(calls) as decisions:
            approvals = {
                name: True if decision.approved else ToolDenied(decision.text)
                for name, decision in decisions.items()
            }
            result = await gate.unless_stopped(agent.run(
                message_history=result.all_messages(),
                deferred_tool_results=requests.build_results(approvals=approvals),
                **options,
            ))
            ran = {
                part.tool_call_id: part.outcome
                for message in result.new_messages() for part in message.parts
                if isinstance(part, ToolReturnPart)
            }
            for name, decision in decisions.items():
                if decision.call is not None and ran.get(name) != "success":
                    decision.call.failed()
    return result
