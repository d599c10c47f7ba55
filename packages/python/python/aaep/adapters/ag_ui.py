"""AG-UI 1.0, both ways: an AG-UI frontend sees what a hub tells, and an AG-UI agent speaks to a hub."""

from __future__ import annotations

import json
from typing import Any, AsyncIterator, Callable

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    EventType,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from .. import AsyncOutput, Call, Gate


def to_ag_ui(event: dict[str, Any]) -> list[BaseEvent]:
    """What an AG-UI frontend sees of an event of ours. A session is a run.

    What AG-UI has no event for is a CUSTOM event `aaep.` and the type, with our event as its value:
    requests among them. Whoever shows one answers it at the hub, as a subscriber with its own right to
    answer; a frontend that must not answer is to be given events without `reply_token`.
    """
    kind = str(event["type"]).removeprefix("aaep:agent.")
    session = event["session_id"]
    match kind:
        case "session.started":
            return [RunStartedEvent(thread_id=session, run_id=session)]
        case "session.completed":
            return [RunFinishedEvent(thread_id=session, run_id=session)]
        case "session.errored" | "session.cancelled":
            return [RunErrorEvent(message=event.get("summary_normal") or kind, code=kind)]
        case "tool.invoked":
            call = event["tool_call_id"]
            start = ToolCallStartEvent(tool_call_id=call, tool_call_name=event["tool"])
            return [start, ToolCallEndEvent(tool_call_id=call)]
        case "tool.completed":
            call, said = event["tool_call_id"], event.get("summary_normal") or event["status"]
            return [ToolCallResultEvent(message_id=event["event_id"], tool_call_id=call, content=said)]
        case "output.streaming":
            return list(_text(event))
        case _:
            return [CustomEvent(name=f"aaep.{kind}", value=event)]


def _text(event: dict[str, Any]) -> Any:
    message = event.get("output_id") or event["session_id"]
    if event["position"] == 0:
        yield TextMessageStartEvent(message_id=message, role="assistant")
    if event["chunk"]:
        yield TextMessageContentEvent(message_id=message, delta=event["chunk"])
    if event["complete"]:
        yield TextMessageEndEvent(message_id=message)


async def run(
    agent: Callable[[RunAgentInput], AsyncIterator[BaseEvent]], given: RunAgentInput, gate: Gate
) -> RunFinishedEvent:
    """Lets an AG-UI agent speak to the gate's session, to the end of its run. Its text is heard, its tools
    are announced, and what it interrupts itself for is asked: it is resumed with `{"approved": true}`, or
    cancelled after a no. What the agent runs without interrupting itself is only announced: nothing on
    this side could hold it back. When the user stops the session, the run is given up.
    """
    speaker = _Speaker(gate, set())
    finished = await gate.unless_stopped(speaker.listen(agent(given)))
    while interrupts := getattr(finished.outcome, "interrupts", []):
        calls = [(one.id, *speaker.interrupted(one)) for one in interrupts]
        async with gate.held_back(calls) as decisions:
            resume = [_resumed(one.id, decisions[one.id].approved) for one in interrupts]
            given = given.model_copy(update={"resume": resume})
            speaker = _Speaker(gate, {one.tool_call_id for one in interrupts})
            finished = await gate.unless_stopped(speaker.listen(agent(given)))
    return finished


def _resumed(interrupt: str, approved: bool) -> ResumeEntry:
    if approved:
        return ResumeEntry(interrupt_id=interrupt, status="resolved", payload={"approved": True})
    return ResumeEntry(interrupt_id=interrupt, status="cancelled")


class _Speaker:
    """One run of an agent, as it is heard."""

    def __init__(self, gate: Gate, known: set[str | None]) -> None:
        self.gate, self.known = gate, known
        self.calls: dict[str, tuple[str, str]] = {}
        self.running: dict[str, tuple[Any, Call]] = {}
        self.outputs: dict[str, AsyncOutput] = {}

    def interrupted(self, interrupt: Any) -> tuple[str, dict[str, Any]]:
        """The tool that waits, and with what; of an interrupt without a tool, what it says."""
        name, text = self.calls.get(interrupt.tool_call_id or "", (interrupt.reason, ""))
        return name, _arguments(name, text) or {"message": interrupt.message or interrupt.reason}

    async def listen(self, events: AsyncIterator[BaseEvent]) -> RunFinishedEvent:
        try:
            async for event in _whole(events):
                if isinstance(event, RunFinishedEvent):
                    return event
                if isinstance(event, RunErrorEvent):
                    raise RuntimeError(event.message)
                await self.hear(event)
            raise RuntimeError("The agent ended its stream in the middle of a run.")
        finally:
            for output in self.outputs.values():
                await output.__aexit__()
            for using, call in self.running.values():
                call.failed(f"{call.tool} gave no result.")
                await using.__aexit__(None, None, None)

    async def hear(self, event: Any) -> None:
        session: Any = self.gate.session
        match event.type:
            case EventType.TEXT_MESSAGE_START:
                self.outputs[event.message_id] = session.output()
            case EventType.TEXT_MESSAGE_CONTENT:
                await _begun(self.outputs, event.message_id, event).write(event.delta)
            case EventType.TEXT_MESSAGE_END:
                output = _begun(self.outputs, event.message_id, event)
                del self.outputs[event.message_id]
                await output.__aexit__()
            case EventType.TOOL_CALL_START:
                self.calls[event.tool_call_id] = (event.tool_call_name, "")
            case EventType.TOOL_CALL_ARGS:
                name, text = _begun(self.calls, event.tool_call_id, event)
                self.calls[event.tool_call_id] = (name, text + event.delta)
            case EventType.TOOL_CALL_END:
                name, text = _begun(self.calls, event.tool_call_id, event)
                # What is to be asked about waits for the agent's interrupt.
                if name not in self.gate.consent and event.tool_call_id not in self.known:
                    using = session.tool(name, arguments=_arguments(name, text))
                    self.running[event.tool_call_id] = (using, await using.__aenter__())
            case EventType.TOOL_CALL_RESULT if event.tool_call_id in self.running:
                using, _ = self.running.pop(event.tool_call_id)
                await using.__aexit__(None, None, None)


def _begun(known: dict[str, Any], name: str, event: BaseEvent) -> Any:
    if name not in known:
        raise RuntimeError(f"The AG-UI agent sent {event.type.value} for {name}, which it had not started.")
    return known[name]


def _arguments(tool: str, text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text or "{}")
    except ValueError as why:
        raise RuntimeError(f"The AG-UI agent called {tool} with arguments that are no JSON: {why}.") from why
    if not isinstance(arguments, dict):
        raise RuntimeError(f"The AG-UI agent called {tool} with arguments that are no JSON object.")
    return arguments


async def _whole(events: AsyncIterator[BaseEvent]) -> AsyncIterator[BaseEvent]:
    """The same run without chunks: each stands for a start, a piece and an end. A chunk goes on with the one
    before it; anything else ends what chunks had begun."""
    message = call = None
    async for event in events:
        text = event if isinstance(event, TextMessageChunkEvent) else None
        tool = event if isinstance(event, ToolCallChunkEvent) else None
        if message is not None and (text is None or text.message_id not in (None, message)):
            yield TextMessageEndEvent(message_id=message)
            message = None
        if call is not None and (tool is None or tool.tool_call_id not in (None, call)):
            yield ToolCallEndEvent(tool_call_id=call)
            call = None
        if text is not None:
            if message is None:
                message = _named(text.message_id, text, "message_id")
                yield TextMessageStartEvent(message_id=message, role="assistant")
            if text.delta:
                yield TextMessageContentEvent(message_id=message, delta=text.delta)
        elif tool is not None:
            if call is None:
                call, name = _named(tool.tool_call_id, tool, "tool_call_id"), _named(tool.tool_call_name, tool, "tool_call_name")
                yield ToolCallStartEvent(tool_call_id=call, tool_call_name=name)
            if tool.delta:
                yield ToolCallArgsEvent(tool_call_id=call, delta=tool.delta)
        else:
            yield event


def _named(value: str | None, event: BaseEvent, member: str) -> str:
    if not value:
        raise RuntimeError(f"The AG-UI agent began with a {event.type.value} that has no {member}.")
    return value
