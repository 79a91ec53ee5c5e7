"""Copies of files into and out of the sandbox of a session."""

from __future__ import annotations

import io
import tarfile
import tempfile
from abc import abstractmethod
from contextlib import AbstractContextManager, closing
from pathlib import Path, PurePosixPath
from typing import IO, Any

import llmsandbox
from llmsandbox._request import Request

from llm_sandbox._archive import extract_file, pack
from llm_sandbox._existing import ExistingContainer
from llm_sandbox.core.session_base import BaseSession
from llm_sandbox.exceptions import SandboxError

MAX_ARCHIVE = 1 << 30  # of get_archive, which is kept in memory


class FileSession(BaseSession):
    """The part of a session that copies files: directories go as tar archives, through the server."""

    _existing: ExistingContainer | None
    _most_copied: int | None = None  # bytes of one copy out

    @abstractmethod
    def _opened(self) -> llmsandbox.Sandbox:
        """Return the sandbox of an open session."""

    @abstractmethod
    def _translated(self, what: str) -> AbstractContextManager[None]:
        """Raise the exceptions of this package in place of those of llmsandbox."""

    def _absolute(self, path: str) -> str:
        return str(PurePosixPath(self.config.workdir) / path)

    def copy_to_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of this machine into the sandbox. Links in the directory are left out."""
        target = PurePosixPath(self._absolute(self._validate_container_path(dest)))
        source = self._existing_source(src)
        self._log(f"Copying {src} to {target}")
        if self._existing is not None:
            self._existing.upload(str(source), str(target))
            return
        sandbox = self._opened()
        with tempfile.NamedTemporaryFile(prefix="llm-sandbox-") as file:
            pack(source, target.name, file, lambda name: self._log(f"{name} is left out: it is neither a file nor a directory", "warning"))
            file.flush()
            with self._translated(f"copy_to_runtime: {target}"):
                request = Request("PUT", "/files/archive", [("path", str(target.parent))], content=Path(file.name))
                sandbox._opened().json(request)

    def copy_from_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of the sandbox to this machine. A directory comes out below `dest`; links are left out."""
        self._log(f"Copying {src} to {dest}")
        with tempfile.TemporaryFile(prefix="llm-sandbox-") as file:
            self._read_archive(src, file, self._most_copied)
            file.seek(0)
            extract_file(file, dest)

    def get_archive(self, path: str) -> tuple[bytes, dict[str, Any]]:
        """Return a file or directory of the sandbox as a tar archive of at most 1 GiB, and its name, size, mode and time."""
        with tempfile.SpooledTemporaryFile(max_size=1 << 20, prefix="llm-sandbox-") as file:
            self._read_archive(path, file, MAX_ARCHIVE)
            file.seek(0)
            bits = file.read()
        if self._existing is not None:
            with tarfile.open(fileobj=io.BytesIO(bits)) as tar:
                first = tar.getmembers()[0]
            mode = first.mode | (1 << 31 if first.isdir() else 0)
            return bits, {"name": first.name, "size": first.size, "mode": mode, "mtime": first.mtime, "linkTarget": ""}
        sandbox = self._opened()
        with self._translated(f"get_archive: {path}"):
            info = sandbox.files.stat(self._absolute(path))
        mode = info.mode | (1 << 31 if info.type == "directory" else 0)  # as Docker has it
        stat = {"name": info.name, "size": info.size, "mode": mode, "mtime": info.modified.isoformat(), "linkTarget": info.link}
        return bits, stat

    def _read_archive(self, path: str, file: IO[bytes], most: int | None) -> None:
        absolute = self._absolute(path)
        if self._existing is not None:
            with tempfile.TemporaryDirectory(prefix="llm-sandbox-") as directory:
                found = self._existing.download(absolute, directory)
                pack(found, found.name, file, lambda name: None)
            return
        sandbox = self._opened()
        with self._translated(f"{path}"):
            answer = sandbox._opened().send(Request("GET", "/files/archive", [("path", absolute)], accept="application/x-tar"))
            with closing(answer):
                size = 0
                while piece := answer.piece():
                    size += len(piece)
                    if most is not None and size > most:
                        raise SandboxError(f"{path} has more than {most} bytes: copy less at a time")
                    file.write(piece)
