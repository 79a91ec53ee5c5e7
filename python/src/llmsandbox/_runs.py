"""Ends of runs, as results and as streams of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from llmsandbox._errors import LostError, printable
from llmsandbox._events import ServerEvent
from llmsandbox._json import MalformedError, Object, decode, decode_object
from llmsandbox._request import problem
from llmsandbox._results import Cell, Event, Result

R = TypeVar("R", Result, Cell)


def known(result: R) -> R:
    """Return a result, unless the server says that it has lost the run."""
    if result.status == "lost":
        error = LostError(f"the server has lost the run: {printable(result.reason)}")
        error.result = result
        raise error
    return result


def event_of(event: ServerEvent, parse: Callable[[Object], R]) -> Event | None:
    """Return the event of a run that a server's event stands for; None: it stands for none."""
    if event.name in ("stdout", "stderr"):
        text = decode(event.data)
        if not isinstance(text, str):
            raise MalformedError("the server's answer cannot be used: output is not text")
        return Event(event.name, text, id=event.id)
    if event.name == "gap":
        gap = decode_object(event.data)
        if gap.text("stream") not in ("stdout", "stderr") or gap.integer("bytes") <= 0:
            raise MalformedError("the server's answer cannot be used: a gap of output is malformed")
        return Event(gap.text("stream"), missing=gap.integer("bytes"), id=event.id)
    if event.name == "result":
        return Event("done", result=known(parse(decode_object(event.data))))
    if event.name == "problem":
        raise problem(decode_object(event.data))
    return None
