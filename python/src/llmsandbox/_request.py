"""Requests of the API, and what their answers mean, without sending them."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, urlencode

from llmsandbox._endpoint import Endpoint
from llmsandbox._errors import APIError, ConnectError, Error, InvalidError, LostError, TooLargeError, api_error
from llmsandbox._json import MalformedError, Object, decode_object

JSON = "application/json"
EVENTS = "text/event-stream"
CONTENT = "application/octet-stream"
ARCHIVE = "application/x-tar"
PROBLEM = "application/problem+json"
TERMINAL = "llmsandbox.terminal"  # the protocol of a WebSocket

MAX_BODY = 8 << 20  # of a request in JSON, by the server
MAX_ANSWER = 8 << 20
MAX_RESULT = 256 << 20  # of a result with its artifacts, and of an event
MAX_READ = 1 << 30  # of a file that is kept in memory
MAX_PROBLEM = 256 << 10
MAX_ID = 40

# How often a request is sent that the server has not begun, and the longest time between two attempts.
ATTEMPTS = 5
LONGEST_WAIT = 30.0
# How long a private server is asked again that is busy, which only this process can have made it: its programs queue.
PATIENCE = 300.0


Content = bytes | Path | Callable[[], Iterator[bytes]]
PIECE = 64 << 10


@dataclass(frozen=True)
class Body:
    """What is sent with a request. Without a length, it is sent in chunks."""

    length: int | None
    pieces: Iterator[bytes]


@dataclass(frozen=True)
class Request:
    """A request. `body` is sent as JSON, and `content` is that of a file or archive: bytes, a file, or a function that yields it."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    body: Mapping[str, object] | None = None
    content: Content | None = None
    accept: str = JSON
    success: int = 200
    also: int = 0  # another status that is a success
    more: Mapping[str, str] | None = None  # headers of a request to a port
    upgrade: Mapping[str, str] | None = None  # headers that ask for a WebSocket
    last_event: str = ""  # behind which a stream of events goes on

    @property
    def target(self) -> str:
        """Path and query as they are sent."""
        return quote(self.path) + ("?" + urlencode(self.query, quote_via=quote) if self.query else "")

    def encoded(self) -> Content:
        """Return what is sent."""
        if self.content is not None:
            return self.content
        if self.body is None:
            return b""
        try:
            data = json.dumps(self.body, ensure_ascii=False, allow_nan=False).encode()
        except UnicodeEncodeError:
            raise InvalidError("an argument has text that is not Unicode (a lone surrogate): write it to a file") from None
        except ValueError as e:
            raise InvalidError(f"an argument cannot be sent: {e}") from None
        if len(data) > MAX_BODY:
            raise TooLargeError(f"the request has more than {MAX_BODY >> 20} MiB: write files instead")
        return data

    def headers(self, length: int | None) -> dict[str, str]:
        """Return the headers that are about the request itself."""
        headers = {"Accept": self.accept, "Accept-Encoding": "identity"}  # so that limits are of what is read
        if self.body is not None or self.content is not None:
            headers["Content-Type"] = JSON if self.content is None else CONTENT
        if self.more is not None:
            headers = {"Accept": "*/*", **self.more, "Accept-Encoding": "identity"}
        headers |= self.upgrade or {}
        if self.last_event:
            headers["Last-Event-ID"] = self.last_event
        if length is None:
            headers["Transfer-Encoding"] = "chunked"
        elif length or self.method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = str(length)
        return headers


@contextmanager
def opened(content: Content) -> Generator[Body, None, None]:
    """Open what is sent."""
    if isinstance(content, bytes):
        yield Body(len(content), iter((content,)))
    elif isinstance(content, Path):
        with content.open("rb") as file:
            length = os.fstat(file.fileno()).st_size
            yield Body(length, _file_pieces(file, length))
    else:
        yield Body(None, _chunks(content()))


def _file_pieces(file: BinaryIO, length: int) -> Iterator[bytes]:
    while length > 0:
        try:
            piece = file.read(min(PIECE, length))
        except OSError as e:
            raise Error(f"the file that is sent cannot be read: {e}") from e
        if not piece:
            raise Error("the file that is sent has become shorter meanwhile")
        length -= len(piece)
        yield piece


def _chunks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def given(**members: object) -> dict[str, object]:
    """Return the members of a body that were given."""
    return {name: value for name, value in members.items() if value is not None and value != {} and value != []}


def texts(name: str, values: Sequence[str]) -> list[str]:
    """Return a list of texts. A text alone would be a list of its characters."""
    if isinstance(values, str):
        raise InvalidError(f"{name}={values!r}: use a list, such as [{values!r}]")
    return list(values)


def label_queries(labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the parameters that ask for sandboxes with labels."""
    for name in labels:
        if "=" in name:
            raise InvalidError(f"the name of a label {name!r} has a '=', which the server cannot be asked for")
    return [("label", f"{name}={value}") for name, value in labels.items()]


def media_type(headers: Mapping[str, str]) -> str:
    """Return the media type of an answer, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> APIError | LostError:
    """Return the exception for an answer that is not a success."""
    if 200 <= status < 300:
        return MalformedError(f"the server answers with the unexpected status {status}: is the address right?")
    if 300 <= status < 400:
        return APIError("the server redirects to another address, where the key is not sent: use that address", status)
    if media_type(headers) != PROBLEM:
        return api_error(status, "", f"the server answers with status {status} and not as this API does: is the address right?")
    try:
        return problem(decode_object(body), status)
    except MalformedError:
        return api_error(status, "", "")


def problem(o: Object, status: int = 0) -> APIError | LostError:
    """Return the exception for a problem of the API."""
    fields = "; ".join(f"{f.text('location')}: {f.text('message')}" for f in o.objects("fields")[:100])
    return api_error(status or o.integer("status"), o.text("code")[:200], o.text("detail") + (f": {fields}" if fields else ""))


def retry_after(request: Request, status: int, code: str, headers: Mapping[str, str]) -> float | None:
    """Return after how many seconds to send a request again, of which nothing was begun; None: not at all."""
    begun_nothing = status == 429 or (
        status == 503 and (request.method == "GET" or code in ("stopping", "not_ready", "service_unavailable"))
    )
    text = headers.get("retry-after", "")
    if not begun_nothing or not (text.isascii() and text.isdigit()) or len(text) > 5:
        return None
    return float(text) if float(text) <= LONGEST_WAIT else None


def is_last(endpoint: Endpoint, code: str, attempt: int, since: float) -> bool:
    """Whether a request that was first sent at a time, by time.monotonic, is not sent again after an attempt."""
    if endpoint.process and code == "busy":
        return time.monotonic() - since > PATIENCE
    return attempt == ATTEMPTS


def checked_id(value: str) -> str:
    """Return an id that is one element of a path."""
    if not value or len(value) > MAX_ID or value.strip("abcdefghijklmnopqrstuvwxyz0123456789-"):
        raise InvalidError(f"{value[:MAX_ID]!r} is not an id")
    return value


def checked_volume(name: str) -> str:
    """Return the name of a volume, which is one element of a path."""
    if re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,45}", name) is None:
        raise InvalidError(f"{name[:MAX_ID]!r} is not the name of a volume: use up to 46 of a-z, 0-9, '_', '.' and '-'")
    return name


def port_path(port: int, path: str) -> str:
    """Return where a path of a port is, below a sandbox."""
    if isinstance(port, bool) or not 1 <= port <= 65535:
        raise InvalidError(f"port {port!r}: use one from 1 to 65535")
    if not path.startswith("/"):
        raise InvalidError(f"path {path!r}: it must begin with a slash")
    return f"/ports/{port}{path}"


def port_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers of a request to a port. Those by which the API is used are not the caller's to set."""
    for name, value in headers.items():
        if name.lower() in _OWN_HEADERS:
            raise InvalidError(f"the header {name} is set here: leave it out")
        if re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) is None or not value.isascii() or not (value.isprintable() or value == ""):
            raise InvalidError(f"the header {name!r} has characters that headers cannot have")
    return headers


_OWN_HEADERS = {
    *("host", "authorization", "x-api-key", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"),
    *("accept-encoding", "user-agent"),
}


def of_port(fields: Sequence[tuple[str, str]]) -> bool:
    """Whether an answer is that of a server inside a sandbox, which the server of the API marks, and not of the latter itself."""
    return any(name.lower() == "content-security-policy" and value.startswith("sandbox allow-scripts") for name, value in fields)


def event_id(value: str) -> str:
    """Return the id of an event of a program, or of none."""
    if value and re.fullmatch(r"[0-9]{1,18}-[0-9]{1,18}", value) is None:
        raise InvalidError(f"{value[:MAX_ID]!r} is not the id of an event")
    return value


def received_id(o: Object) -> str:
    """Return the id of what the server describes."""
    try:
        return checked_id(o.text("id"))
    except InvalidError as e:
        raise MalformedError(f"the server's answer cannot be used: {e}") from None


def size(value: int | str | None) -> int | None:
    """Return a number of bytes that may have a unit, such as "512m" or "2g"."""
    if value is None or isinstance(value, int):
        return value
    number, unit = (value[:-1], value[-1:].lower()) if value[-1:].isalpha() else (value, "")
    if unit not in _UNITS or not (number.isascii() and number.isdigit()) or len(number) > 15:
        raise InvalidError(f"{value!r} is not a size: use a number of bytes, or one with a unit such as '512m' or '2g'")
    return int(number) << _UNITS[unit]


_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def network_body(value: str | Sequence[str] | None) -> dict[str, object] | None:
    """Return what a sandbox may reach: "none", "full" or a list of hosts."""
    if value is None:
        return None
    if isinstance(value, str):
        if value not in ("none", "full"):
            raise InvalidError(f"network={value!r}: use 'none', 'full' or a list of hosts")
        return {"mode": value}
    return {"mode": "allow", "allow": list(value)}


def program(
    code: str,
    language: str | None,
    timeout: float | None,
    args: Sequence[str],
    stdin: str | None,
    env: Mapping[str, str] | None,
    files: Mapping[str, str | bytes] | None,
    libraries: Sequence[str],
    cwd: str | None,
) -> dict[str, object]:
    """Return the body of a request to run code."""
    return given(
        code=code,
        language=language,
        timeout_seconds=timeout,
        args=texts("args", args),
        stdin=stdin,
        env=env,
        files=program_files(files),
        libraries=texts("libraries", libraries),
        dir=cwd,
    )


def program_files(files: Mapping[str, str | bytes] | None) -> dict[str, object]:
    """Return files of a program, where those that are not text are in base64."""
    import base64

    encoded: dict[str, object] = {}
    for name, content in (files or {}).items():
        if isinstance(content, bytes):
            encoded[name] = {"base64": base64.b64encode(content).decode("ascii")}
        else:
            encoded[name] = content
    return encoded


def is_content(request: Request, headers: Mapping[str, str]) -> bool:
    """Whether an answer is a file or archive, as was asked for, whose end can be seen."""
    return media_type(headers) == request.accept and ("content-length" in headers or "transfer-encoding" in headers)


def unreachable(endpoint: Endpoint, cause: OSError) -> ConnectError:
    """Return the exception for a server that no connection leads to."""
    if endpoint.process:
        return ConnectError("the private server of this process has ended, and its sandboxes with it: open another sandbox")
    return ConnectError(f"the server at {endpoint} was not reached: {cause}")


def lost(endpoint: Endpoint, cause: Exception) -> LostError:
    """Return the exception for a request without an answer."""
    server = "the private server of this process" if endpoint.process else f"the server at {endpoint}"
    return LostError(f"the connection to {server} ended: {cause}")
