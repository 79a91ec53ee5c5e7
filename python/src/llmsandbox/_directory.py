"""Directories of this machine as archives: those that are sent, and what a server sends for one."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from llmsandbox._describe import Copied
from llmsandbox._errors import Error, TooLargeError
from llmsandbox._tar import BLOCK, MAX_DEPTH, Decoder, refused, shown

PIECE = 64 << 10
MAX_BYTES = 4 << 30
MAX_FILES = 1 << 20
MAX_SKIPPED = 100

MEMBER = "copy"  # the name that what was asked for has in the server's archive

_HAS_DIR_FD = {os.open, os.mkdir} <= os.supports_dir_fd
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Packing:
    """The archive of a file or directory. Symbolic links in a directory are left out, and listed in `skipped`."""

    def __init__(self, source: Path, name: str = "") -> None:
        self.skipped: list[str] = []
        self._source = source
        self._name = name  # of a file

    def pieces(self) -> Iterator[bytes]:
        """Yield the archive. All that goes wrong is an Error."""
        self.skipped.clear()
        buffer = bytearray()
        try:
            for data in self._file(self._source, self._name) if self._name else self._directory(self._source, "", 0):
                buffer += data
                if len(buffer) >= PIECE:
                    yield bytes(buffer)
                    buffer.clear()
        except OSError as e:
            raise Error(f"what is sent cannot be read: {e}") from e
        yield bytes(buffer) + bytes(2 * BLOCK)

    def _directory(self, path: Path, prefix: str, depth: int) -> Iterator[bytes]:
        if depth > MAX_DEPTH:
            raise Error(f"{path} lies deeper than {MAX_DEPTH} directories, which is not sent")
        with os.scandir(path) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            name = prefix + entry.name
            if entry.is_symlink():
                if len(self.skipped) < MAX_SKIPPED:
                    self.skipped.append(f"{shown(name)}: it is a symbolic link")
            elif entry.is_dir(follow_symlinks=False):
                yield _header(name + "/", 0, 0o755, directory=True)
                yield from self._directory(Path(entry.path), name + "/", depth + 1)
            else:
                yield from self._file(Path(entry.path), name)

    def _file(self, path: Path, name: str) -> Iterator[bytes]:
        # Not by the name alone: what was a file when the directory was listed may be a link or a FIFO now.
        flags = _READ if not self._name else _READ & ~getattr(os, "O_NOFOLLOW", 0)
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Error(f"{path} is neither a file nor a directory, and is not sent")
            yield _header(name, status.st_size, 0o755 if status.st_mode & 0o100 else 0o644)
            left = status.st_size
            while left:
                data = file.read(min(PIECE, left))
                if not data:
                    raise Error(f"{path} has become shorter while it was sent")
                left -= len(data)
                yield data
        yield bytes(-status.st_size % BLOCK)


def _header(name: str, size: int, mode: int, *, directory: bool = False) -> bytes:
    import tarfile

    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, mode
    if directory:
        entry.type = tarfile.DIRTYPE
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


class Receiver:
    """Makes what comes as an archive, in a directory of its own beside the target, which it takes the place of at the end.

    The target must not exist or be an empty directory, or for a file, be one. So nothing that is there is followed or written to,
    and an entry that comes twice, also by a name that is the same to the file system, is refused by the system.
    """

    def __init__(self, target: Path, max_bytes: int, max_files: int) -> None:
        self._target = target
        self._max_bytes, self._max_files = max_bytes, max_files
        self._files, self._bytes, self._entries = 0, 0, 0
        self._made = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        self._made.mkdir(0o700)
        self._open: list[tuple[str, int]] = []  # directories on the way to the last entry
        self._file = -1
        self._name = ""
        self._decoder = Decoder(self)
        try:
            self._root = os.open(self._made, _DIRECTORY) if _HAS_DIR_FD else -1
        except BaseException:
            self._made.rmdir()
            raise

    def feed(self, data: bytes) -> None:
        """Take a piece of the archive."""
        self._decoder.feed(data)

    def finish(self, skipped: str) -> Copied:
        """Put what was received in its place. The server says how much it has left out."""
        self._decoder.finish()
        if not self._entries:
            raise refused(MEMBER, "there is none")
        made = self._made / MEMBER
        (os.rename if made.is_dir() else os.replace)(made, self._target)
        left_out: list[str] = []
        if skipped.isascii() and skipped.isdigit() and skipped.strip("0"):
            left_out = [f"{skipped[:20]} by the server: links, special files, or names or contents that cannot be read"]
        return Copied(self._files, self._bytes, left_out)

    def close(self) -> None:
        """Remove what is left of it."""
        for descriptor in [self._file, *(opened for _, opened in self._open), self._root]:
            if descriptor >= 0:
                os.close(descriptor)
        self._file, self._root, self._open = -1, -1, []
        shutil.rmtree(self._made, ignore_errors=True)

    def directory(self, path: list[str]) -> None:
        self._enter(path, 0)
        if len(path) == 1:
            self._check_target()
        try:
            name, at = self._at(path)
            os.mkdir(name, 0o755, dir_fd=at)
        except OSError as e:
            raise self._failed(e) from e

    def file(self, path: list[str], size: int, executable: bool) -> None:
        self._enter(path, size)
        self._files += 1
        try:
            name, at = self._at(path)
            self._file = os.open(name, _NEW, 0o755 if executable else 0o644, dir_fd=at)
        except OSError as e:
            raise self._failed(e) from e

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as e:
            e.filename = str(self._target.joinpath(*self._name.split("/")[1:]))
            raise

    def end(self) -> None:
        descriptor, self._file = self._file, -1
        os.close(descriptor)

    def _enter(self, path: list[str], size: int) -> None:
        self._name = "/".join(path)
        if path[:1] != [MEMBER]:
            raise refused(self._name, "it was not asked for")
        self._entries += 1
        self._bytes += size
        if self._entries > self._max_files:
            raise TooLargeError(f"there are more than {self._max_files} files and directories, from {shown(self._name)} on: set max_files")
        if self._bytes > self._max_bytes:
            raise TooLargeError(f"the files have more than {self._max_bytes} bytes, from {shown(self._name)} on: set max_bytes")

    def _check_target(self) -> None:
        try:
            with os.scandir(self._target) as entries:
                there = any(entries)
        except FileNotFoundError:
            there = False
        except NotADirectoryError:
            there = True
        if there or self._target.is_symlink():
            text = "a directory is downloaded to a path that does not exist, or to an empty directory"
            raise FileExistsError(errno.EEXIST, text, str(self._target))

    def _at(self, path: list[str]) -> tuple[str, int | None]:
        """Return how an entry is named, and in which open directory."""
        if not _HAS_DIR_FD:
            return str(self._made.joinpath(*path)), None
        above = path[:-1]
        same = 0
        while same < min(len(above), len(self._open)) and above[same] == self._open[same][0]:
            same += 1
        while len(self._open) > same:
            os.close(self._open.pop()[1])
        for name in above[same:]:
            at = self._open[-1][1] if self._open else self._root
            self._open.append((name, os.open(name, _DIRECTORY, dir_fd=at)))
        return path[-1], self._open[-1][1] if self._open else self._root

    def _failed(self, cause: OSError) -> Exception:
        """Return the exception for an entry that could not be made."""
        why = {
            errno.EEXIST: "it is there twice",
            errno.ENOENT: "its directory is not in the archive",
            errno.ENOTDIR: "it is below what is no directory",
            errno.ELOOP: "it is below what is no directory",
            errno.ENAMETOOLONG: "its name is too long",
            errno.EILSEQ: "this system has no such name",
            errno.EINVAL: "this system has no such name",
        }.get(cause.errno or 0)
        return cause if why is None else refused(self._name, why)
