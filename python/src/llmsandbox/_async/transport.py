"""Connections for the asyncio client."""

from __future__ import annotations

import asyncio
import asyncio.trsock
import contextlib
import os
import socket
import ssl
from collections.abc import Callable
from typing import TypeVar

from llmsandbox import _local
from llmsandbox._endpoint import Endpoint

T = TypeVar("T")

CONNECT_TIME = 10.0
PIECE = 256 << 10


class AsyncConnection:
    """A connection to a server."""

    reused = False

    def __init__(self, endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._socket: asyncio.trsock.TransportSocket = writer.get_extra_info("socket")
        self._process = os.getpid()
        if endpoint.process:
            _local.connections.add(self)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self, timeout: float | None = None) -> bytes | None:
        """Return what has come: b"" at the end of the connection, and None if nothing has come in time."""
        if timeout is None:
            return await self._reader.read(PIECE)
        try:
            return await asyncio.wait_for(self._reader.read(PIECE), timeout)
        except (TimeoutError, asyncio.TimeoutError):
            return None

    def end(self) -> None:
        """Have the server see the end of the connection, also if a forked process has it, too."""
        if self._process == os.getpid():
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.end()
        self._writer.transport.abort()
        _local.connections.discard(self)


class AsyncTransport:
    """Makes connections.

    None is kept for another request: a connection belongs to its event loop, and nothing tells when that ends.
    """

    async def connect(self, endpoint: Endpoint, fresh: bool) -> AsyncConnection:
        """Return a connection. Fails with OSError."""
        try:
            return AsyncConnection(endpoint, *await asyncio.wait_for(_open(endpoint), CONNECT_TIME))
        except (TimeoutError, asyncio.TimeoutError):
            raise OSError(f"it did not answer within {CONNECT_TIME:.0f} seconds") from None

    def release(self, connection: AsyncConnection) -> None:
        connection.close()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function that blocks."""
        return await asyncio.to_thread(function)

    async def close(self) -> None:
        """Do nothing: no connection is kept."""


async def _open(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.socket:
        return await asyncio.open_unix_connection(endpoint.socket, limit=PIECE)
    context = ssl.create_default_context() if endpoint.tls else None
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, limit=PIECE, ssl=context)
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return reader, writer
