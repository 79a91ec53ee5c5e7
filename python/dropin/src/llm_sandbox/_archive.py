"""Tar archives between this machine and sandboxes. Those that come from a sandbox are hostile."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO

from llm_sandbox.exceptions import SecurityError

MAX_MEMBERS = 1_000_000
MAX_BYTES = 4 << 30


def extract(bits: bytes, dest: str) -> None:
    """Extract an archive of bytes. See `extract_file`."""
    extract_file(io.BytesIO(bits), dest)


def extract_file(archive: IO[bytes], dest: str) -> None:
    """Extract an archive of one file to `dest`, or into that directory, and one of a directory below `dest`.

    Links are left out, as are owners and set-user-ID bits. Devices, and names that lead elsewhere, are errors.
    """
    target = Path(dest)
    found = False
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            members = _members(tar)
            single = len(members) == 1 and members[0].isfile()
            if single and not target.is_dir():
                members[0].name, directory = target.name, target.parent
            else:
                directory = target
            for member in members:
                directory.mkdir(parents=True, exist_ok=True)
                tar.extract(member, directory, filter="data")
                found = True
    except tarfile.FilterError as e:
        raise SecurityError(f"Unsafe archive member: {e}") from e
    except tarfile.TarError as e:
        raise SecurityError(f"the archive of the sandbox cannot be read: {e}") from e
    if not found:
        raise FileNotFoundError("No safe content found in archive")


def _members(tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """Return the files and directories of an archive."""
    members: list[tarfile.TarInfo] = []
    total = 0
    for number, member in enumerate(tar):
        total += max(member.size, 0)
        if number >= MAX_MEMBERS or total > MAX_BYTES:
            raise SecurityError(f"the archive of the sandbox has more than {MAX_MEMBERS} files or {MAX_BYTES >> 30} GiB: copy less at a time")
        if member.issym() or member.islnk():
            continue
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts:
            continue
        if not (member.isfile() or member.isdir()):
            raise SecurityError(f"Unsupported archive member type: {member.name}")
        members.append(member)
    return members


def pack(source: Path, name: str, archive: IO[bytes], skip: Callable[[str], object]) -> None:
    """Write a file or directory of this machine to an archive, under a name. Files that are neither are skipped."""

    def regular(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if not (member.isfile() or member.isdir()):
            skip(member.name)
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(fileobj=archive, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        # A link that the caller names is followed; those below it are not.
        tar.add(os.path.realpath(source), arcname=name, filter=regular)
