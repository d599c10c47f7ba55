"""OpenAI Agents SDK: tools with `needs_approval` become questions of consent."""

from __future__ import annotations

import json
from typing import Any

from agents import Runner, ToolCallOutputItem

from .. import Gate


async def run(agent: Any, given: Any, gate: Gate, **options: Any) -> Any:
    """Runs an agent to its end. What `needs_approval` holds back is asked through the gate; the tool runs
    after a yes, and the model is told of a no. When the user stops the session, the agent is given up.

    Give such tools `failure_error_function=None`: otherwise the SDK takes their errors, and people hear
    that they went well. Tools that are not held back: `function_tool(gate.wrap(function))`.
    """
    result = await gate.unless_stopped(Runner.run(agent, given, **options))
    while result.interruptions:
        state = result.to_state()
        items = {str(place): item for place, item in enumerate(result.interruptions)}
        calls = [(place, item.name, json.loads(item.arguments or "{}")) for place, item in items.items()]
        async with gate.held_back(calls) as decisions:
            for place, item in items.items():
                if decisions[place].approved:
                    state.approve(item)
                else:
                    state.reject(item, rejection_message=decisions[place].text)
            result = await gate.unless_stopped(Runner.run(agent, state, **options))
            ran = {item.call_id for item in result.new_items if isinstance(item, ToolCallOutputItem)}
            for place, item in items.items():
                call = decisions[place].call
                if call is not None and item.call_id not in ran:
                    call.failed(f"{call.tool} was not run.")
    return result
