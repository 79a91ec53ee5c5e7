"""WebSockets of a server."""

from __future__ import annotations

from collections import deque

from llmsandbox._async.transport import AsyncConnection
from llmsandbox._errors import LostError
from llmsandbox._frames import CLOSE, PING, PONG, Decoder, Message, encode
from llmsandbox._http import ProtocolError

MAX_MESSAGE = 8 << 20


class AsyncWebSocket:
    """A WebSocket, from which one task receives, and to which any may send. It must be closed."""

    def __init__(self, connection: AsyncConnection, received: bytes) -> None:
        self._connection = connection
        self._decoder = Decoder(MAX_MESSAGE)
        self._received: bytes | None = received  # but not decoded
        self._messages: deque[Message] = deque()
        self._ended = False

    def __del__(self) -> None:
        self._connection.close()

    async def receive(self, timeout: float | None = None) -> Message | None:
        """Return the next text or binary message, and None once the server has closed, or if nothing has come in time.

        Fails with LostError where the connection ends before it is closed.
        """
        while not self._ended:
            while self._messages:
                message = self._messages.popleft()
                if message.kind == PING:
                    self._connection.post(encode(PONG, message.data))
                elif message.kind == CLOSE:
                    self._ended = True
                    self._connection.post(encode(CLOSE, message.data[:2]))
                elif message.kind != PONG:
                    return message
            if self._ended:
                break
            data, self._received = self._received, None
            try:
                if not data:
                    data = await self._connection.receive(timeout)
                    if data is None:
                        return None
                    if not data:
                        raise ProtocolError("it was not closed")
                self._messages += self._decoder.feed(data)
            except (OSError, ProtocolError) as e:
                self._ended = True
                raise LostError(f"the connection to the server ended: {e}") from e
        return None

    async def send(self, kind: int, data: bytes) -> None:
        """Send a message."""
        try:
            await self._connection.send(encode(kind, data))
        except OSError as e:
            raise LostError(f"the connection to the server ended: {e}") from e

    def say_goodbye(self) -> None:
        """Have the server close the connection, which `receive` sees, without waiting for that."""
        self._connection.post(encode(CLOSE, (1000).to_bytes(2, "big")))

    def close(self) -> None:
        """Close the connection."""
        self._ended = True
        self._connection.close()
