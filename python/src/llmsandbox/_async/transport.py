"""Connections for the asyncio client."""

from __future__ import annotations

import asyncio
import asyncio.trsock
import contextlib
import functools
import os
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import TypeVar

from llmsandbox import _local
from llmsandbox._endpoint import Endpoint

T = TypeVar("T")

CONNECT_TIME = 10.0
PIECE = 64 << 10
# A server closes a connection that is idle for 2 minutes.
MAX_IDLE_TIME = 60.0
MAX_IDLE = 16


class AsyncConnection:
    """A connection to a server."""

    def __init__(self, endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.endpoint = endpoint
        self.reused = False
        self.since = 0.0  # it is idle
        self.loop = asyncio.get_running_loop()
        self._reader = reader
        self._writer = writer
        self._socket: asyncio.trsock.TransportSocket = writer.get_extra_info("socket")
        self._process = os.getpid()
        if endpoint.process:
            _local.connections.add(self)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def post(self, data: bytes) -> None:
        """Send a little that must not wait for the peer to read."""
        self._writer.write(data)

    async def receive(self, timeout: float | None = None) -> bytes | None:
        """Return what has come: b"" at the end of the connection, and None if nothing has come in time."""
        if timeout is None:
            return await self._reader.read(PIECE)
        try:
            return await _within(timeout, self._reader.read(PIECE))
        except TimeoutError:
            return None

    def is_usable(self) -> bool:
        """Whether an idle connection can have another request."""
        return time.monotonic() - self.since <= MAX_IDLE_TIME and not self._reader.at_eof() and self.loop is asyncio.get_running_loop()

    def end(self) -> None:
        """Have the server see the end of the connection, also if a forked process has it, too."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        _local.connections.discard(self)
        if self._process != os.getpid():
            return  # after fork, the connection and its event loop are the other process's
        self.end()
        with contextlib.suppress(RuntimeError):  # its event loop is closed
            self._writer.transport.abort()


class AsyncTransport:
    """Makes connections. Idle ones are kept while a client is in `async with`: they must be closed before their event loop is."""

    def __init__(self) -> None:
        self._idle: list[AsyncConnection] = []
        self._keeps = False

    async def connect(self, endpoint: Endpoint, fresh: bool) -> AsyncConnection:
        """Return a connection, which is a new one if it must be fresh. Fails with OSError."""
        while not fresh and self._idle:
            connection = self._idle.pop()
            if connection.endpoint == endpoint and connection.is_usable():
                connection.reused = True
                return connection
            connection.close()
        try:
            return AsyncConnection(endpoint, *await _within(CONNECT_TIME, _open(endpoint), _abort))
        except TimeoutError:
            raise OSError(f"it did not answer within {CONNECT_TIME:.0f} seconds") from None

    def keep_idle(self) -> None:
        """Keep idle connections until `close`."""
        self._keeps = True

    def release(self, connection: AsyncConnection) -> None:
        """Keep a connection for another request, or close it."""
        if not self._keeps or len(self._idle) >= MAX_IDLE:
            connection.close()
            return
        connection.since = time.monotonic()
        self._idle.append(connection)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function that blocks."""
        return await asyncio.to_thread(function)

    async def close(self) -> None:
        """Close what is idle."""
        self._keeps = False
        while self._idle:
            self._idle.pop().close()


async def _within(seconds: float, work: Coroutine[object, object, T], undo: Callable[[T], object] | None = None) -> T:
    """Return what work does, or fail with TimeoutError. (Before Python 3.12, asyncio.wait_for can lose a cancellation.)"""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if task.cancelled():
            raise TimeoutError
        return task.result()
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        if undo is not None and not task.cancelled() and task.exception() is None:
            undo(task.result())
        raise


def _abort(opened: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    opened[1].transport.abort()


async def _open(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.socket:
        return await asyncio.open_unix_connection(endpoint.socket, limit=PIECE)
    context = _tls() if endpoint.tls else None
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, limit=PIECE, ssl=context)
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return reader, writer


@functools.lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
