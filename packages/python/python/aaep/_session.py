"""Agents and sessions, for synchronous code and for asyncio."""

from __future__ import annotations

import functools
import json
import warnings
from types import TracebackType
from typing import Any, Callable, Literal, Sequence, TypeVar

from . import _errors, _native
from ._calls import _Using, observed
from ._futures import awaited, waited

Undo = Literal["never", "with_effort", "easily"]
Risk = Literal["low", "medium", "high"]
F = TypeVar("F", bound=Callable[..., Any])


class Agent:
    """Speaks with one hub, as one producer.

    Without `url` it is this user's hub on this machine: what `AAEP_URL` names, else its socket, else
    the usual address. Nothing is sent before the first session is opened.

    >>> from aaep import Agent, Hub
    >>> with Hub(answer="accept") as hub:
    ...     agent = Agent("rent-agent", hub.url)
    ...     with agent.session("Paying the rent.") as session:
    ...         with session.confirm(
    ...             "transfer", {"to": "landlord", "amount": "800.00"},
    ...             action="Transfer 800 euros to your landlord.",
    ...             consequence="The money leaves at once and cannot be called back.",
    ...         ) as call:
    ...             print("paid", call.arguments["amount"])
    paid 800.00
    """

    def __init__(
        self,
        agent_id: str,
        url: str | None = None,
        *,
        token: str | None = None,
        trust_pem: bytes | None = None,
        trust_loopback: bool = False,
        patience: float = 30.0,
    ) -> None:
        self._native = _native.Agent(agent_id, url, token, trust_pem, trust_loopback, patience)

    def session(
        self, summary: str, *, language: str | None = "en", lease_seconds: int | None = None
    ) -> Opening:
        """A session to open, with `with` or `async with`: one for each thing the user asked for."""
        return Opening(self, summary, language, lease_seconds)

    def close(self) -> None:
        """Waits until everything is said. To be called before the process ends."""
        waited(self._native.close)

    async def aclose(self) -> None:
        """The same in asyncio."""
        await awaited(self._native.close)


class Opening:
    """A session that is about to be opened."""

    _open: Session | AsyncSession

    def __init__(
        self, agent: Agent, summary: str, language: str | None, lease_seconds: int | None
    ) -> None:
        self._agent, self._args = agent, (summary, language, lease_seconds)

    def __enter__(self) -> Session:
        session = Session(waited(self._agent._native.open, *self._args))
        self._open = session
        return session

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        how = self._open._last_words(error)
        try:
            if how is not None:
                with _Ended(error):
                    waited(*how)
        finally:
            # What could not be said yet must not end with the process.
            waited(self._agent._native.close)

    async def __aenter__(self) -> AsyncSession:
        session = AsyncSession(await awaited(self._agent._native.open, *self._args))
        self._open = session
        return session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        how = self._open._last_words(error)
        try:
            if how is not None:
                with _Ended(error):
                    await awaited(*how)
        finally:
            await awaited(self._agent._native.close)


class _Ended:
    """An error of the block is not hidden by one of its end; nor is a stop by the user an error. Work that
    was done stays done while the hub is away: that is a warning."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, _errors.SessionOver):
            return True
        if self.error is None and isinstance(error, _errors.Unavailable):
            text = "The session is done, and the hub could not be told yet. It is told if it comes back in time."
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            return True
        return self.error is not None and isinstance(error, _errors.Error)


class _Base:
    def __init__(self, native: Any) -> None:
        self._native, self._over = native, False

    @property
    def id(self) -> str:
        """Its id."""
        return str(self._native.id)

    @property
    def stopped(self) -> bool:
        """Whether its user, or the hub, ended it. Long tools look here now and then."""
        return bool(self._native.is_stopped())

    def confirm(
        self,
        tool: str,
        arguments: Any = None,
        *,
        action: str,
        consequence: str,
        undo: Undo = "never",
        risk: Risk | None = None,
        timeout_seconds: int | None = None,
        accept_on_silence: bool = False,
    ) -> _Using:
        """Asks for consent to one action. The block of `with` or `async with` runs only after a yes;
        without one it raises `NotApproved`. Consent is bound to the tool and these arguments."""
        args = (tool, action, consequence, _json(arguments), undo, risk, timeout_seconds, accept_on_silence)

        def begin(future: Any) -> Any:
            return self._native.confirm(future, *args)

        return _Using(begin, tool, arguments, asks=True)

    def tool(
        self, name: str, summary: str | None = None, arguments: Any = None, *, risk: Risk | None = None
    ) -> _Using:
        """A tool that needs no consent: announced before its block runs, completed afterwards."""
        given = None if arguments is None else _json(arguments)

        def begin(future: Any) -> Any:
            return self._native.tool(future, name, summary, given, risk)

        return _Using(begin, name, arguments)

    def confirmed(
        self,
        *,
        action: str | Callable[..., str],
        consequence: str,
        tool: str | None = None,
        undo: Undo = "never",
        risk: Risk | None = None,
        timeout_seconds: int | None = None,
    ) -> Callable[[F], F]:
        """Decorates a function that runs only after a yes, with the arguments that were confirmed.

        `action` is a text in which `{name}` stands for an argument, or a function of the arguments.
        They have to be what JSON can carry; amounts are best carried as text.
        """

        import inspect

        def decorate(function: F) -> F:
            name, signature = tool or function.__name__, inspect.signature(function)

            def asking(*args: Any, **named: Any) -> tuple[_Using, inspect.BoundArguments]:
                bound = signature.bind(*args, **named)
                bound.apply_defaults()
                said = action(**bound.arguments) if callable(action) else action.format(**bound.arguments)
                return self.confirm(
                    name, dict(bound.arguments), action=said, consequence=consequence,
                    undo=undo, risk=risk, timeout_seconds=timeout_seconds,
                ), bound

            def confirmed_arguments(bound: inspect.BoundArguments, arguments: Any) -> inspect.BoundArguments:
                for key in bound.arguments:
                    value = arguments[key]
                    bound.arguments[key] = tuple(value) if isinstance(value, list) and isinstance(
                        bound.arguments[key], tuple) else value
                return bound

            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def run(*args: Any, **named: Any) -> Any:
                    using, bound = asking(*args, **named)
                    async with using as call:
                        bound = confirmed_arguments(bound, call.arguments)
                        return await function(*bound.args, **bound.kwargs)

                return run  # type: ignore[return-value]

            @functools.wraps(function)
            def run_now(*args: Any, **named: Any) -> Any:
                using, bound = asking(*args, **named)
                with using as call:
                    bound = confirmed_arguments(bound, call.arguments)
                    return function(*bound.args, **bound.kwargs)

            return run_now  # type: ignore[return-value]

        return decorate

    def _last_words(self, error: BaseException | None) -> tuple[Any, str, bool] | None:
        if self._over:
            return None
        self._over = True
        if error is None:
            return self._native.complete, "Done.", True
        if isinstance(error, _errors.SessionOver):
            return None
        if isinstance(error, _errors.NotApproved):
            return self._native.complete, "Nothing was done: there was no yes.", True
        if isinstance(error, Exception):
            return self._native.fail, "The agent broke off: there is a fault in its program.", True
        return self._native.cancel, "The agent gave this up without finishing it.", True


class Session(_Base):
    """An open session, for synchronous code. Signs of life are given while a tool blocks."""

    def thinking(self, about: str) -> None:
        """The agent thinks, and about what."""
        waited(self._native.thinking, about)

    def progress(
        self,
        percent: int | None = None,
        *,
        step: tuple[int, int] | None = None,
        description: str | None = None,
        eta_seconds: int | None = None,
    ) -> None:
        """How far a long job is; what is not worth hearing is left out."""
        waited(self._native.progress, percent, step, description, eta_seconds)

    def ask(self, question: str, *, context: str | None = None, timeout_seconds: int | None = None) -> str:
        """Any text for an answer."""
        return str(self._asked(question, "text", [], context, timeout_seconds))

    def ask_yes_no(
        self, question: str, *, context: str | None = None, timeout_seconds: int | None = None
    ) -> bool:
        """Yes or no; consent to an action is `confirm`."""
        return bool(self._asked(question, "yes_no", [], context, timeout_seconds))

    def ask_number(
        self, question: str, *, context: str | None = None, timeout_seconds: int | None = None
    ) -> float:
        """A number."""
        return float(self._asked(question, "number", [], context, timeout_seconds))

    def choose(self, question: str, choices: Sequence[str], *, timeout_seconds: int | None = None) -> int:
        """One of several things, by its place from 0."""
        return int(self._asked(question, "choice", list(choices), None, timeout_seconds))

    def _asked(
        self, question: str, kind: str, choices: list[str], context: str | None, timeout_seconds: int | None
    ) -> Any:
        with observed("ask", kind):
            return waited(self._native.ask, question, kind, choices, context, timeout_seconds)

    def output(self) -> Output:
        """The answer, as a model streams it: `with session.output() as out: out.write(token)`."""
        return Output(self._native.output())

    def complete(self, summary: str) -> None:
        """Ends it well, with these words instead of `Done.`"""
        self._over = True
        waited(self._native.complete, summary, False)

    def cancel(self, why: str) -> None:
        """Gives it up, and says why."""
        self._over = True
        waited(self._native.cancel, why, False)


class AsyncSession(_Base):
    """An open session, in asyncio."""

    async def thinking(self, about: str) -> None:
        """The agent thinks, and about what."""
        await awaited(self._native.thinking, about)

    async def progress(
        self,
        percent: int | None = None,
        *,
        step: tuple[int, int] | None = None,
        description: str | None = None,
        eta_seconds: int | None = None,
    ) -> None:
        """How far a long job is; what is not worth hearing is left out."""
        await awaited(self._native.progress, percent, step, description, eta_seconds)

    async def ask(
        self, question: str, *, context: str | None = None, timeout_seconds: int | None = None
    ) -> str:
        """Any text for an answer."""
        return str(await self._asked(question, "text", [], context, timeout_seconds))

    async def ask_yes_no(
        self, question: str, *, context: str | None = None, timeout_seconds: int | None = None
    ) -> bool:
        """Yes or no; consent to an action is `confirm`."""
        return bool(await self._asked(question, "yes_no", [], context, timeout_seconds))

    async def ask_number(
        self, question: str, *, context: str | None = None, timeout_seconds: int | None = None
    ) -> float:
        """A number."""
        return float(await self._asked(question, "number", [], context, timeout_seconds))

    async def choose(
        self, question: str, choices: Sequence[str], *, timeout_seconds: int | None = None
    ) -> int:
        """One of several things, by its place from 0."""
        return int(await self._asked(question, "choice", list(choices), None, timeout_seconds))

    async def _asked(
        self, question: str, kind: str, choices: list[str], context: str | None, timeout_seconds: int | None
    ) -> Any:
        with observed("ask", kind):
            return await awaited(self._native.ask, question, kind, choices, context, timeout_seconds)

    def output(self) -> AsyncOutput:
        """The answer, as a model streams it."""
        return AsyncOutput(self._native.output())

    async def wait_stopped(self) -> None:
        """Waits until its user, or the hub, ended it."""
        await awaited(self._native.stopped)

    async def _until_over(self) -> _errors.SessionOver:
        """Waits until it is over, and says who ended it."""
        try:
            await awaited(self._native.stopped)
            if await awaited(self._native.was_stopped):
                return _errors.Stopped("The user stopped this session; do nothing more for it.")
        except _errors.SessionOver as over:
            return over
        return _errors.SessionOver("The session is over; do nothing more for it.")

    async def complete(self, summary: str) -> None:
        """Ends it well, with these words instead of `Done.`"""
        self._over = True
        await awaited(self._native.complete, summary, False)

    async def cancel(self, why: str) -> None:
        """Gives it up, and says why."""
        self._over = True
        await awaited(self._native.cancel, why, False)


class Output:
    """Text that is being written; its block completes it."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def write(self, text: str) -> None:
        """The next token."""
        waited(self._native.write, text)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *_: object) -> None:
        waited(self._native.finish)


class AsyncOutput:
    """Text that is being written, in asyncio; its block completes it."""

    def __init__(self, native: Any) -> None:
        self._native = native

    async def write(self, text: str) -> None:
        """The next token."""
        await awaited(self._native.write, text)

    async def __aenter__(self) -> AsyncOutput:
        return self

    async def __aexit__(self, *_: object) -> None:
        await awaited(self._native.finish)


def _json(arguments: Any) -> str:
    return json.dumps({} if arguments is None else arguments, ensure_ascii=False, allow_nan=False)
