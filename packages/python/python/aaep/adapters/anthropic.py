"""Anthropic SDK: the tool loop, with every tool behind the gate."""

from __future__ import annotations

import inspect
import json
from typing import Any, Callable, Mapping

from .. import Gate, NotApproved


async def run(
    client: Any, gate: Gate, tools: Mapping[str, Callable[..., Any]], *, messages: list[Any], **request: Any
) -> Any:
    """Speaks with the model (`AsyncAnthropic`) until it wants no more tools. Each call passes the gate; of
    a no, and of an error, the model is told.

    `tools` are the functions by name; `request` is everything else of `messages.create`, with the
    definitions of the tools in `tools_described`, or made from the functions' signatures. When the user
    stops the session, all of it is given up.
    """
    return await gate.unless_stopped(_loop(client, gate, tools, messages, request))


async def _loop(
    client: Any, gate: Gate, tools: Mapping[str, Callable[..., Any]], messages: list[Any], request: dict[str, Any]
) -> Any:
    described = request.pop("tools_described", None) or [_described(name, one) for name, one in tools.items()]
    messages = list(messages)
    while True:
        answer = await client.messages.create(messages=messages, tools=described, **request)
        wanted = [block for block in answer.content if block.type == "tool_use"]
        if not wanted:
            return answer
        messages.append({"role": "assistant", "content": answer.content})
        messages.append({"role": "user", "content": [await _result(gate, tools, block) for block in wanted]})


async def _result(gate: Gate, tools: Mapping[str, Callable[..., Any]], block: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.id}
    function = tools.get(block.name)
    if function is None:
        return {**result, "content": f"There is no tool {block.name}.", "is_error": True}
    try:
        value = await gate.acall(block.name, dict(block.input), lambda given: function(**given))
    except NotApproved as no:
        text = f"{no} Do not try it again unless the user asks for it."
        return {**result, "content": text, "is_error": True}
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError, RuntimeError) as error:
        return {**result, "content": f"{type(error).__name__}: {error}", "is_error": True}
    return {**result, "content": value if isinstance(value, str) else json.dumps(value)}


def _described(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Every parameter a text, unless the caller describes the tools."""
    parameters = inspect.signature(function).parameters
    needed = [key for key, one in parameters.items() if one.default is inspect.Parameter.empty]
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in parameters}, "required": needed}
    return {"name": name, "description": inspect.getdoc(function) or name, "input_schema": schema}
