"""Consent and announcements for AI agents, for people who use assistive technology.

An `Agent` speaks with a hub of AAEP, the Agent Accessibility Event Protocol. The hub tells people
what the agent does, asks them where it matters, and brings their answers back. Nothing that needs
consent runs before somebody said yes, and the hub holds it to that.

>>> import asyncio
>>> from aaep import Agent, Hub, NotApproved
>>> async def pay(hub):
...     async with Agent("rent-agent", hub.url).session("Paying the rent.") as session:
...         @session.confirmed(action="Transfer {amount} euros to {to}.",
...                            consequence="It cannot be called back.")
...         async def transfer(to, amount):
...             return f"paid {amount} to {to}"
...         return await transfer("landlord", amount="800.00")
>>> with Hub(answer="accept") as hub:
...     asyncio.run(pay(hub))
'paid 800.00 to landlord'
>>> with Hub(answer="reject") as hub:
...     try:
...         asyncio.run(pay(hub))
...     except NotApproved as no:
...         no.reason
'rejected'
"""

from __future__ import annotations

import json as _json
from typing import TYPE_CHECKING, Any

from ._calls import Call
from ._errors import (
    Error,
    InDoubt,
    Invalid,
    Misuse,
    NotApproved,
    Refused,
    SessionOver,
    Stopped,
    Unanswered,
    Unavailable,
)
from ._hub import Hub
from ._native import problems as _problems
from ._native import redact as _redact
from ._session import Agent, AsyncOutput, AsyncSession, Output, Session

if TYPE_CHECKING:
    from ._gate import Consent, Decision, Gate
    from ._subscriber import Happening, Inbox, Words

__all__ = [
    "Agent", "AsyncOutput", "AsyncSession", "Call", "Consent", "Decision", "Error", "Gate", "Happening",
    "Hub", "InDoubt", "Inbox", "Invalid", "Misuse", "NotApproved", "Output", "Refused", "Session", "SessionOver", "Stopped",
    "Unanswered", "Unavailable", "Words", "redact", "validate",
]

_LATER = {
    "Consent": "_gate", "Decision": "_gate", "Gate": "_gate",
    "Happening": "_subscriber", "Inbox": "_subscriber", "Words": "_subscriber",
}


def __getattr__(name: str) -> Any:
    """What not every agent needs is imported when it is first named."""
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f"aaep.{_LATER[name]}"), name)
    raise AttributeError(f"module 'aaep' has no attribute {name!r}")


def validate(event: bytes | str | dict[str, Any]) -> None:
    """Raises `Invalid` if an event breaks the protocol; the rules are those of the Rust library.

    >>> from aaep import validate, Invalid
    >>> try:
    ...     validate({"type": "aaep:agent.session.started"})
    ... except Invalid as invalid:
    ...     print(invalid.problems[0][0].startswith("E"))
    True
    """
    if isinstance(event, dict):
        event = _json.dumps(event, ensure_ascii=False)
    problems = _problems(event.encode() if isinstance(event, str) else event)
    if problems:
        text = "; ".join(f"{text} ({rule}, at {pointer or 'the whole'})" for rule, pointer, text in problems)
        raise Invalid(text, problems=problems)


def redact(text: str) -> str:
    """A text without what looks like a secret.

    >>> "4111" in redact("My card is 4111 1111 1111 1111.")
    False
    """
    return str(_redact(text))
