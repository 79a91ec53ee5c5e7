"""Descriptions of sandboxes, files and kernels, as the server gives them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llmsandbox._json import MalformedError, Object
from llmsandbox._request import received_id


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox of the server. `deadline` is when it ends."""

    id: str
    language: str
    image: str
    backend: str
    created: datetime.datetime
    deadline: datetime.datetime | None
    paused: bool
    labels: Mapping[str, str]


@dataclass(frozen=True)
class FileInfo:
    """A file of a sandbox.

    `type` is "file", "directory", "link" or "other". `size` is in bytes, `mode` has the permissions, and `link` is where a link
    leads to.
    """

    name: str
    type: str
    size: int
    mode: int
    modified: datetime.datetime
    link: str = ""


@dataclass(frozen=True)
class Volume:
    """A directory that stays until it is removed. `size_limit` is in bytes; None: nothing bounds it."""

    name: str
    created: datetime.datetime
    labels: Mapping[str, str]
    size_limit: int | None


@dataclass(frozen=True)
class VolumeMount:
    """Where a sandbox has a volume: at an absolute path, below /sandbox or a new one."""

    name: str
    path: str
    read_only: bool = False


@dataclass(frozen=True)
class Port:
    """A TCP port that a program in a sandbox listens on, at an address."""

    port: int
    address: str


@dataclass(frozen=True)
class Share:
    """An address by which anybody can use a port in a browser until a time."""

    url: str
    expires: datetime.datetime


@dataclass(frozen=True)
class Response:
    """What a server inside a sandbox answers. `headers` are the first of each name, in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """The body as text in UTF-8."""
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True)
class PoolInfo:
    """The sandboxes that a server keeps ready for programs with one of their own: `kept` for each of the `languages`.

    `hits` and `misses` count programs that found one or waited, since the server was started.
    """

    languages: list[str]
    kept: int
    ready: int
    creating: int
    in_use: int
    waiting: int
    hits: int
    misses: int


@dataclass(frozen=True)
class ProcessInfo:
    """A program that was started in a sandbox.

    `pid` is that of the sandbox. If not `running`, it has ended, and what it has started has not. `cpu_time` is in seconds and `memory` in
    bytes, both of it and of what it has started.
    """

    id: int
    pid: int
    argv: list[str]
    started: datetime.datetime
    running: bool
    cpu_time: float
    memory: int


@dataclass(frozen=True)
class Copied:
    """What was copied: how many files, and bytes of their content. `skipped` lists what was left out, such as symbolic links."""

    files: int
    bytes: int
    skipped: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Variable:
    """A variable of a kernel. `value` is the beginning of its representation."""

    name: str
    type: str
    value: str


@dataclass(frozen=True)
class Completion:
    """What could stand in a place of code: `matches` may take the place of code[start:end]."""

    matches: list[str]
    start: int
    end: int


@dataclass(frozen=True)
class Secret:
    """A value that never enters the sandbox.

    There, the environment variable `name` has a placeholder. In headers and queries of requests to `hosts`, the value takes its
    place; with `body`, in their bodies, too. The sandbox needs a network that reaches the hosts.
    """

    name: str
    value: str = field(repr=False)
    hosts: Sequence[str]
    body: bool = False


def volume_mounts(volumes: Sequence[VolumeMount]) -> list[dict[str, object]]:
    """Return the volumes of a request."""
    return [{"name": v.name, "path": v.path, "read_only": v.read_only} for v in volumes]


def parse_sandbox(o: Object) -> SandboxInfo:
    """Return a sandbox of the API."""
    return SandboxInfo(
        id=received_id(o),
        language=o.text("language"),
        image=o.text("image"),
        backend=o.text("backend"),
        created=_time(o.text("created")),
        deadline=_time(o.text("deadline")) if o.text("deadline") else None,
        paused=o.flag("paused"),
        labels=o.text_map("labels"),
    )


def parse_process(o: Object) -> ProcessInfo:
    """Return a program of the API."""
    return ProcessInfo(
        id=o.integer("id"),
        pid=o.integer("pid"),
        argv=o.texts("argv"),
        started=_time(o.text("started")),
        running=o.flag("running"),
        cpu_time=o.number("cpu_ms") / 1000,
        memory=o.integer("memory_bytes"),
    )


def parse_volume(o: Object) -> Volume:
    """Return a volume of the API."""
    return Volume(o.text("name"), _time(o.text("created")), o.text_map("labels"), o.integer("size_bytes") or None)


def parse_share(o: Object) -> Share:
    """Return a share of the API."""
    url = o.text("url")
    if not url.startswith(("https://", "http://")) or not url.isascii() or not url.isprintable():
        raise MalformedError("the server's answer cannot be used: the address of a share is no URL")
    return Share(url, _time(o.text("expires")))


def parse_pool(o: Object) -> PoolInfo:
    """Return the pool of the API."""
    names = ("kept", "ready", "creating", "in_use", "waiting", "hits", "misses")
    return PoolInfo(o.texts("languages"), *(o.integer(name) for name in names))


def parse_file(o: Object) -> FileInfo:
    """Return a file of the API."""
    mode = o.text("mode")
    if re.fullmatch("[0-7]{1,6}", mode) is None:
        raise MalformedError("the server's answer cannot be used: the mode of a file is malformed")
    return FileInfo(o.text("name"), o.text("type"), o.integer("size_bytes"), int(mode, 8), _time(o.text("modified")), o.text("link"))


def _time(text: str) -> datetime.datetime:
    """Return a time of RFC 3339, whose fraction may have more digits than Python's times."""
    match = re.fullmatch(r"([0-9-]{10}T[0-9:]{8})(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})", text)
    if match is None:
        raise MalformedError("the server's answer cannot be used: a time is malformed")
    seconds, fraction, zone = match.groups()
    try:
        return datetime.datetime.fromisoformat(f"{seconds}.{(fraction or '.')[1:7]:0<6}{'+00:00' if zone == 'Z' else zone}")
    except ValueError:
        raise MalformedError("the server's answer cannot be used: a time is malformed") from None
