"""Tar archives that a server sends, as they come in pieces of any size, and headers of those that are sent to it.

An attacker may have made what comes. So no more than the format of the server is read: regular files and directories, with names that
lead nowhere else, and within limits. Anything else is an error that names the entry.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from llmsandbox._errors import printable
from llmsandbox._json import MalformedError

BLOCK = 512
MAX_RECORDS = 64 << 10  # bytes of an extended header, which has a name above all
MAX_PADDING = 1 << 20  # bytes after the end
MAX_NAME = 4095
MAX_DEPTH = 256
WINDOWS = os.name == "nt"

_REFUSED = {
    b"1": "it is a hard link",
    b"2": "it is a symbolic link",
    b"3": "it is a device",
    b"4": "it is a device",
    b"6": "it is a FIFO",
}
_RESERVED = {"CON", "PRN", "AUX", "NUL", *(f"{kind}{n}" for kind in ("COM", "LPT") for n in "123456789¹²³")}


class Sink(Protocol):
    """Takes what an archive has, in its order. Paths are the names that lead to an entry; the archive's own directory has none."""

    def directory(self, path: list[str]) -> None: ...

    def file(self, path: list[str], size: int, executable: bool) -> None:
        """Begin a file, of which so many bytes come by `write`, and then `end`."""
        ...

    def write(self, data: bytes) -> None: ...

    def end(self) -> None: ...


def shown(name: str) -> str:
    """Return the name of an entry as messages have it."""
    return printable(ascii(name), 200)


def refused(name: str, why: str) -> MalformedError:
    """Return the exception for an entry that is not taken."""
    return MalformedError(f"the server's archive cannot be used: entry {shown(name)}: {why}")


def damaged(why: str) -> MalformedError:
    """Return the exception for an archive that cannot be read."""
    return MalformedError(f"the server's archive cannot be used: it is damaged: {why}")


class Decoder:
    """Decodes one archive, and hands what is in it to a sink."""

    def __init__(self, sink: Sink) -> None:
        self.done = False
        self._sink = sink
        self._buffer = bytearray()
        self._step: Callable[[], bool] = self._read_header  # reads from the buffer; False: it needs more
        self._left = 0  # bytes of the content
        self._records = 0  # bytes of the extended header
        self._extended: dict[bytes, bytes] = {}  # what it says of the next entry
        self._padding = 0

    def feed(self, data: bytes) -> None:
        """Take what has come."""
        self._buffer += data
        while self._step():
            pass

    def finish(self) -> None:
        """Fail unless the archive has come to its end."""
        if not self.done:
            raise damaged("it ends too early")

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _read_header(self) -> bool:
        if len(self._buffer) < BLOCK:
            return False
        block = self._take(BLOCK)
        if not any(block):
            self._step = self._read_second_zeros
            return True
        unsigned = sum(block) - sum(block[148:156]) + 8 * ord(" ")
        if _octal(block[148:156]) != unsigned:
            raise damaged("the checksum of a header is wrong")
        if block[257:265] != b"ustar\x0000":
            raise damaged("a header is not of the POSIX format")
        kind, size = block[156:157], _octal(block[124:136])
        if kind == b"x":
            if self._extended or not 0 < size <= MAX_RECORDS:
                raise damaged("an extended header is empty, too large, or of another one")
            self._records = size
            self._step = self._read_records
            return True
        extended, self._extended = self._extended, {}
        prefix, name = _text(block[345:500]), _text(block[:100])
        self._begin(kind, extended.get(b"path", prefix + b"/" + name if prefix else name), _size(extended, size), _octal(block[100:108]))
        return True

    def _begin(self, kind: bytes, encoded: bytes, size: int, mode: int) -> None:
        name = os.fsdecode(encoded) if not WINDOWS else encoded.decode("utf-8", "backslashreplace")
        if kind not in (b"0", b"\0", b"5"):
            raise refused(name, _REFUSED.get(kind, "it is neither a file nor a directory"))
        path = _split(name)
        if kind == b"5":
            if size:
                raise refused(name, "it is a directory with content")
            self._sink.directory(path)
            return
        if name.endswith("/"):
            raise refused(name, "it is a file with the name of a directory")
        self._sink.file(path, size, bool(mode & 0o100))
        self._left = size
        self._padding = -size % BLOCK
        self._step = self._read_content

    def _read_content(self) -> bool:
        if self._left:
            data = self._take(self._left)
            self._left -= len(data)
            if data:
                self._sink.write(data)
            if self._left:
                return False
        if len(self._buffer) < self._padding:
            return False
        self._take(self._padding)
        self._sink.end()
        self._step = self._read_header
        return True

    def _read_records(self) -> bool:
        whole = self._records + -self._records % BLOCK
        if len(self._buffer) < whole:
            return False
        data = self._take(whole)[: self._records]
        while data:
            digits, space, _ = data[:10].partition(b" ")
            length = int(digits) if space and digits.isdigit() else 0
            record, data = data[:length], data[length:]
            key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
            if not key or not equals or len(record) != length or not record.endswith(b"\n"):
                raise damaged("an extended header is malformed")
            if key.startswith(b"GNU.sparse."):
                raise damaged("a file has holes, which are not taken")
            self._extended[key] = value
        self._step = self._read_header
        return True

    def _read_second_zeros(self) -> bool:
        if len(self._buffer) < BLOCK:
            return False
        if any(self._take(BLOCK)) or self._extended:
            raise damaged("its end is malformed")
        self.done, self._padding = True, 0
        self._step = self._read_padding
        return True

    def _read_padding(self) -> bool:
        self._padding += len(self._buffer)
        if self._padding > MAX_PADDING or any(self._buffer):
            raise damaged("there is more after its end")
        self._buffer.clear()
        return False


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _octal(field: bytes) -> int:
    digits = field.rstrip(b"\0 ").lstrip(b" ")
    if digits.strip(b"01234567"):
        raise damaged("a number is malformed")
    return int(digits or b"0", 8)


def _size(extended: dict[bytes, bytes], size: int) -> int:
    text = extended.get(b"size")
    if text is None:
        return size
    if not text.isdigit() or len(text) > 18:
        raise damaged("a number is malformed")
    return int(text)


def _split(name: str) -> list[str]:
    """Return the names that lead to an entry. There are none for the archive's own directory."""
    if name.startswith("/"):
        raise refused(name, "its name is absolute")
    if len(name) > MAX_NAME:
        raise refused(name, "its name is too long")
    if "\0" in name:
        raise refused(name, "its name has a NUL byte")
    path = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in path:
        raise refused(name, "its name has .. in it")
    if len(path) > MAX_DEPTH:
        raise refused(name, f"it lies deeper than {MAX_DEPTH} directories")
    for part in path if WINDOWS else ():
        if any(c in '\\/:*?"<>|' or c < " " for c in part) or part[-1] in ". " or part.partition(".")[0].rstrip().upper() in _RESERVED:
            raise refused(name, "Windows has no such name")
    return path
