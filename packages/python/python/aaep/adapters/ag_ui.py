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
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
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
    this side could hold it back.
    """
    speaker = _Speaker(gate, set())
    finished = await speaker.listen(agent(given))
    while interrupts := getattr(finished.outcome, "interrupts", []):
        calls = [(one.id, *speaker.interrupted(one)) for one in interrupts]
        async with gate.held_back(calls) as decisions:
            resume = [_resumed(one.id, decisions[one.id].approved) for one in interrupts]
            given = given.model_copy(update={"resume": resume})
            speaker = _Speaker(gate, {one.tool_call_id for one in interrupts})
            finished = await speaker.listen(agent(given))
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
        arguments = json.loads(text) if text else {"message": interrupt.message or interrupt.reason}
        return name, arguments

    async def listen(self, events: AsyncIterator[BaseEvent]) -> RunFinishedEvent:
        try:
            async for event in events:
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
                await self.outputs[event.message_id].write(event.delta)
            case EventType.TEXT_MESSAGE_END:
                await self.outputs.pop(event.message_id).__aexit__()
            case EventType.TOOL_CALL_START:
                self.calls[event.tool_call_id] = (event.tool_call_name, "")
            case EventType.TOOL_CALL_ARGS:
                name, text = self.calls[event.tool_call_id]
                self.calls[event.tool_call_id] = (name, text + event.delta)
            case EventType.TOOL_CALL_END:
                name, text = self.calls[event.tool_call_id]
                # What is to be asked about waits for the agent's interrupt.
                if name not in self.gate.consent and event.tool_call_id not in self.known:
                    using = session.tool(name, arguments=json.loads(text or "{}"))
                    self.running[event.tool_call_id] = (using, await using.__aenter__())
            case EventType.TOOL_CALL_RESULT if event.tool_call_id in self.running:
                using, _ = self.running.pop(event.tool_call_id)
                await using.__aexit__(None, None, None)
