"""What can go wrong, by whose fault it is."""

from __future__ import annotations


class Error(Exception):
    """The base of every error of this package."""

    def __init__(self, text: str, **known: object) -> None:
        super().__init__(text)
        for name, value in known.items():
            setattr(self, name, value)


class Misuse(Error):
    """This package was misused; nothing was sent. `rule` names the rule of the protocol, if there is one."""

    rule: str | None = None


class Refused(Error):
    """The hub refused, and nothing has changed there. `status` is HTTP's, `rule` the rule."""

    status: int
    rule: str | None = None


class NotApproved(Error):
    """There is no yes, and nothing has run.

    `reason` is rejected, timed_out, expired, cancelled or begun; of a rejection, `by` says who and
    `rationale` why, if they said it.
    """

    reason: str
    by: str | None = None
    rationale: str | None = None


class Unanswered(Error):
    """A question has no answer. Never guess one. `reason` is timed_out or cancelled."""

    reason: str


class SessionOver(Error):
    """The session is over: its user stopped it, or the hub ended it. Do nothing more for it."""


class Stopped(SessionOver):
    """The user stopped the agent. That is no failure: end what you do, and start nothing new."""


class Unavailable(Error):
    """The hub could not be asked, and has not done it."""


class InDoubt(Unavailable):
    """The hub was asked and gave no answer; nobody knows whether it was done."""


class Invalid(Error):
    """A message breaks the protocol. `problems` lists each as (rule, JSON pointer, text)."""

    problems: list[tuple[str, str, str]]
