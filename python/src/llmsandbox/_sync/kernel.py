# Written by unasync.py from _async/kernel.py. Do not edit it.
"""Interpreters that keep their state."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING

from llmsandbox._sync.session import Session
from llmsandbox._describe import Completion, Variable
from llmsandbox._errors import ClosedError, Error, NotFoundError
from llmsandbox._json import Object
from llmsandbox._request import EVENTS, Request, given, texts
from llmsandbox._results import Cell, Event, parse_cell
from llmsandbox._runs import known

if TYPE_CHECKING:
    from typing_extensions import Self

    from llmsandbox._sync.sandbox import Sandbox


class Kernel:
    """An interpreter that keeps its state between cells. `Sandbox.kernel` opens it; cells queue.

    It lives until it is closed, or as long as its sandbox.
    """

    def __init__(self, sandbox: Sandbox, id: str, language: str) -> None:
        self.id = id
        self.language = language
        self._sandbox = sandbox
        self._closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} ({self.language}) of {self._sandbox!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.close()
        except Error:
            if error is None:
                raise
            # The exception on its way says more, and a cancellation must not get lost.

    def close(self) -> None:
        """End the interpreter. What it has defined is gone."""
        if self._closed:
            return
        try:
            self._do("DELETE", "")
        except (NotFoundError, ClosedError):
            pass  # it has ended with its sandbox, or by itself
        finally:
            self._closed = True

    def run(self, code: str, *, timeout: float | None = None, stdin: Sequence[str] = ()) -> Cell:
        """Run a cell and return what became of it. Code that fails is not an exception: look at the cell's status.

        stdin: lines that answer the code's requests for input. A cell is interrupted when it is cancelled or interrupted here.
        """
        session = self._opened()
        return known(parse_cell(session.result(Request("POST", "/cells", body=_cell(code, timeout, stdin)))))

    def stream(self, code: str, *, timeout: float | None = None, stdin: Sequence[str] = ()) -> Generator[Event, None, None]:
        """Run a cell and yield its output as it is written, and then an event "done" with the cell.

        The cell is interrupted if the generator is closed before.
        """
        session = self._opened()
        request = Request("POST", "/cells", body=_cell(code, timeout, stdin), accept=EVENTS)
        with closing(session.outcome(request, parse_cell)) as events:
            for event in events:
                yield event

    def interrupt(self) -> None:
        """Interrupt the cell that runs."""
        self._do("POST", "/interrupt")

    def restart(self) -> None:
        """Start the interpreter anew. What it has defined is gone."""
        self._do("POST", "/restart")

    def reset(self) -> None:
        """Forget what cells have defined, in the same process."""
        self._do("POST", "/reset")

    def complete(self, code: str, cursor: int | None = None) -> Completion:
        """Complete code at a cursor, which is the code's end by default."""
        o = self._json("/complete", _place(code, cursor))
        return Completion(o.texts("matches"), o.integer("start"), o.integer("end"))

    def inspect(self, code: str, cursor: int | None = None) -> str:
        """Return documentation, signature or value of what stands at a cursor; empty where nothing is known."""
        return (self._json("/inspect", _place(code, cursor))).text("text")

    def variables(self) -> list[Variable]:
        """Return the variables that cells have defined."""
        session = self._opened()
        found = session.json(Request("GET", "/variables"))
        return [Variable(v.text("name"), v.text("type"), v.text("value")) for v in found.objects("variables")]

    def _opened(self) -> Session:
        if self._closed:
            raise ClosedError("the kernel is closed")
        return (self._sandbox._opened()).below(f"/kernels/{self.id}")

    def _json(self, path: str, body: dict[str, object]) -> Object:
        session = self._opened()
        return session.json(Request("POST", path, body=body))

    def _do(self, method: str, path: str) -> None:
        session = self._opened()
        session.empty(Request(method, path, success=204))


def _cell(code: str, timeout: float | None, stdin: Sequence[str]) -> dict[str, object]:
    return given(code=code, timeout_seconds=timeout, stdin=texts("stdin", stdin))


def _place(code: str, cursor: int | None) -> dict[str, object]:
    return {"code": code, "cursor": len(code) if cursor is None else cursor}
