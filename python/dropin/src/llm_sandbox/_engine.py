"""The servers that sessions use: one private server of this process for each configuration, which equal sessions share."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace

import llmsandbox
from llmsandbox._local import find_command
from llmsandbox._sync.session import Session

from llm_sandbox.exceptions import ContainerError, ValidationError

LONGEST = 720 * 3600.0
"""Seconds that a run may take on a private server where nothing else limits it."""

# What a private server allows besides: sessions last until they are closed, and there can be many of them.
_SERVER = ("--ttl", "8760h", "--max-ttl", "8760h", "--timeout", "720h", "--warm", "0", "--max-sandboxes", "10000", "--max-runs", "256")

_lock = threading.Lock()


@dataclass(frozen=True)
class Engine:
    """What runs sandboxes: a backend of `llmsandbox serve`, its flags, and the variables that name its address."""

    backend: str = "local"
    flags: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    reach: str = ""
    """The engine's own network, where the flags set one."""

    def with_flags(self, *flags: str) -> Engine:
        """Return the engine with further flags."""
        return replace(self, flags=(*self.flags, *flags))

    @property
    def is_remote(self) -> bool:
        """Whether LLMSANDBOX_URL names a server, which then runs everything."""
        return bool(os.environ.get("LLMSANDBOX_URL"))

    def client(self) -> llmsandbox.Client:
        """Return the client of the server. It is not started before it is used."""
        if self.is_remote:
            if self.backend != "local" or self.flags or self.env:
                asked = " ".join(("--backend", self.backend, *self.flags))
                raise ValidationError(
                    f"LLMSANDBOX_URL names a server, whose operator chooses backend, image and limits, but the session asks for {asked}: "
                    "leave the backend and these settings out, or unset LLMSANDBOX_URL"
                )
            return llmsandbox.Client()
        with _lock:
            client = _clients.get(self)
            if client is None:
                client = _clients[self] = _PrivateClient(self)
            return client

    def arguments(self) -> tuple[str, ...]:
        """Return the flags of the private server. Servers of different addresses have different ones, so that none is shared."""
        names = () if not self.env else ("--label", "llm-sandbox-engine=" + hashlib.sha256(json.dumps(self.env).encode()).hexdigest()[:32])
        return ("--backend", self.backend, *_SERVER, *_limits(self), *self.flags, *names)

    def command(self, *args: str, timeout: float = 600) -> str:
        """Run a command of llmsandbox that is about the engine, and return its output."""
        try:
            done = subprocess.run(
                [find_command(), *args], env={**os.environ, **dict(self.env)}, capture_output=True, text=True, timeout=timeout, check=False
            )
        except (OSError, subprocess.TimeoutExpired, llmsandbox.StartError) as e:
            raise ContainerError(f"llmsandbox {args[0]}: {e}") from e
        if done.returncode != 0:
            raise ContainerError(f"llmsandbox {args[0]}: {done.stderr.strip()[-4096:]}")
        return done.stdout


def _limits(engine: Engine) -> Iterator[str]:
    """Yield the limits of a sandbox that the flags do not set."""
    defaults = {"--memory": "2g", "--cpus": "unlimited", "--pids": "512"}
    if engine.backend == "local":
        defaults["--disk"] = "4g"
    if engine.backend == "kubernetes":
        del defaults["--pids"]  # it is the node's
    for name, value in defaults.items():
        if name not in engine.flags:
            yield from (name, value)


class _PrivateClient(llmsandbox.Client):
    """A client whose private server has an engine's variables in its environment, also when it is started again."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(server_args=engine.arguments())
        self._env = dict(engine.env)
        self._is_local = engine.backend == "local"

    def _session(self) -> Session:
        if self._is_local:
            return super()._session()  # for which the variables mean nothing
        # One at a time, so that no other server is started with these variables.
        with _starting, _environment(self._env):
            return super()._session()


_starting = threading.Lock()
_clients: dict[Engine, llmsandbox.Client] = {}


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Generator[None]:
    """Set variables of this process for a while: the package llmsandbox starts servers with its own environment."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _after_fork() -> None:
    global _lock, _starting
    _lock, _starting = threading.Lock(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@dataclass(frozen=True)
class Known:
    """A sandbox that a session of this process has opened."""

    engine: Engine
    sandbox_id: str


_known: dict[str, Known] = {}


def remember(container_id: str, known: Known) -> None:
    """Have a sandbox found by its own id and by that of its container."""
    _known[container_id] = _known[known.sandbox_id] = known


def forget(container_id: str) -> None:
    """Forget a sandbox that is removed."""
    found = _known.pop(container_id, None)
    if found is not None:
        _known.pop(found.sandbox_id, None)


def find(container_id: str) -> Known | None:
    """Return the sandbox of this process with an id, or of the container that a prefix of its id names."""
    if container_id in _known:
        return _known[container_id]
    matches = {known for name, known in list(_known.items()) if len(container_id) >= 12 and name.startswith(container_id)}
    return matches.pop() if len(matches) == 1 else None
