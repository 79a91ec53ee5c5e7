# Written by unasync.py from _async/copying.py. Do not edit it.
"""Copies of files and directories between this machine and a server."""

from __future__ import annotations

import secrets
from pathlib import Path

from llmsandbox._sync.session import Session
from llmsandbox._describe import Copied
from llmsandbox._directory import MAX_BYTES, MAX_SKIPPED, MEMBER, Packing, Receiver
from llmsandbox._errors import TooLargeError
from llmsandbox._request import ARCHIVE, Request


def send_directory(session: Session, archive: str, source: Path, path: str, name: str = "") -> Copied:
    """Send a directory, or with a name, a file, to be unpacked in a directory of the server."""
    packing = Packing(source, name)
    made = session.json(Request("PUT", archive, [("path", path)], content=packing.pieces))
    skipped = packing.skipped + made.texts("skipped")
    return Copied(made.integer("files"), made.integer("bytes"), skipped[:MAX_SKIPPED])


def receive_file(session: Session, request: Request, target: Path, max_bytes: int | None) -> Copied:
    """Receive a file, which takes the place of the target once all of it has come."""
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    received = 0
    try:
        with partial.open("xb") as file:

            def write(piece: bytes) -> None:
                nonlocal received
                received += len(piece)
                if max_bytes is not None and received > max_bytes:
                    raise TooLargeError(f"the file has more than {max_bytes} bytes: set max_bytes")
                file.write(piece)

            session.copy(request, write)
        partial.replace(target)
    except BaseException as e:
        partial.unlink(missing_ok=True)
        if isinstance(e, OSError) and e.errno is not None and e.filename is None:
            e.filename = str(target)  # it comes from a write, or from the end of the file, which writes what is left
        raise
    return Copied(1, received)


def receive_archive(session: Session, archive: str, path: str, target: Path, max_bytes: int | None, max_files: int) -> Copied:
    """Receive a file or directory as an archive."""
    receiver = Receiver(target, MAX_BYTES if max_bytes is None else max_bytes, max_files)
    try:
        request = Request("GET", archive, [("path", path), ("name", MEMBER)], accept=ARCHIVE)
        trailers = session.copy(request, receiver.feed)
        return receiver.finish(trailers.get("llmsandbox-skipped", ""))
    finally:
        receiver.close()
