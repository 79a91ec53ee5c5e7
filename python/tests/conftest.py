"""Servers for the tests: the command is that of LLMSANDBOX_TEST_COMMANDS, or of bin/test, which `make commands` builds."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import llmsandbox

COMMANDS = Path(os.environ.get("LLMSANDBOX_TEST_COMMANDS") or Path(__file__).parents[2] / "bin" / "test")
os.environ["PATH"] = f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"
for name in ("LLMSANDBOX_URL", "LLMSANDBOX_API_KEY"):
    os.environ.pop(name, None)
# A shell's programs in the background ignore Ctrl-C, and so would those that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Server:
    """A server on a port of the loopback, which needs a key."""

    def __init__(self, *args: str, **env: str) -> None:
        command = [str(COMMANDS / "llmsandbox"), "serve", "--until-stdin-closes", "--listen", "127.0.0.1:0", "--log", "error", *args]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | env)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise AssertionError("the server did not start: its standard error says why")
        ready: dict[str, str] = json.loads(line)
        self.url, self.key = ready["url"], ready["key"]

    def client(self) -> llmsandbox.Client:
        return llmsandbox.Client(self.url, self.key)

    def async_client(self) -> llmsandbox.AsyncClient:
        return llmsandbox.AsyncClient(self.url, self.key)

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server that all tests use."""
    started = Server("--network", "full", "--max-runs", "50")  # and four times as many wait: tests have 200 at once
    yield started
    started.close()


@pytest.fixture
def new_server() -> Iterator[Callable[..., Server]]:
    """A function that starts a server with flags, for one test."""
    started: list[Server] = []

    def start(*args: str) -> Server:
        started.append(Server(*args))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def client(server: Server) -> Iterator[llmsandbox.Client]:
    with server.client() as made:
        yield made


@pytest.fixture
def sandbox(client: llmsandbox.Client) -> Iterator[llmsandbox.Sandbox]:
    with llmsandbox.Sandbox(client=client) as made:
        yield made


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that runs a program with Python's development mode, where every warning is an error."""

    # In development mode, asyncio logs what takes longer than 100 ms.
    quiet = "import logging; logging.getLogger('asyncio').setLevel(logging.ERROR)"

    def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "program.py"
        path.write_text(f"{quiet}\n{code}")
        command = [sys.executable, "-X", "dev", "-W", "error", str(path)]
        return subprocess.run(command, env=os.environ | env, text=True, capture_output=True, timeout=120)

    return run


def answer(body: object, status: str = "200 OK", kind: str = "application/json", more: str = "") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\nConnection: close\r\n{more}\r\n".encode() + data


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """A function that has a peer answer each connection with the next of some bytes, and returns its URL."""
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def start(*answers: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            for data in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1)
                    connection.sendall(data)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass  # a peer that closes before it has read all would reset the connection

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for thread in threads:
        thread.join(30)
    for listener in listeners:
        listener.close()
