"""Connections for the blocking client."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from llmsandbox import _local
from llmsandbox._endpoint import Endpoint

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")

CONNECT_TIME = 10.0
# A signal that comes just before a system call, or to another thread, does not interrupt it. Its handler then runs so much later.
SIGNAL_TIME = 0.5
PIECE = 64 << 10
# A server closes a connection that is idle for 2 minutes.
MAX_IDLE_TIME = 60.0
MAX_IDLE = 16


class Connection:
    """A connection to a server."""

    def __init__(self, endpoint: Endpoint, sock: socket.socket) -> None:
        self.endpoint = endpoint
        self.reused = False
        self.since = 0.0  # it is idle
        self._socket = sock
        self._socket.setblocking(False)  # one thread may send while another receives
        self._again: tuple[type[OSError], ...] = (BlockingIOError,)
        if endpoint.tls:
            import ssl

            self._again += (ssl.SSLWantReadError, ssl.SSLWantWriteError)
        self._using = threading.Lock()  # of the socket, since one of TLS is for one thread at a time
        self._sending = threading.Lock()
        self._posted: deque[bytes] = deque()
        self._process = os.getpid()
        if endpoint.process:
            _local.connections.add(self)

    def send(self, data: bytes) -> None:
        with self._sending:
            self._send(data)
            self._send_posted()

    def _send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                with self._using:
                    left = left[self._socket.send(left) :]
            except self._again:
                _is_ready(self._socket, True, SIGNAL_TIME)

    def post(self, data: bytes) -> None:
        """Send a little that must not wait for the peer to read: it comes behind what is sent now or next."""
        self._posted.append(data)
        if self._sending.acquire(blocking=False):
            try:
                self._send_posted()
            finally:
                self._sending.release()

    def _send_posted(self) -> None:
        while self._posted and _is_ready(self._socket, True, 0):
            try:
                self._send(self._posted.popleft())
            except OSError:
                return  # who receives will see it

    def receive(self, timeout: float | None = None) -> bytes | None:
        """Return what has come: b"" at the end of the connection, and None if nothing has come in time."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                with self._using:
                    return self._socket.recv(PIECE)
            except self._again:
                left = SIGNAL_TIME if until is None else min(until - time.monotonic(), SIGNAL_TIME)
                if left <= 0:
                    return None
                _is_ready(self._socket, False, left)

    def is_usable(self) -> bool:
        """Whether an idle connection can have another request: nothing can have come but its end."""
        return time.monotonic() - self.since <= MAX_IDLE_TIME and not _is_ready(self._socket, False, 0)

    def end(self) -> None:
        """Have the server see the end of the connection, also if a forked process has it, too."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        _local.connections.discard(self)
        if self._process == os.getpid():  # after fork, the connection is the other process's
            self.end()
        self._socket.close()


class Transport:
    """Makes connections, and keeps some that are idle."""

    def __init__(self) -> None:
        self._idle: list[Connection] = []  # append and pop are atomic
        self._process = os.getpid()

    def connect(self, endpoint: Endpoint, fresh: bool) -> Connection:
        """Return a connection, which is a new one if it must be fresh. Fails with OSError."""
        if self._process != os.getpid():  # after fork: the other process uses these connections, too
            self._process = os.getpid()
            idle, self._idle = self._idle, []
            for connection in idle:
                connection.close()
        while not fresh and self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if connection.endpoint == endpoint and connection.is_usable():
                connection.reused = True
                return connection
            connection.close()
        return Connection(endpoint, _open(endpoint))

    def release(self, connection: Connection) -> None:
        """Keep a connection for another request."""
        connection.since = time.monotonic()
        self._idle.append(connection)
        while len(self._idle) > MAX_IDLE:
            try:
                self._idle.pop(0).close()
            except IndexError:
                break

    def keep_idle(self) -> None:
        """Do nothing: they are always kept."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function that blocks."""
        return function()

    def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        self.close()


def _is_ready(sock: socket.socket, to_send: bool, seconds: float) -> bool:
    """Wait until something can be sent or received."""
    if not hasattr(select, "poll"):
        return any(select.select([] if to_send else [sock], [sock] if to_send else [], [], seconds))
    poll = select.poll()
    poll.register(sock, select.POLLOUT if to_send else select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _open(endpoint: Endpoint) -> socket.socket:
    if endpoint.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(endpoint.socket)
        except BaseException:
            sock.close()
            raise
        return sock
    sock = socket.create_connection((endpoint.host, endpoint.port), CONNECT_TIME)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if endpoint.tls:
            sock = _tls().wrap_socket(sock, server_hostname=endpoint.host)
    except BaseException:
        sock.close()
        raise
    return sock


@functools.lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    import ssl

    return ssl.create_default_context()
