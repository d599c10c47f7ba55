"""What goes wrong under each adapter, with the real framework and a scripted model. Run in an environment with
`requirements.txt`:

    AAEP_PROGRAM=/path/to/aaep python frameworks.py
"""

import asyncio
import json
import threading
import time
import unittest
import warnings
from http.server import BaseHTTPRequestHandler, HTTPServer

import aaep
import aaep._calls
from aaep import Agent, Consent, Gate, Hub, Stopped

CONSENT = {"transfer": Consent("Transfer {amount} euros.", "It cannot be called back.", timeout_seconds=20)}
HASTY = {"transfer": Consent("Transfer {amount} euros.", "It cannot be called back.", timeout_seconds=1)}

# A turn of the model is a list of (tool, arguments); after the last it says that this is all.
ONE = [[("transfer", {"amount": "1.00"})]]
TWO = [[("transfer", {"amount": "bad"}), ("transfer", {"amount": "2.00"})]]
THEN = [[("transfer", {"amount": "1.00"})], [("look", {"what": "balance"})]]


def named(turns):
    """The same with an id for each call."""
    place = iter(range(100))
    return [[(f"call_{next(place)}", tool, arguments) for tool, arguments in turn] for turn in turns]


async def langchain(gate, turns, transfer, look):
    from aaep.adapters.langchain import run
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import ToolException, tool
    from langgraph.checkpoint.memory import InMemorySaver

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            return self

    async def moved(amount: str) -> str:
        """Moves money."""
        try:
            return await transfer(amount)
        except ValueError as error:
            raise ToolException(str(error)) from error

    async def looked(what: str) -> str:
        """Looks."""
        return await look(what)

    moving = tool("transfer")(moved)
    moving.handle_tool_error = True
    calls = [[{"id": name, "name": tool, "args": given} for name, tool, given in turn] for turn in named(turns)]
    said = [AIMessage("", tool_calls=turn) for turn in calls] + [AIMessage("That is all.")]
    agent = create_agent(
        Scripted(messages=iter(said)), [moving, tool("look")(looked)], checkpointer=InMemorySaver(),
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"transfer": True})],
    )
    await run(agent, {"messages": [("user", "Do it.")]}, gate, {"configurable": {"thread_id": "1"}})


async def openai_agents(gate, turns, transfer, look):
    from aaep.adapters.openai_agents import run
    from agents import Agent as Assistant
    from agents import Model, ModelResponse, Usage, function_tool, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)
    said = [
        [ResponseFunctionToolCall(name=tool, arguments=json.dumps(given), call_id=name, type="function_call")
         for name, tool, given in turn] for turn in named(turns)
    ]
    text = ResponseOutputText(text="That is all.", type="output_text", annotations=[])
    said.append([ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")])
    said = iter(said)

    class Scripted(Model):
        async def get_response(self, *_, **__):
            return ModelResponse(output=next(said), usage=Usage(), response_id=None)

        def stream_response(self, *_, **__):
            raise NotImplementedError

    async def moved(amount: str) -> str:
        return await transfer(amount)

    async def looked(what: str) -> str:
        return await look(what)

    tools = [
        function_tool(moved, name_override="transfer", needs_approval=True, failure_error_function=None),
        function_tool(looked, name_override="look"),
    ]
    await run(Assistant("bank", model=Scripted(), tools=tools), "Do it.", gate)


async def pydantic_ai(gate, turns, transfer, look):
    from aaep.adapters.pydantic_ai import run
    from pydantic_ai import Agent as Assistant
    from pydantic_ai import DeferredToolRequests, Tool
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    said = named(turns)

    def scripted(messages, info):
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn < len(said):
            return ModelResponse([ToolCallPart(tool, given, name) for name, tool, given in said[turn]])
        return ModelResponse([TextPart("That is all.")])

    async def moved(amount: str) -> str:
        return await transfer(amount)

    async def looked(what: str) -> str:
        return await look(what)

    tools = [
        Tool(moved, name="transfer", takes_ctx=False, requires_approval=True), Tool(looked, name="look", takes_ctx=False),
    ]
    bank = Assistant(FunctionModel(scripted), tools=tools, output_type=[str, DeferredToolRequests])
    await run(bank, "Do it.", gate)


async def agent_framework(gate, turns, transfer, look):
    from aaep.adapters.agent_framework import run
    from agent_framework import Agent as Assistant
    from agent_framework import BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message, tool

    said = [
        [Content.from_function_call(name, tool, arguments=given) for name, tool, given in turn] for turn in named(turns)
    ]
    said = iter([*said, [Content.from_text("That is all.")]])

    class Scripted(FunctionInvocationLayer, BaseChatClient):
        async def _reply(self):
            return ChatResponse(messages=[Message("assistant", next(said))])

        def _inner_get_response(self, *, messages, stream, options, **_):
            return self._reply()

    @tool(name="transfer", approval_mode="always_require")
    async def moved(amount: str) -> str:
        """Moves money."""
        return await transfer(amount)

    @tool(name="look")
    async def looked(what: str) -> str:
        """Looks."""
        return await look(what)

    await run(Assistant(client=Scripted(), tools=[moved, looked]), "Do it.", gate)


async def anthropic(gate, turns, transfer, look):
    from aaep.adapters.anthropic import run
    from anthropic import AsyncAnthropic

    said = [
        [{"type": "tool_use", "id": name, "name": tool, "input": given} for name, tool, given in turn]
        for turn in named(turns)
    ]
    said = iter([*said, [{"type": "text", "text": "That is all."}]])

    class Scripted(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": next(said),
                "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
            }).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    model = HTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    client = AsyncAnthropic(api_key="none", base_url=f"http://127.0.0.1:{model.server_port}")
    try:
        await run(
            client, gate, {"transfer": transfer, "look": look},
            messages=[{"role": "user", "content": "Do it."}], model="scripted", max_tokens=100,
        )
    finally:
        model.shutdown()
        model.server_close()


async def ag_ui(gate, turns, transfer, look):
    from ag_ui.core import (
        Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome, RunStartedEvent, ToolCallChunkEvent,
        ToolCallResultEvent,
    )
    from aaep.adapters.ag_ui import run

    # What its user approves runs first in the next run.
    waits, said = [], named(turns)

    async def bank(given):
        yield RunStartedEvent(thread_id=given.thread_id, run_id=given.run_id)
        for entry, (name, given_arguments) in zip(given.resume or [], waits):
            if entry.status == "resolved":
                yield ToolCallResultEvent(message_id=name, tool_call_id=name, content=await transfer(**given_arguments))
        waits.clear()
        while said and not waits:
            for name, tool, arguments in said.pop(0):
                yield ToolCallChunkEvent(tool_call_id=name, tool_call_name=tool, delta=json.dumps(arguments))
                if tool == "transfer":
                    waits.append((name, arguments))
                else:
                    yield ToolCallResultEvent(message_id=name, tool_call_id=name, content=await look(**arguments))
        outcome = None
        if waits:
            interrupts = [Interrupt(id=f"int_{name}", reason="tool_approval", tool_call_id=name) for name, _ in waits]
            outcome = RunFinishedInterruptOutcome(type="interrupt", interrupts=interrupts)
        yield RunFinishedEvent(thread_id=given.thread_id, run_id=given.run_id, outcome=outcome)

    given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[], tools=[], context=[], forwarded_props={})
    await run(bank, given, gate)


FRAMEWORKS = [ag_ui, agent_framework, anthropic, langchain, openai_agents, pydantic_ai]


class Case:
    """One run of an agent under a framework, and what became of it."""

    def __init__(self, framework, turns, answer="accept", consent=CONSENT, stops=False):
        self.ran, self.error, self.stops = [], None, stops
        with Hub(answer=answer) as hub, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            if answer is None:  # somebody listens, and says nothing
                hub._reply = lambda event: None
                hub._listen()
            try:
                asyncio.run(self.drive(hub, framework, turns, consent))
            except Exception as error:
                self.error = error
            kinds = ["session.completed", "session.errored", "session.cancelled"]
            for _ in range(1000):
                if any(event["type"].removeprefix("aaep:agent.") in kinds for event in hub.events):
                    break
                threading.Event().wait(0.02)
            self.events = list(hub.events)

    async def drive(self, hub, framework, turns, consent):
        async with Agent("bank", hub.url).session("Moving money.") as session:

            async def transfer(amount):
                self.ran.append(amount)
                if self.stops:
                    hub.stop_agent(session.id)
                    # It has come through here, and is no reason to wait for the agent.
                    while not session.stopped:
                        await asyncio.sleep(0.02)
                    await asyncio.sleep(0.3)
                if amount == "bad":
                    raise ValueError("the account is closed")
                return "moved"

            async def look(what):
                self.ran.append(what)
                return "1200.00"

            await framework(Gate(session, consent), turns, transfer, look)

    def of_kind(self, kind):
        return [event for event in self.events if event["type"] == f"aaep:agent.{kind}"]

    def statuses(self):
        """How the calls ended, in the order in which they were announced."""
        ended = {event["tool_call_id"]: event["status"] for event in self.of_kind("tool.completed")}
        return [ended[event["tool_call_id"]] for event in self.of_kind("tool.invoked")]


class Frameworks(unittest.TestCase):
    def test_after_a_stop_by_the_user_no_other_tool_runs(self):
        for framework in FRAMEWORKS:
            with self.subTest(framework.__name__):
                case = Case(framework, THEN, stops=True)
                self.assertIsInstance(case.error, Stopped, case.error)
                self.assertEqual(case.ran, ["1.00"])
                self.assertEqual(case.of_kind("session.cancelled")[0]["cancelled_by"], "user")

    def test_of_two_calls_each_is_told_as_it_ended(self):
        # Two frameworks hand an error of a tool on, and nobody can tell which of the calls were done.
        unknown = {"openai_agents", "pydantic_ai"}
        for framework in FRAMEWORKS:
            if framework is ag_ui:
                continue  # its agent runs its own tools, and says nothing of how they ended
            with self.subTest(framework.__name__):
                case = Case(framework, TWO)
                wanted = ["timeout", "timeout"] if framework.__name__ in unknown else ["error", "success"]
                self.assertEqual((case.statuses(), sorted(case.ran)), (wanted, ["2.00", "bad"]))
                self.assertEqual(case.error is not None, framework.__name__ in unknown, case.error)

    def test_a_tool_that_fails_is_told_as_failed(self):
        for framework in FRAMEWORKS:
            with self.subTest(framework.__name__):
                self.assertEqual(Case(framework, [TWO[0][:1]]).statuses(), ["error"])

    def test_where_nobody_answers_in_time_nothing_runs(self):
        for framework in FRAMEWORKS:
            with self.subTest(framework.__name__):
                case = Case(framework, ONE, answer=None, consent=HASTY)
                self.assertEqual((case.ran, case.error, case.of_kind("tool.invoked")), ([], None, []))
                self.assertEqual(len(case.of_kind("awaiting.confirmation")), 1)
                self.assertEqual(len(case.of_kind("session.completed")), 1)


class Chunks(unittest.TestCase):
    """An agent of AG-UI that speaks in chunks, or breaks its protocol."""

    def heard(self, events):
        from ag_ui.core import RunAgentInput, RunFinishedEvent, RunStartedEvent
        from aaep.adapters.ag_ui import run

        async def agent(given):
            yield RunStartedEvent(thread_id="t", run_id="r")
            for event in events:
                yield event
            yield RunFinishedEvent(thread_id="t", run_id="r")

        async def main(hub):
            given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[], tools=[], context=[], forwarded_props={})
            async with Agent("chunky", hub.url).session("Speaking.") as session:
                await run(agent, given, Gate(session))

        with Hub(answer="accept") as hub:
            asyncio.run(main(hub))
            hub.wait_for("session.completed")
            return list(hub.events)

    def test_an_agent_that_speaks_in_chunks_is_heard(self):
        from ag_ui.core import TextMessageChunkEvent, ToolCallChunkEvent, ToolCallResultEvent

        events = self.heard([
            TextMessageChunkEvent(message_id="m_0", role="assistant", delta="The rent "),
            TextMessageChunkEvent(delta="is paid."),
            ToolCallChunkEvent(tool_call_id="c_0", tool_call_name="look", delta='{"for": '),
            ToolCallChunkEvent(delta='"shoes"}'),
            ToolCallChunkEvent(tool_call_id="c_1", tool_call_name="weigh", delta=""),
            ToolCallResultEvent(message_id="r_0", tool_call_id="c_0", content="found"),
            ToolCallResultEvent(message_id="r_1", tool_call_id="c_1", content="light"),
            TextMessageChunkEvent(message_id="m_1", delta="That is all."),
        ])
        texts = {}
        for event in events:
            if "chunk" in event:
                texts[event["output_id"]] = texts.get(event["output_id"], "") + event["chunk"]
        self.assertEqual(sorted(texts.values()), ["That is all.", "The rent is paid."])
        tools = [event["tool"] for event in events if event["type"].endswith("tool.invoked")]
        self.assertEqual(tools, ["look", "weigh"])
        ended = [event["status"] for event in events if event["type"].endswith("tool.completed")]
        self.assertEqual(ended, ["success", "success"])

    def test_what_breaks_its_protocol_is_said(self):
        from ag_ui.core import (
            TextMessageChunkEvent, TextMessageContentEvent, ToolCallArgsEvent, ToolCallChunkEvent, ToolCallEndEvent,
        )

        begun = ToolCallChunkEvent(tool_call_id="c", tool_call_name="look", delta="{never")
        for events, said in [
            ([TextMessageContentEvent(message_id="m", delta="x")], "sent TEXT_MESSAGE_CONTENT for m, which it had not started"),
            ([ToolCallArgsEvent(tool_call_id="c", delta="{}")], "sent TOOL_CALL_ARGS for c, which it had not started"),
            ([TextMessageChunkEvent(delta="x")], "began with a TEXT_MESSAGE_CHUNK that has no message_id"),
            ([begun, ToolCallEndEvent(tool_call_id="c")], "called look with arguments that are no JSON"),
            ([begun.model_copy(update={"delta": "[1]"})], "called look with arguments that are no JSON object"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(RuntimeError, said):
                self.heard(events)


class Telemetry(unittest.TestCase):
    def test_every_question_is_a_span_and_is_counted(self):
        from aaep.adapters.opentelemetry import instrument
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        spans, reader, traces = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
        traces.add_span_processor(SimpleSpanProcessor(spans))
        instrument(traces, MeterProvider([reader]))
        self.addCleanup(setattr, aaep._calls, "observe", None)
        for response, ask in [
            ("May", lambda session: session.ask("For which month?")),
            (True, lambda session: session.ask_yes_no("Really?")),
            (2.5, lambda session: session.ask_number("How many?")),
            ("2", lambda session: session.choose("Which?", ["red", "blue"])),
            (None, lambda session: session.ask("Anybody?", timeout_seconds=1)),
        ]:
            with Hub(answer="accept", response=response) as hub:
                try:
                    with Agent("bank", hub.url).session("Asking.") as session:
                        ask(session)
                except aaep.Unanswered:
                    self.assertIsNone(response)

        async def asked(hub):
            async with Agent("bank", hub.url).session("Asking.") as session:
                await session.ask_yes_no("Really?")

        with Hub(answer="accept", response=False) as hub:
            asyncio.run(asked(hub))
        told = [(span.name, span.attributes["aaep.outcome"]) for span in spans.get_finished_spans()]
        self.assertEqual(told, [
            ("aaep.ask text", "answered"), ("aaep.ask yes_no", "answered"), ("aaep.ask number", "answered"),
            ("aaep.ask choice", "answered"), ("aaep.ask text", "timed_out"), ("aaep.ask yes_no", "answered"),
        ])
        metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
        counted = next(one for one in metrics if one.name == "aaep.requests")
        self.assertEqual(sum(point.value for point in counted.data.data_points), 6)

    def test_an_announcer_that_cannot_keep_up_holds_nobody_up(self):
        from aaep.adapters.opentelemetry import Announcer
        from opentelemetry.sdk.trace import TracerProvider

        # Nobody listens there, and it is tried for longer than anybody waits here.
        announcer, traces = Announcer(Agent("announcer", "http://127.0.0.1:9", patience=8), most_waiting=1), TracerProvider()
        traces.add_span_processor(announcer)
        tracer = traces.get_tracer("framework")
        began = time.monotonic()
        for _ in range(3):
            with tracer.start_as_current_span("invoke_agent bank", attributes={"gen_ai.operation.name": "invoke_agent"}):
                pass
        self.assertFalse(announcer.force_flush(300))
        announcer.shutdown(300)
        self.assertLess(time.monotonic() - began, 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
