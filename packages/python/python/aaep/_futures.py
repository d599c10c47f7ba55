"""Waiting for the native half, with a blocked thread or in asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from concurrent.futures import Future


def started(begin: Callable[..., Any], *args: Any) -> Future[Any]:
    """Begins something; cancelling the future gives it up."""
    # Here, since it takes a third of the time that importing this package takes.
    from concurrent.futures import Future

    future: Future[Any] = Future()
    task = begin(future, *args)

    def give_up(future: Future[Any]) -> None:
        if future.cancelled():
            task.cancel()

    future.add_done_callback(give_up)
    return future


def waited(begin: Callable[..., Any], *args: Any) -> Any:
    """Waits in this thread. Ctrl-C gives it up."""
    future = started(begin, *args)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def awaited(begin: Callable[..., Any], *args: Any) -> Any:
    """Waits in asyncio; a task that is cancelled gives it up."""
    from asyncio import wrap_future

    return await wrap_future(started(begin, *args))
