"""AG-UI: python ag_ui_transfer.py accept (or reject)

A scripted agent of AG-UI speaks to a hub, and what the hub tells becomes events of AG-UI again.
"""

import asyncio
import sys

from ag_ui.core import (
    Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome, RunStartedEvent,
    TextMessageContentEvent, TextMessageEndEvent, TextMessageStartEvent, ToolCallArgsEvent, ToolCallEndEvent,
    ToolCallResultEvent, ToolCallStartEvent,
)

from aaep import Agent, Consent, Gate, Hub
from aaep.adapters.ag_ui import run, to_ag_ui

CONSENT = {"transfer": Consent("Transfer {amount} euros to {to}.", "It cannot be called back.")}


async def bank(given):
    yield RunStartedEvent(thread_id=given.thread_id, run_id=given.run_id)
    if not given.resume:
        yield ToolCallStartEvent(tool_call_id="call_0", tool_call_name="balance")
        yield ToolCallEndEvent(tool_call_id="call_0")
        yield ToolCallResultEvent(message_id="m_0", tool_call_id="call_0", content="1200.00")
        yield ToolCallStartEvent(tool_call_id="call_1", tool_call_name="transfer")
        yield ToolCallArgsEvent(tool_call_id="call_1", delta='{"to": "ann", "amount": "500.00"}')
        yield ToolCallEndEvent(tool_call_id="call_1")
        waits = Interrupt(id="int_1", reason="tool_approval", tool_call_id="call_1")
        outcome = RunFinishedInterruptOutcome(type="interrupt", interrupts=[waits])
        yield RunFinishedEvent(thread_id=given.thread_id, run_id=given.run_id, outcome=outcome)
        return
    if given.resume[0].status == "resolved" and given.resume[0].payload == {"approved": True}:
        print("moved 500.00 to ann")
    yield TextMessageStartEvent(message_id="m_1", role="assistant")
    yield TextMessageContentEvent(message_id="m_1", delta="That is all.")
    yield TextMessageEndEvent(message_id="m_1")
    yield RunFinishedEvent(thread_id=given.thread_id, run_id=given.run_id)


async def main(hub):
    async with Agent("ag-ui-bank", hub.url).session("Moving money.") as session:
        given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[], tools=[], context=[], forwarded_props={})
        await run(bank, given, Gate(session, CONSENT))


with Hub(answer=sys.argv[1]) as hub:
    asyncio.run(main(hub))
    hub.wait_for("session.completed")
    print([event["type"].removeprefix("aaep:agent.") for event in hub.events])
    print([one.type.value for event in hub.events for one in to_ag_ui(event)])
