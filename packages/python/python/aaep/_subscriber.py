"""Listening: what came in, what is told, and in which words. The rules and words are the Rust library's."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Literal, Sequence

from . import _native


@dataclass(frozen=True)
class Happening:
    """Something that a person may want to hear: `kind` is event, asked, settled, text, silence, over,
    connected, lost or presence, and `what` holds the rest."""

    kind: str
    what: dict[str, Any]
    _native: Any = None


class Inbox:
    """The core of a listener, for one hub. It does no input or output: hand it what came, take what is
    told and what is to be sent. Nothing is told twice, critical things come first, and an answer is
    checked before it is sent.

    `now` is in milliseconds from the inbox's beginning; left out, it is this machine's clock.

    >>> from aaep import Inbox, Words
    >>> inbox, words = Inbox(), Words("en")
    >>> request = inbox.begin()                     # sent to the hub, which answers:
    >>> inbox.message({"type": "subscription.accepted", "subscription_id": "sub_1",
    ...     "aaep_version": "1.0.0", "producer": {"agent_id": "hub"},
    ...     "honored_capabilities": {"supports_confirmation_reply": True}})
    >>> inbox.attached()
    >>> [happening.kind for happening in inbox.told()]
    ['connected']
    >>> inbox.message({"type": "aaep:agent.awaiting.confirmation", "event_id": "evt_1",
    ...     "session_id": "sess_1", "timestamp": "2026-05-24T14:22:11.342Z",
    ...     "producer": {"agent_id": "tidy"}, "action": "Delete the build", "consequence": "It is gone",
    ...     "reply_token": "rpl_1", "timeout_seconds": 60, "default_decision": "reject",
    ...     "irreversible": True, "risk_level": "high"})
    >>> asked = next(happening for happening in inbox.told() if happening.kind == "asked")
    >>> words.say(asked)[0]
    'Allow this? Delete the build. It cannot be undone.'
    >>> inbox.answer(asked.what["request"]["number"], "reject")
    >>> inbox.to_send()[0]["decision"]
    'reject'
    """

    def __init__(
        self,
        name: str = "hub",
        languages: Sequence[str] = ("en",),
        *,
        text: Literal["sentence", "paragraph", "end"] = "sentence",
        unix_ms: int | None = None,
    ) -> None:
        self._began = time.monotonic()
        start = int(time.time() * 1000) if unix_ms is None else unix_ms
        self._native = _native.Inbox(name, list(languages), text, start)

    def _now(self, now: int | None) -> int:
        return int((time.monotonic() - self._began) * 1000) if now is None else now

    def begin(self, *, now: int | None = None) -> dict[str, Any]:
        """A way to the hub is open: the request for a subscription, to be sent on it."""
        request: dict[str, Any] = json.loads(self._native.begin(self._now(now)))
        return request

    def message(self, message: bytes | str | dict[str, Any], *, now: int | None = None) -> None:
        """A message came: an event, or an answer to the handshake."""
        if isinstance(message, dict):
            message = json.dumps(message, ensure_ascii=False)
        self._native.message(message.encode() if isinstance(message, str) else message, self._now(now))

    def attached(self, *, now: int | None = None) -> None:
        """Events flow from now on."""
        self._native.attached(self._now(now))

    def lost(self, why: str, *, now: int | None = None) -> None:
        """The connection is lost."""
        self._native.lost(why, self._now(now))

    def told(self, *, now: int | None = None) -> list[Happening]:
        """What is told now, in the order in which it should be heard. Call it after every message, and
        when `next_deadline` has come."""
        at = self._now(now)
        self._native.time(at)
        out = []
        while (native := self._native.poll(at)) is not None:
            what = json.loads(native.json())
            out.append(Happening(what.pop("kind"), what, native))
        return out

    def to_send(self, *, now: int | None = None) -> list[dict[str, Any]]:
        """What is to be sent to the hub now; each message once."""
        at, out = self._now(now), []
        while (text := self._native.poll_send(at)) is not None:
            out.append(json.loads(text))
        return out

    def next_deadline(self, *, now: int | None = None) -> int | None:
        """When to call `told` again, in milliseconds from the inbox's beginning, if nothing comes."""
        deadline: int | None = self._native.next_deadline(self._now(now))
        return deadline

    def answer(
        self, number: int, answer: Literal["accept", "reject"] | dict[str, Any], *, now: int | None = None
    ) -> None:
        """The user answers request `number`: accept or reject, or `{"choice": …}`, `{"text": …}`,
        `{"yes_no": …}`, `{"number": …}`. Raises `ValueError` if it is no answer to what is asked."""
        kind, value = "", ""
        if isinstance(answer, str):
            kind = answer
            if answer not in ("accept", "reject"):
                raise ValueError("answer with accept, reject, or a dict that names the kind of answer")
        else:
            (kind, given), = answer.items()
            value = given if isinstance(given, str) else json.dumps(given)
        self._native.answer(number, kind, value, self._now(now))

    def more_time(self, number: int, seconds: int, *, now: int | None = None) -> None:
        """The user wants so much more time for request `number`."""
        self._native.more_time(number, seconds, self._now(now))


class Words:
    """What is said, in the first of these languages that there is, or in English.

    >>> from aaep import Words
    >>> Words("de-AT", "fr").language
    'de'
    """

    def __init__(self, *languages: str) -> None:
        self._native = _native.Words(list(languages) or ["en"])

    @property
    def language(self) -> str:
        """The language's tag."""
        return str(self._native.language)

    def spans(
        self,
        happening: Happening,
        *,
        verbosity: Literal["terse", "normal", "detailed"] = "normal",
        load: Literal["low", "medium", "high"] = "medium",
        name_agents: bool = False,
    ) -> list[list[tuple[str, bool]]]:
        """Its lines, in pieces: each a text, and whether it is the agent's and not ours."""
        lines: list[list[tuple[str, bool]]] = self._native.say(
            happening._native, verbosity, load, name_agents
        )
        return lines

    def say(self, happening: Happening, **manner: Any) -> list[str]:
        """Its lines as text."""
        return ["".join(text for text, _ in line) for line in self.spans(happening, **manner)]
