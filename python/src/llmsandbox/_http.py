"""HTTP/1.1 without input and output: the head of a request, and a decoder of the answer.

The blocking and the asyncio client share it. http.client could only serve the former, and takes longer to import than the
rest of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

MAX_HEAD = 64 << 10
MAX_CHUNK_LINE = 1 << 10


class ProtocolError(Exception):
    """The peer does not speak HTTP as it should."""


def encode_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """Return the head of a request. The target is percent-encoded already."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if any(c in line for line in lines for c in "\r\n\0"):
        raise ValueError("a header has a line break in it")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Decoder:
    """Decodes the answer to one request, as it comes in pieces of any size."""

    def __init__(self, upgrade: bool = False) -> None:
        self._upgrade = upgrade  # the server may switch to another protocol
        self.status = 0  # until the head has come
        self.headers: dict[str, str] = {}  # the first of each name
        self.fields: list[tuple[str, str]] = []  # all headers
        self.trailers: dict[str, str] = {}
        self.proceed = False  # 100 Continue has come
        self.done = False
        self.keep_alive = False  # another request can follow once it is done
        self._buffer = bytearray()
        self._step: Callable[[bytearray], bool] = self._read_head  # reads from the buffer; False: it needs more
        self._left = 0  # bytes of the body or of a chunk

    def feed(self, data: bytes) -> bytes:
        """Take what has come, where b"" is the end of the connection, and return what it has of the body."""
        if not data:
            return self._end()
        self._buffer += data
        body = bytearray()
        while not self.done and self._step(body):
            pass
        if self.done and self._buffer:
            self.keep_alive = False  # nothing was asked for that this could answer
        return bytes(body)

    def _end(self) -> bytes:
        self.keep_alive = False
        if self._step == self._read_to_end:
            self.done = True
        if not self.done:
            raise ProtocolError("the connection ended too early")
        return b""

    def _line(self, most: int) -> bytes | None:
        at = self._buffer.find(b"\n", 0, most)
        if at < 0:
            if len(self._buffer) >= most:
                raise ProtocolError("a line of the answer is too long")
            return None
        line = bytes(self._buffer[:at]).rstrip(b"\r")
        del self._buffer[: at + 1]
        return line

    def _read_head(self, _body: bytearray) -> bool:
        ends = [at for at in (self._buffer.find(b"\r\n\r\n", 0, MAX_HEAD), self._buffer.find(b"\n\n", 0, MAX_HEAD)) if at >= 0]
        if not ends:
            if len(self._buffer) >= MAX_HEAD:
                raise ProtocolError("the head of the answer is too long")
            return False
        end = min(ends)
        head = bytes(self._buffer[:end]).decode("latin-1")
        del self._buffer[: end + (4 if self._buffer.startswith(b"\r\n\r\n", end) else 2)]
        first, *lines = head.replace("\r\n", "\n").split("\n")
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or len(code) != 3 or not (code.isascii() and code.isdigit()) or code < "100":
            raise ProtocolError("the answer is not HTTP")
        if code == "101" and not self._upgrade:
            raise ProtocolError("the server switches to another protocol")
        if code.startswith("1") and code != "101":
            self.proceed = self.proceed or code == "100"
            return True
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise ProtocolError("a header of the answer is malformed")
            key = name.lower()
            if key in headers and key in ("content-length", "transfer-encoding"):
                raise ProtocolError(f"the answer has more than one header {name}")
            headers.setdefault(key, value.strip())
            self.fields.append((name, value.strip()))
        self.status, self.headers = int(code), headers
        options = headers.get("connection", "").lower().split(",")
        self.keep_alive = version == "HTTP/1.1" and "close" not in (option.strip() for option in options)
        self._begin_body()
        return True

    def _begin_body(self) -> None:
        length, coding = self.headers.get("content-length"), self.headers.get("transfer-encoding")
        if self.status in (204, 304):
            self.done = True
        elif self.status == 101:
            self._step = self._read_to_end  # it is the other protocol's
        elif coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise ProtocolError("the transfer encoding of the answer is not known")
            self._step = self._read_chunk_size
        elif length is not None:
            if not (length.isascii() and length.isdigit()) or len(length) > 18:
                raise ProtocolError("the length of the answer is malformed")
            self._left = int(length)
            self.done = self._left == 0
            self._step = self._read_sized
        else:
            self._step = self._read_to_end

    def _take(self, body: bytearray) -> None:
        piece = self._buffer[: self._left]
        body += piece
        del self._buffer[: len(piece)]
        self._left -= len(piece)

    def _read_sized(self, body: bytearray) -> bool:
        self._take(body)
        self.done = self._left == 0
        return False

    def _read_to_end(self, body: bytearray) -> bool:
        body += self._buffer
        self._buffer.clear()
        return False

    def _read_chunk_size(self, _body: bytearray) -> bool:
        line = self._line(MAX_CHUNK_LINE)
        if line is None:
            return False
        size = line.partition(b";")[0].strip()
        if not size or len(size) > 15 or size.strip(b"0123456789abcdefABCDEF"):
            raise ProtocolError("the size of a chunk is malformed")
        self._left = int(size, 16)
        self._step = self._read_chunk if self._left else self._read_trailer
        return True

    def _read_chunk(self, body: bytearray) -> bool:
        self._take(body)
        if self._left:
            return False
        self._step = self._read_chunk_end
        return True

    def _read_chunk_end(self, _body: bytearray) -> bool:
        line = self._line(MAX_CHUNK_LINE)
        if line is None:
            return False
        if line:
            raise ProtocolError("a chunk is longer than its size")
        self._step = self._read_chunk_size
        return True

    def _read_trailer(self, _body: bytearray) -> bool:
        line = self._line(MAX_HEAD)
        if line is None:
            return False
        self._left += len(line)  # of all trailers together
        if self._left > MAX_HEAD:
            raise ProtocolError("the trailers of the answer are too long")
        self.done = line == b""
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            self.trailers[name.strip().lower()] = value.strip()
        return True
