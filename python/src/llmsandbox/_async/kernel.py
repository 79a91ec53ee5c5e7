"""Interpreters that keep their state."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING

from llmsandbox._async.session import AsyncSession
from llmsandbox._describe import Completion, Variable
from llmsandbox._errors import ClosedError, Error, NotFoundError
from llmsandbox._json import Object
from llmsandbox._request import EVENTS, Request, given, texts
from llmsandbox._results import Cell, Event, parse_cell
from llmsandbox._runs import known

if TYPE_CHECKING:
    from typing_extensions import Self

    from llmsandbox._async.sandbox import AsyncSandbox


class AsyncKernel:
    """An interpreter that keeps its state between cells. `AsyncSandbox.kernel` opens it; cells queue.

    It lives until it is closed, or as long as its sandbox.
    """

    def __init__(self, sandbox: AsyncSandbox, id: str, language: str) -> None:
        self.id = id
        self.language = language
        self._sandbox = sandbox
        self._closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} ({self.language}) of {self._sandbox!r}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self.close()
        except Error:
            if error is None:
                raise
            # The exception on its way says more, and a cancellation must not get lost.

    async def close(self) -> None:
        """End the interpreter. What it has defined is gone."""
        if self._closed:
            return
        try:
            await self._do("DELETE", "")
        except (NotFoundError, ClosedError):
            pass  # it has ended with its sandbox, or by itself
        finally:
            self._closed = True

    async def run(self, code: str, *, timeout: float | None = None, stdin: Sequence[str] = ()) -> Cell:
        """Run a cell and return what became of it. Code that fails is not an exception: look at the cell's status.

        stdin: lines that answer the code's requests for input. A cell is interrupted when it is cancelled or interrupted here.
        """
        session = await self._opened()
        return known(parse_cell(await session.result(Request("POST", "/cells", body=_cell(code, timeout, stdin)))))

    async def stream(self, code: str, *, timeout: float | None = None, stdin: Sequence[str] = ()) -> AsyncGenerator[Event, None]:
        """Run a cell and yield its output as it is written, and then an event "done" with the cell.

        The cell is interrupted if the generator is closed before.
        """
        session = await self._opened()
        request = Request("POST", "/cells", body=_cell(code, timeout, stdin), accept=EVENTS)
        async with aclosing(session.outcome(request, parse_cell)) as events:
            async for event in events:
                yield event

    async def interrupt(self) -> None:
        """Interrupt the cell that runs."""
        await self._do("POST", "/interrupt")

    async def restart(self) -> None:
        """Start the interpreter anew. What it has defined is gone."""
        await self._do("POST", "/restart")

    async def reset(self) -> None:
        """Forget what cells have defined, in the same process."""
        await self._do("POST", "/reset")

    async def complete(self, code: str, cursor: int | None = None) -> Completion:
        """Complete code at a cursor, which is the code's end by default."""
        o = await self._json("/complete", _place(code, cursor))
        return Completion(o.texts("matches"), o.integer("start"), o.integer("end"))

    async def inspect(self, code: str, cursor: int | None = None) -> str:
        """Return documentation, signature or value of what stands at a cursor; empty where nothing is known."""
        return (await self._json("/inspect", _place(code, cursor))).text("text")

    async def variables(self) -> list[Variable]:
        """Return the variables that cells have defined."""
        session = await self._opened()
        found = await session.json(Request("GET", "/variables"))
        return [Variable(v.text("name"), v.text("type"), v.text("value")) for v in found.objects("variables")]

    async def _opened(self) -> AsyncSession:
        if self._closed:
            raise ClosedError("the kernel is closed")
        return (await self._sandbox._opened()).below(f"/kernels/{self.id}")

    async def _json(self, path: str, body: dict[str, object]) -> Object:
        session = await self._opened()
        return await session.json(Request("POST", path, body=body))

    async def _do(self, method: str, path: str) -> None:
        session = await self._opened()
        await session.empty(Request(method, path, success=204))


def _cell(code: str, timeout: float | None, stdin: Sequence[str]) -> dict[str, object]:
    return given(code=code, timeout_seconds=timeout, stdin=texts("stdin", stdin))


def _place(code: str, cursor: int | None) -> dict[str, object]:
    return {"code": code, "cursor": len(code) if cursor is None else cursor}
