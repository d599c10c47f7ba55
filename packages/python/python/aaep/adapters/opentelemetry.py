"""OpenTelemetry, both ways: spans of the GenAI conventions are announced, and requests and waits become
spans and metrics."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import contextmanager
from typing import Any, Iterator

from opentelemetry import metrics, trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from .. import Agent, Call, Error, Session
from .. import _calls

OPERATION = "gen_ai.operation.name"


def instrument(
    tracer_provider: trace.TracerProvider | None = None, meter_provider: metrics.MeterProvider | None = None
) -> None:
    """From now on, each request for consent is a span `aaep.confirm TOOL`, and each question a span
    `aaep.ask KIND` (text, yes_no, number, choice), as long as people are waited for, with what became of it in
    `aaep.outcome`; `aaep.requests` counts them, and `aaep.wait.duration` has the seconds. Arguments and words
    are in none of them. Export them as you export the rest."""
    tracer = trace.get_tracer("aaep", tracer_provider=tracer_provider)
    meter = metrics.get_meter("aaep", meter_provider=meter_provider)
    requests = meter.create_counter("aaep.requests", description="Requests for consent and questions, by their outcome.")
    waits = meter.create_histogram("aaep.wait.duration", unit="s", description="How long people were waited for.")

    @contextmanager
    def observe(what: str, name: str) -> Iterator[None]:
        began, outcome = time.perf_counter(), "accepted" if what == "confirm" else "answered"
        about = {"gen_ai.tool.name" if what == "confirm" else "aaep.question.kind": name}
        with tracer.start_as_current_span(
            f"aaep.{what} {name}", kind=SpanKind.CLIENT, attributes=about,
            record_exception=False, set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                outcome = getattr(error, "reason", None) or type(error).__name__
                raise
            finally:
                span.set_attribute("aaep.outcome", outcome)
                known = {**about, "aaep.outcome": outcome}
                requests.add(1, known)
                waits.record(time.perf_counter() - began, known)

    _calls.observe = observe


class Announcer(SpanProcessor):
    """Announces what instrumented frameworks do: a span `invoke_agent` is a session, each `execute_tool` in it
    a tool. It asks for nothing: what has run when a span says so can no longer be asked about.

    Nothing waits for the hub: a thread of its own speaks, and what it cannot keep up with is left out.
    """

    def __init__(self, agent: Agent, *, most_waiting: int = 1000) -> None:
        self._agent = agent
        self._waiting: queue.Queue[Any] = queue.Queue(most_waiting)
        self._sessions: dict[int, tuple[Any, Session, int]] = {}
        self._calls: dict[int, tuple[Any, Call]] = {}
        self._thread = threading.Thread(target=self._speak, daemon=True, name="aaep-announcer")
        self._thread.start()

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        """Of the SDK."""
        known = span.attributes or {}
        if known.get(OPERATION) in ("invoke_agent", "execute_tool"):
            self._put("start", span, dict(known))

    def on_end(self, span: ReadableSpan) -> None:
        """Of the SDK."""
        known = span.attributes or {}
        if known.get(OPERATION) in ("invoke_agent", "execute_tool"):
            self._put("end", span, dict(known))

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Of the SDK: whether everything was said in time."""
        done, until = threading.Event(), time.monotonic() + timeout_millis / 1000
        try:
            self._waiting.put(("flush", done, {}), timeout=timeout_millis / 1000)
        except queue.Full:
            return False
        return done.wait(max(0.0, until - time.monotonic()))

    def shutdown(self, timeout_millis: int = 30_000) -> None:
        """Of the SDK: what cannot be said in time is left out."""
        until = time.monotonic() + timeout_millis / 1000
        try:
            self._waiting.put(("stop", None, {}), timeout=timeout_millis / 1000)
        except queue.Full:
            return
        self._thread.join(max(0.0, until - time.monotonic()))

    def _put(self, what: str, span: Any, known: dict[str, Any]) -> None:
        try:
            self._waiting.put_nowait((what, span, known))
        except queue.Full:
            pass

    def _speak(self) -> None:
        while True:
            what, span, known = self._waiting.get()
            if what == "stop":
                return
            if what == "flush":
                span.set()
                continue
            try:
                (self._begin if what == "start" else self._end)(span, known)
            except Error:
                # The hub is away, or the session over: the work goes on without it.
                continue

    def _begin(self, span: Any, known: dict[str, Any]) -> None:
        context = span.get_span_context()
        if known[OPERATION] == "invoke_agent":
            if context.trace_id not in self._sessions:
                opening = self._agent.session(f"{known.get('gen_ai.agent.name', 'An agent')} is at work.")
                self._sessions[context.trace_id] = (opening, opening.__enter__(), context.span_id)
            return
        found = self._sessions.get(context.trace_id)
        if found is not None:
            using = found[1].tool(str(known.get("gen_ai.tool.name", span.name)))
            self._calls[context.span_id] = (using, using.__enter__())

    def _end(self, span: Any, known: dict[str, Any]) -> None:
        context = span.get_span_context()
        failed = span.status.status_code is StatusCode.ERROR
        if context.span_id in self._calls:
            using, call = self._calls.pop(context.span_id)
            if failed:
                call.failed()
            using.__exit__(None, None, None)
        found = self._sessions.get(context.trace_id)
        if found is not None and found[2] == context.span_id:
            del self._sessions[context.trace_id]
            error = RuntimeError("the agent failed") if failed else None
            found[0].__exit__(None if error is None else RuntimeError, error, None)
