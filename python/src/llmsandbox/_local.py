"""The private server of this process: a `llmsandbox serve` that only this user can connect to and that ends with the process."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from llmsandbox._endpoint import Endpoint
from llmsandbox._errors import StartError, printable

MAX_READY = 4 << 10
MAX_LOG = 4 << 10
START_TIME = 60.0
STOP_TIME = 60.0  # a server takes up to 30 seconds


class Server:
    """A server process. It ends when its standard input does, which the system closes however this process ends."""

    def __init__(self, args: tuple[str, ...]) -> None:
        command = find_command()
        try:
            self.socket = os.path.join(_directory(), f"{os.getpid()}-{secrets.token_hex(8)}.sock")
            self._log = tempfile.TemporaryFile()
        except OSError as e:
            raise StartError(f"there is no place for the private server's socket and log: {e}; set XDG_RUNTIME_DIR and TMPDIR") from e
        own = ["--until-stdin-closes", "--listen", f"unix:{self.socket}", "--log", "error"]
        # Code has no network unless a request asks for it, and sandboxes end with this process.
        defaults = ["--network", "full", "--ttl", "24h"]
        try:
            # A session of its own, so that Ctrl-C interrupts this program, which then ends its runs, and not the server.
            self.process = subprocess.Popen(
                [command, "serve", *own, *defaults, *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                start_new_session=True,
            )
        except OSError as e:
            self._remove()
            raise StartError(f"the command {command} could not be started: {e}") from e
        self.endpoint = Endpoint("localhost", socket=self.socket, process=os.getpid())
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self) -> None:
        """Wait until the server serves, of which it prints a line."""
        assert self.process.stdout is not None
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self.process.kill()

        timer = threading.Timer(START_TIME, give_up)
        timer.start()
        try:
            line = self.process.stdout.readline(MAX_READY)
        finally:
            timer.cancel()
            timer.join()
        if not line:
            code = self.process.wait()
            how = f"within {START_TIME:.0f} seconds" if late.is_set() else f"(exit code {code})"
            raise StartError(start_failure(how, self._said()))

    def _said(self) -> str:
        """Return the end of what the server has printed on its standard error."""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - MAX_LOG))
        return printable(self._log.read(MAX_LOG).decode("utf-8", "replace"))

    @property
    def runs(self) -> bool:
        """Whether the server runs."""
        return self.process.poll() is None

    def end(self) -> None:
        """Have the server end, with its sandboxes."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def stop(self) -> None:
        """Have the server end, and wait for that."""
        self.end()
        try:
            self.process.wait(STOP_TIME)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._remove()

    def _remove(self) -> None:
        self._log.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)  # which a server that was killed has left

    def leave(self) -> None:
        """Close what a forked process has of the server, which is its parent's."""
        assert self.process.stdin is not None and self.process.stdout is not None
        for file in (self.process.stdin, self.process.stdout, self._log):
            file.close()
        self.process.returncode = 0  # it is not this process's to wait for


def arguments(isolation: str | None, args: Sequence[str]) -> tuple[str, ...]:
    """Return the flags of a private server."""
    if isolation is None:
        isolation = os.environ.get("LLMSANDBOX_ISOLATION") or None
    if isolation is None:
        return tuple(args)
    # The isolation process cannot enforce the limits that serve sets by default.
    best_effort = ["--best-effort"] if isolation == "process" else []
    return ("--isolation", isolation, *best_effort, *args)


def _directory() -> str:
    """Return the directory for this user's sockets. Other users cannot enter it."""
    path = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir(), f"llmsandbox-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    made = os.lstat(path)
    if not stat.S_ISDIR(made.st_mode) or made.st_uid != os.getuid() or made.st_mode & 0o077:
        raise StartError(f"{path} is not a directory of this user that is closed to all others: remove it, or set XDG_RUNTIME_DIR")
    return path


def find_command() -> str:
    """Return the path of the command: the one that came with this package, or else that on the PATH."""
    if sys.platform == "win32":
        raise StartError("sandboxes need a Unix system: use a server with llmsandbox.Client(url=..., api_key=...)")
    packed = Path(__file__).parent / "_bin" / "llmsandbox"
    if packed.exists():
        return str(packed)
    found = shutil.which("llmsandbox")
    if found is None:
        raise StartError(
            "the command llmsandbox is neither in this package nor on the PATH: install a wheel of this package for this system, "
            "put the command on the PATH, or use a server with llmsandbox.Client(url=..., api_key=...)"
        )
    return found


def start_failure(how: str, said: str) -> str:
    """Return the message for a server that did not start."""
    message = f"the private server did not start {how}: {said or 'it printed nothing'}"
    if "--isolation process" in said:
        message += '; in Python, that is llmsandbox.Client(isolation="process")'
    return message


class Connection(Protocol):
    """A connection to a private server."""

    def end(self) -> None:
        """Shut the connection down, also while a thread waits for an answer, so that the server sees its end."""


_servers: dict[tuple[str, ...], Server] = {}
_lock = threading.Lock()
connections: set[Connection] = set()  # that are open. What happens to it is atomic


def endpoint(args: tuple[str, ...]) -> Endpoint:
    """Return where the private server with these flags is. Start it if it does not run."""
    with _lock:
        server = _servers.get(args)
        if server is not None and not server.runs:
            del _servers[args]
            server.stop()
            server = None
        if server is None:
            server = _servers[args] = Server(args)
        return server.endpoint


def _stop_all() -> None:
    for connection in list(connections):
        connection.end()  # or the server would wait for requests that are under way
    for server in _servers.values():
        server.end()
    for server in _servers.values():
        server.stop()
    _servers.clear()


def _leave_all() -> None:
    """Leave the servers to the parent after fork: they end when all ends of their standard input are closed."""
    for server in _servers.values():
        server.leave()
    _servers.clear()
    connections.clear()
    _lock.release()


atexit.register(_stop_all)
if sys.platform != "win32":
    # No server is started during a fork: the child would not know of it.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_leave_all)
