"""The gate: what a tool of any framework passes before it runs."""

from __future__ import annotations

import asyncio
import functools
import inspect
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, AsyncIterator, Awaitable, Callable, Iterable, Literal, Mapping, TypeVar

from ._calls import Call, _Using
from ._errors import NotApproved, Refused
from ._session import AsyncSession, Session

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

GIVING_UP_SECONDS = 5
"""How long work that is given up is waited for."""


@dataclass(frozen=True)
class Consent:
    """What is asked before a tool runs. `{name}` in a text stands for an argument."""

    action: str
    consequence: str
    undo: Literal["never", "with_effort", "easily"] = "never"
    risk: Literal["low", "medium", "high"] | None = None
    timeout_seconds: int | None = None


@dataclass(frozen=True)
class Decision:
    """What became of a call that a framework holds back: `call` is there if somebody said yes."""

    call: Call | None
    why_not: NotApproved | None = None

    @property
    def approved(self) -> bool:
        """Whether it may run."""
        return self.call is not None

    @property
    def text(self) -> str:
        """Why it does not run, for the model."""
        return "" if self.why_not is None else f"{self.why_not} Do not try it again unless the user asks for it."


class Gate:
    """Every tool of an agent passes here. What `consent` names is asked, everything else is announced with
    its arguments; where the policy of the user's hub wants consent all the same, it is asked then. What
    runs is what was confirmed.

    >>> from aaep import Agent, Consent, Gate, Hub
    >>> with Hub(answer="accept") as hub, Agent("shop", hub.url).session("Buying shoes.") as session:
    ...     gate = Gate(session, {"pay": Consent("Pay {amount} euros.", "The money is gone.")})
    ...     gate.call("look", {"for": "shoes"}, lambda given: f"found {given['for']}")
    ...     @gate.wrap
    ...     def pay(amount):
    ...         return f"paid {amount}"
    ...     pay("80.00")
    'found shoes'
    'paid 80.00'
    """

    def __init__(
        self, session: Session | AsyncSession, consent: Mapping[str, Consent] | None = None
    ) -> None:
        self.session, self.consent = session, dict(consent or {})

    def call(self, tool: str, arguments: dict[str, Any], run: Callable[[dict[str, Any]], Any]) -> Any:
        """Runs a tool, in a session of `with`."""
        begun = False
        try:
            with self._passage(tool, arguments) as call:
                begun = True
                return run(call.arguments)
        except Refused as refused:
            if begun or not _wants_consent(refused, tool, self.consent):
                raise
        with self._asked(tool, arguments) as call:
            return run(call.arguments)

    async def acall(self, tool: str, arguments: dict[str, Any], run: Callable[[dict[str, Any]], Any]) -> Any:
        """Runs a tool, in a session of `async with`; `run` may be a coroutine function."""
        begun = False
        try:
            async with self._passage(tool, arguments) as call:
                begun = True
                return await _result(run(call.arguments))
        except Refused as refused:
            if begun or not _wants_consent(refused, tool, self.consent):
                raise
        async with self._asked(tool, arguments) as call:
            return await _result(run(call.arguments))

    def wrap(self, function: F, name: str | None = None) -> F:
        """The same function, behind the gate: hand it to any framework as a tool."""
        tool, signature = name or function.__name__, inspect.signature(function)

        def bound(args: Any, named: Any) -> dict[str, Any]:
            given = signature.bind(*args, **named)
            given.apply_defaults()
            return dict(given.arguments)

        if isinstance(self.session, AsyncSession):

            @functools.wraps(function)
            async def arun(*args: Any, **named: Any) -> Any:
                return await self.acall(tool, bound(args, named), lambda given: function(**given))

            return arun  # type: ignore[return-value]

        @functools.wraps(function)
        def run(*args: Any, **named: Any) -> Any:
            return self.call(tool, bound(args, named), lambda given: function(**given))

        return run  # type: ignore[return-value]

    @asynccontextmanager
    async def held_back(
        self, calls: Iterable[tuple[str, str, dict[str, Any]]]
    ) -> AsyncIterator[dict[str, Decision]]:
        """Asks about calls that a framework holds back, each an id, a tool and its arguments. Inside the
        block the framework goes on; at its end people are told how those that were approved ended. If the
        framework breaks off with several of them, nobody knows which were done, and people are told that."""
        decisions: dict[str, Decision] = {}
        async with AsyncExitStack() as stack:
            for name, tool, arguments in calls:
                try:
                    call = await stack.enter_async_context(self._asked(tool, arguments))
                    decisions[name] = Decision(call)
                except NotApproved as no:
                    decisions[name] = Decision(None, no)
            try:
                yield decisions
            except Exception:
                approved = [decision.call for decision in decisions.values() if decision.call is not None]
                for call in approved if len(approved) > 1 else []:
                    call.unknown()
                raise

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """Waits for what a framework does, in a session of `async with`. When the user stops the session it
        is given up, and this raises `Stopped`.

        >>> import asyncio
        >>> from aaep import Agent, Gate, Hub, Stopped
        >>> async def stopped(hub):
        ...     async with Agent("shop", hub.url).session("Buying shoes.") as session:
        ...         hub.stop_agent(session.id)
        ...         await Gate(session).unless_stopped(asyncio.sleep(60))
        >>> with Hub(answer="accept") as hub:
        ...     try:
        ...         asyncio.run(stopped(hub))
        ...     except Stopped:
        ...         print("stopped")
        stopped
        """
        if not isinstance(self.session, AsyncSession):
            raise TypeError("unless_stopped needs a session of `async with`.")
        going = asyncio.ensure_future(work)
        over = asyncio.ensure_future(self.session._until_over())
        try:
            await asyncio.wait({going, over}, return_when=asyncio.FIRST_COMPLETED)
            if going.done():
                return going.result()
            raise over.result()
        finally:
            over.cancel()
            if not going.done():
                going.cancel()
                # Nothing of it goes on behind the stop, as far as it lets itself be given up.
                await asyncio.wait({going}, timeout=GIVING_UP_SECONDS)
            if going.done() and not going.cancelled():
                going.exception()

    def _passage(self, tool: str, arguments: dict[str, Any]) -> _Using:
        if tool in self.consent:
            return self._asked(tool, arguments)
        return self.session.tool(tool, arguments=arguments)

    def _asked(self, tool: str, arguments: dict[str, Any]) -> _Using:
        asks = self.consent.get(tool) or Consent(
            f"Run {tool}.", "The agent does not say what comes of it."
        )
        return self.session.confirm(
            tool, arguments, action=_filled(asks.action, arguments),
            consequence=_filled(asks.consequence, arguments), undo=asks.undo, risk=asks.risk,
            timeout_seconds=asks.timeout_seconds,
        )


class _Given(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return f"(no {name})"


def _filled(text: str, arguments: dict[str, Any]) -> str:
    return text.format_map(_Given(arguments))


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _wants_consent(refused: Refused, tool: str, consent: Mapping[str, Consent]) -> bool:
    """Whether the hub refused to let it be announced: the user's policy wants to be asked."""
    return refused.rule == "T27" and tool not in consent
