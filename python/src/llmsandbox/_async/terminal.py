"""Terminals."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import TYPE_CHECKING

from llmsandbox._async.websocket import AsyncWebSocket
from llmsandbox._errors import ClosedError, Error, LostError, NotFoundError, SandboxFileNotFoundError
from llmsandbox._frames import BINARY, TEXT
from llmsandbox._json import MalformedError, Object, decode_object
from llmsandbox._request import Request, problem
from llmsandbox._results import Result, parse_result
from llmsandbox._runs import known

if TYPE_CHECKING:
    from typing_extensions import Self

    from llmsandbox._async.sandbox import AsyncSandbox

MAX_WRITE = 32 << 10  # of a message
BYE_TIME = 5.0


class AsyncTerminal:
    """A program with a terminal. `AsyncSandbox.terminal` opens it, or attaches to it by the number of its `process`.

    What it shows has to be read: a server lets go of a client that takes nothing for half a minute. One task may read while others write.
    """

    def __init__(self, sandbox: AsyncSandbox, socket: AsyncWebSocket, process: int) -> None:
        self.process = process
        self._sandbox = sandbox
        self._socket = socket
        self._result: Result | None = None  # once the program has ended
        self._left = False
        self._reading = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.process} of {self._sandbox!r}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self.close()
        except Error:
            if error is None:
                raise
            # The exception on its way says more, and a cancellation must not get lost.

    async def read(self) -> bytes:
        """Return what is shown next. b"" is the end: of the program, or of this client by `detach` or `close`.

        Fails with LostError if the connection ends before, or another client has taken over. The program may go on then.
        """
        async with self._reading:
            while self._result is None:
                try:
                    message = await self._socket.receive()
                except LostError:
                    if self._left:
                        break
                    raise
                if message is None:
                    if self._left:
                        break
                    raise LostError("the server has let go of the terminal, whose program may go on: attach to it again")
                if message.kind == BINARY:
                    if message.data:
                        return message.data
                else:
                    self._event(decode_object(message.data))
            return b""

    def _event(self, event: Object) -> None:
        refused, result = event.object("problem"), event.object("result")
        if refused is not None:
            raise problem(refused)
        if result is not None:
            self._result = known(parse_result(result))

    async def write(self, data: str | bytes) -> None:
        """Type something, where "\\x03" is Ctrl-C and "\\x04" Ctrl-D."""
        typed = data.encode() if isinstance(data, str) else data
        for at in range(0, len(typed), MAX_WRITE):
            await self._send(BINARY, typed[at : at + MAX_WRITE])

    async def resize(self, cols: int, rows: int) -> None:
        """Change the size."""
        await self._send(TEXT, json.dumps({"resize": {"cols": cols, "rows": rows}}).encode())

    async def _send(self, kind: int, data: bytes) -> None:
        if self._left:
            raise ClosedError("the terminal is closed")
        await self._socket.send(kind, data)

    async def wait(self) -> Result:
        """Wait for the program's end, and return what became of it, without its output. What is shown until then is dropped."""
        while await self.read():
            pass
        if self._result is None:
            raise ClosedError("the terminal is closed")
        return self._result

    async def detach(self) -> None:
        """Leave the terminal. Its program goes on."""
        if not self._left:
            self._left = True
            self._socket.say_goodbye()
        async with self._reading:
            try:
                while await self._socket.receive(BYE_TIME) is not None:
                    pass  # what was typed gets to the server only if all that it sends is read
            except LostError:
                pass
            finally:
                self._socket.close()

    async def close(self) -> None:
        """End the program, with all that it has started."""
        try:
            if self._result is None and not self._left:
                session = await self._sandbox._opened()
                await session.empty(Request("DELETE", f"/terminals/{self.process}", success=204))
        except (NotFoundError, SandboxFileNotFoundError, ClosedError):
            pass  # it has ended
        finally:
            await self.detach()


async def begun(socket: AsyncWebSocket) -> int:
    """Return the number of the process of a terminal that was opened."""
    try:
        message = await socket.receive()
        if message is None or message.kind != TEXT:
            raise MalformedError("the server's answer cannot be used: a terminal does not begin with its process")
        event = decode_object(message.data)
        refused = event.object("problem")
        if refused is not None:
            raise problem(refused)
        process = event.integer("process")
        if process <= 0:
            raise MalformedError("the server's answer cannot be used: a terminal has no process")
        return process
    except BaseException:
        socket.close()
        raise
