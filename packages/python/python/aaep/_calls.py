"""Calls of tools: what an `with` block, or a decorated function, stands for."""

from __future__ import annotations

import json
import warnings
from contextlib import nullcontext
from types import TracebackType
from typing import Any, Callable, ContextManager

from . import _errors
from ._futures import awaited, waited


class Call:
    """A tool that may run now, and only now.

    `arguments` are what was confirmed: run these. `key` is the idempotency key; hand it to whatever
    the tool calls, if that knows such keys. `by` says who said yes.
    """

    def __init__(self, native: Any, tool: str, arguments: Any) -> None:
        self._native, self.tool = native, tool
        self._summary: str | None = None
        self._failed: str | None = None
        self._unknown = False
        self.id: str = native.id
        self.key: str | None = native.key
        self.by: str | None = native.by
        confirmed = native.arguments
        self.arguments: Any = arguments if confirmed is None else json.loads(confirmed)

    def summary(self, text: str) -> None:
        """What people are told once it is done."""
        self._summary = text

    def failed(self, text: str | None = None) -> None:
        """It failed, where no exception says so: a framework may have taken it."""
        self._failed = text or ""

    def unknown(self) -> None:
        """Nobody can tell how it ended: a framework broke off in the middle of several calls."""
        self._unknown = True

    def _end(self, error: BaseException | None) -> tuple[str, str, bool]:
        """How it ended, what is said of it, and whether that is a sentence of this package."""
        if self._unknown:
            return "timeout", f"{self.tool} was begun; nobody knows how it ended.", True
        if error is None and self._failed is not None:
            return "error", self._failed or f"{self.tool} failed.", not self._failed
        if error is None:
            return "success", self._summary or f"{self.tool} is done.", not self._summary
        if isinstance(error, Exception):
            return "error", f"{self.tool} failed: {type(error).__name__}.", True
        return "timeout", f"{self.tool} was given up; nobody knows how it ended.", True


observe: Callable[[str, str], ContextManager[None]] | None = None
"""What is told of each request, for as long as people are waited for: `confirm` and the tool, or `ask` and
the kind of answer."""


def observed(what: str, name: str) -> ContextManager[None]:
    """A block in which people are waited for."""
    return nullcontext() if observe is None else observe(what, name)


class _Using:
    """Something that begins with `with` or `async with`, and ends with its block."""

    _call: Call

    def __init__(self, begin: Any, tool: str, arguments: Any, asks: bool = False) -> None:
        self._begin, self._tool, self._arguments, self._asks = begin, tool, arguments, asks

    def _observed(self) -> ContextManager[None]:
        return observed("confirm", self._tool) if self._asks else nullcontext()

    def __enter__(self) -> Call:
        with self._observed():
            native = waited(self._begin)
        self._call = Call(native, self._tool, self._arguments)
        return self._call

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _Told(self._tool):
            waited(self._call._native.complete, *self._call._end(error))

    async def __aenter__(self) -> Call:
        with self._observed():
            native = await awaited(self._begin)
        self._call = Call(native, self._tool, self._arguments)
        return self._call

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _Told(self._tool):
            await awaited(self._call._native.complete, *self._call._end(error))


class _Told:
    """What a tool did is done, whether or not the hub could be told: that is no failure of it."""

    def __init__(self, tool: str) -> None:
        self.tool = tool

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, _errors.Unavailable):
            text = f"{self.tool} ran, and the hub could not be told yet. It is told once it is back."
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        # Over: the hub has said how things stood when it ended the session.
        return isinstance(error, (_errors.Unavailable, _errors.SessionOver, _errors.Refused))
