# Written by unasync.py from _async/files.py. Do not edit it.
"""Files of a sandbox."""

from __future__ import annotations

import builtins
import os
from pathlib import Path
from typing import TYPE_CHECKING

from llmsandbox._sync.copying import receive_archive, receive_file, send_directory
from llmsandbox._describe import Copied, FileInfo, parse_file
from llmsandbox._directory import MAX_FILES
from llmsandbox._errors import InvalidError
from llmsandbox._request import CONTENT, Request, size

if TYPE_CHECKING:
    from llmsandbox._sync.sandbox import Sandbox


class Files:
    """The files of a sandbox. A relative path is below its working directory."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def read(self, path: str) -> bytes:
        """Return a file's content, at most 1 GiB. `download` has no such limit."""
        session = self._sandbox._opened()
        return session.content(Request("GET", "/files", [("path", path)], accept=CONTENT))

    def read_text(self, path: str) -> str:
        """Return the content of a file in UTF-8."""
        return (self.read(path)).decode()

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file, in UTF-8 if the content is text. Directories that are missing are made."""
        data = content.encode() if isinstance(content, str) else content
        session = self._sandbox._opened()
        session.empty(Request("PUT", "/files", [("path", path)], content=data, success=204))

    def upload(self, source: str | os.PathLike[str], path: str) -> Copied:
        """Copy a file or directory of this machine to a path in the sandbox.

        Files of a directory take the place of those that are there. Symbolic links in it are left out, and listed in what is returned.
        """
        session = self._sandbox._opened()
        if Path(source).is_dir():
            return send_directory(session, "/files/archive", Path(source), path)
        session.empty(Request("PUT", "/files", [("path", path)], content=Path(source), success=204))
        return Copied(1, os.stat(source).st_size)

    def download(
        self, path: str, target: str | os.PathLike[str], *, max_bytes: int | str | None = None, max_files: int = MAX_FILES
    ) -> Copied:
        """Copy a file or directory of the sandbox to a path of this machine. The target appears once all of it has come.

        The target of a directory must not exist, or be an empty directory. Only files and directories come: links are left out. More
        than `max_bytes`, which for a directory is 4 GiB unless given, or `max_files` is an error.
        """
        session = self._sandbox._opened()
        most = size(max_bytes)
        to = Path(os.path.abspath(target))
        try:
            return receive_file(session, Request("GET", "/files", [("path", path)], accept=CONTENT), to, most)
        except InvalidError as e:
            if e.code != "invalid" or (self.stat(path)).type != "directory":
                raise
        return receive_archive(session, "/files/archive", path, to, most, max_files)

    def list(self, path: str = ".") -> builtins.list[FileInfo]:
        """List a directory, sorted by name."""
        session = self._sandbox._opened()
        return [parse_file(o) for o in (session.json(Request("GET", "/files/list", [("path", path)]))).objects("entries")]

    def stat(self, path: str) -> FileInfo:
        """Describe a file. Links are not followed."""
        session = self._sandbox._opened()
        return parse_file(session.json(Request("GET", "/files/stat", [("path", path)])))

    def mkdir(self, path: str) -> None:
        """Make a directory and those above it that are missing."""
        session = self._sandbox._opened()
        session.empty(Request("POST", "/files/mkdir", [("path", path)], success=204))

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        session = self._sandbox._opened()
        session.empty(Request("DELETE", "/files", [("path", path)], success=204))

    def rename(self, path: str, to: str) -> None:
        """Rename a file or directory. A file that has that name is replaced."""
        session = self._sandbox._opened()
        session.empty(Request("POST", "/files/rename", [("path", path), ("to", to)], success=204))
