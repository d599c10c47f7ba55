"""Microsoft Agent Framework: function approvals become questions of consent."""

from __future__ import annotations

from typing import Any

from agent_framework import Message

from .. import Gate


async def run(agent: Any, given: Any, gate: Gate, **options: Any) -> Any:
    """Runs an agent to its end. Functions with `approval_mode="always_require"` are asked through the gate;
    they run after a yes, and the model is told of a no. When the user stops the session, the agent is given up.

    Other tools: `tool(gate.wrap(function))`.
    """
    # The framework takes approvals only in a session that holds the request.
    session = options.pop("session", None) or agent.create_session()
    response = await gate.unless_stopped(agent.run(given, session=session, **options))
    while requests := [one for one in response.user_input_requests if one.type == "function_approval_request"]:
        calls = [(one.id, one.function_call.name, one.function_call.parse_arguments() or {}) for one in requests]
        async with gate.held_back(calls) as decisions:
            answers = [one.to_function_approval_response(decisions[one.id].approved) for one in requests]
            response = await gate.unless_stopped(agent.run(Message("user", answers), session=session, **options))
            _tell(response, requests, decisions)
    return response


def _tell(response: Any, requests: list[Any], decisions: dict[str, Any]) -> None:
    """The framework takes a function's exception and tells the model."""
    results = {
        content.call_id: content
        for message in response.messages
        for content in message.contents
        if content.type == "function_result"
    }
    for one in requests:
        result, decision = results.get(one.function_call.call_id), decisions[one.id]
        if not decision.approved:
            continue
        if result is None:
            decision.call.failed(f"{decision.call.tool} was not run.")
        elif result.exception is not None:
            decision.call.failed()
