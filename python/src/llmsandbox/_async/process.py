"""Programs that go on without their client."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING

from llmsandbox._async.session import AsyncSession
from llmsandbox._errors import ClosedError, Error, InvalidError, NotFoundError
from llmsandbox._json import MalformedError
from llmsandbox._request import EVENTS, MAX_RESULT, Request, event_id
from llmsandbox._results import Event, Result, parse_result
from llmsandbox._runs import known

if TYPE_CHECKING:
    from typing_extensions import Self

    from llmsandbox._async.sandbox import AsyncSandbox

WAIT_TIME = 30.0  # of one request


class AsyncProcess:
    """A program that goes on until it ends by itself, by its timeout, or with its sandbox, whatever becomes of this client.

    `AsyncSandbox.start` and `start_run` start it, and `process` finds it again by its `id`. That is 0 where the program has ended before it
    ran, by a policy or a compiler. The end of `async with` kills it.
    """

    def __init__(self, sandbox: AsyncSandbox, id: int, result: Result | None = None) -> None:
        self.id = id
        self._sandbox = sandbox
        self._result = result  # once it is known

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self._sandbox!r}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self.kill()
        except (NotFoundError, ClosedError):
            pass  # it has ended with its sandbox
        except Error:
            if error is None:
                raise
            # The exception on its way says more, and a cancellation must not get lost.

    async def poll(self, seconds: float = 0) -> Result | None:
        """Return what became of the program, or None if it still runs after that time.

        The result has at most 16 MiB of output. It is kept as long as the sandbox lives, and for a day.
        """
        if not 0 <= seconds <= 1e9:
            raise InvalidError(f"seconds={seconds!r}: use a number that is not negative")
        until = time.monotonic() + seconds
        while self._result is None:
            session = await self._opened()
            left = max(until - time.monotonic(), 0)
            state = await session.json(Request("GET", "", [("wait_seconds", f"{min(left, WAIT_TIME):.3f}")]), MAX_RESULT)
            result = state.object("result")
            if state.text("state") == "ended":
                if result is None:
                    raise MalformedError("the server's answer cannot be used: a program has ended and has no result")
                self._result = known(parse_result(result))
            elif time.monotonic() >= until:
                break
        return self._result

    async def wait(self) -> Result:
        """Wait for the program's end, and return what became of it."""
        while (result := await self.poll(WAIT_TIME)) is None:
            pass
        return result

    async def stream(self, *, after: str = "") -> AsyncGenerator[Event, None]:
        """Yield what the program writes, from its beginning, and then an event "done" with the result.

        after: the id of an event, behind which to go on. While the program runs, at least the last 1 MiB of stdout and of stderr is kept.
        An event with `missing` says how many bytes before the next one of its kind are not. The program goes on if the generator is closed.
        """
        if self._result is not None and not self.id:
            yield Event("done", result=self._result)
            return
        session = await self._opened()
        request = Request("GET", "/output", accept=EVENTS, last_event=event_id(after))
        async with aclosing(session.outcome(request, parse_result)) as events:
            async for event in events:
                yield event

    async def write(self, data: str | bytes) -> None:
        """Give the program input, of at most 8 MiB. It must have been started with stdin_open=True."""
        await self._input(data.encode() if isinstance(data, str) else data, [])

    async def close_stdin(self) -> None:
        """End the program's input."""
        await self._input(b"", [("close", "true")])

    async def _input(self, data: bytes, query: list[tuple[str, str]]) -> None:
        session = await self._opened()
        await session.empty(Request("POST", "/stdin", query, content=data, success=204))

    async def signal(self, signal: str | int) -> None:
        """Send the program a signal such as "SIGINT". What it has started gets none."""
        name = str(int(signal)) if isinstance(signal, int) else signal  # also of a member of signal.Signals
        session = await self._opened()
        await session.empty(Request("POST", "/signal", body={"signal": name}, success=204))

    async def kill(self) -> None:
        """Kill the program with all that it has started. That it has ended is no error."""
        if self.id:
            session = await self._opened()
            await session.empty(Request("DELETE", "", success=204))

    async def _opened(self) -> AsyncSession:
        session = await self._sandbox._opened()
        if not self.id:
            raise NotFoundError("the program has ended before it ran: its result says why")
        return session.below(f"/processes/{self.id}")
