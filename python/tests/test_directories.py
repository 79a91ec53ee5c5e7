"""Copies of directories: between this machine and sandboxes, and from servers that send what they should not."""

from __future__ import annotations

import asyncio
import io
import os
import random
import resource
import signal
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Server, answer

import llmsandbox
from llmsandbox import Client, Sandbox, _tar
from llmsandbox._directory import MEMBER, Packing, Receiver

Serve = Callable[..., str]
Entry = tuple[str, bytes, str, bytes]  # name, type, target of a link, content

DIRECTORY: Entry = (MEMBER, tarfile.DIRTYPE, "", b"")


def packed(*entries: Entry, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return an archive, which tarfile makes of whatever it is told to."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, kind, link, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def file(name: str, content: bytes = b"x") -> Entry:
    return (f"{MEMBER}/{name}", tarfile.REGTYPE, "", content)


def received(data: bytes, target: Path, size: int = 1 << 20, max_bytes: int = 1 << 30, max_files: int = 1000) -> llmsandbox.Copied:
    receiver = Receiver(target, max_bytes, max_files)
    try:
        for at in range(0, len(data), size):
            receiver.feed(data[at : at + size])
        return receiver.finish("")
    finally:
        receiver.close()


def tree(path: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in sorted(path.rglob("*"))}


def make_tree(path: Path) -> dict[str, bytes | None]:
    long = "n" * 200
    (path / "a" / "b" / "empty").mkdir(parents=True)
    (path / "a" / long).mkdir()
    (path / "a" / long / long).write_bytes(b"deep")
    (path / "ä \n").write_bytes(b"")
    (path / "a" / "large").write_bytes(b"0123456789abcdef" * 100_000)
    (path / "run").write_bytes(b"#!/bin/sh\n")
    (path / "run").chmod(0o750)
    return tree(path)


def test_there_and_back(sandbox: Sandbox, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    made = make_tree(source)
    (source / "link").symlink_to("/etc")
    copied = sandbox.files.upload(source, "project/x")
    assert (copied.files, copied.bytes) == (4, sum(len(c or b"") for c in made.values()))
    assert copied.skipped == ["'link': it is a symbolic link"]
    assert sandbox.exec(["./project/x/run"]).ok
    sandbox.exec("ln -s /etc project/x/elsewhere; mkfifo project/x/fifo")
    copied = sandbox.files.download("project/x", target)
    assert copied.files == 4 and copied.skipped[0].startswith("2 by the server")
    assert tree(target) == made
    assert os.access(target / "run", os.X_OK) and not os.access(target / "a" / "large", os.X_OK)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source", "target"]


def test_asyncio_there_and_back(server: Server, tmp_path: Path) -> None:
    made = make_tree(tmp_path / "source")

    async def main() -> None:
        async with server.async_client() as client, llmsandbox.AsyncSandbox(client=client) as sandbox:
            assert (await sandbox.files.upload(tmp_path / "source", "project")).files == 4
            assert (await sandbox.files.download("project", tmp_path / "target")).files == 4

    asyncio.run(main(), debug=True)
    assert tree(tmp_path / "target") == made


def test_limits_and_targets(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.exec("mkdir -p d/e; echo 12345 >d/e/f; echo >d/g")
    for arguments in ({"max_bytes": 6}, {"max_files": 3}):
        with pytest.raises(llmsandbox.TooLargeError, match=next(iter(arguments))):
            sandbox.files.download("d", tmp_path / "out", **arguments)
    with pytest.raises(llmsandbox.TooLargeError, match="max_bytes"):
        sandbox.files.download("d/e/f", tmp_path / "out", max_bytes=5)
    with pytest.raises(FileNotFoundError):
        sandbox.files.download("missing", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").mkdir()
    assert sandbox.files.download("d", tmp_path / "out", max_bytes=7, max_files=4) == llmsandbox.Copied(2, 7)
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("nowhere")
    for taken in ("out", "file", "link"):
        with pytest.raises(FileExistsError, match="empty directory"):
            sandbox.files.download("d", tmp_path / taken)
    assert (tmp_path / "file").read_text() == "kept"
    with pytest.raises(FileNotFoundError):
        sandbox.files.upload(tmp_path / "missing", "x")
    os.mkfifo(tmp_path / "out" / "fifo")
    with pytest.raises(llmsandbox.Error, match="neither a file nor a directory"):
        sandbox.files.upload(tmp_path / "out", "x")


def with_header(**fields: bytes) -> bytes:
    """Return an archive with a file, in whose header fields are replaced."""
    places = {"size": 124, "kind": 156, "mode": 100, "name": 0, "checksum": 148}
    block = bytearray(packed(file("a"))[:512])
    for name, value in fields.items():
        block[places[name] : places[name] + len(value)] = value
    if "checksum" not in fields:
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
    return packed(DIRECTORY)[:512] + bytes(block)


def with_records(records: bytes, size: int | None = None) -> bytes:
    head = with_header(kind=b"x", size=b"%011o\0" % (len(records) if size is None else size))
    return head + records.ljust(-(-len(records) // 512) * 512, b"\0") + packed(file("a"))


HOSTILE: dict[str, tuple[str, bytes]] = {
    "above": ("has .. in it", packed(DIRECTORY, file("../../escaped"))),
    "above by a record": ("has .. in it", packed(DIRECTORY, file("d/../../../é" + "x" * 200))),
    "absolute": ("absolute", packed(DIRECTORY, ("/tmp/escaped", tarfile.REGTYPE, "", b"x"))),
    "other name": ("not asked for", packed(("escaped", tarfile.REGTYPE, "", b"x"))),
    "no name": ("not asked for", packed(("./", tarfile.DIRTYPE, "", b""))),
    "symbolic link": ("symbolic link", packed(DIRECTORY, (f"{MEMBER}/l", tarfile.SYMTYPE, "/etc", b""))),
    "link as the top": ("symbolic link", packed((MEMBER, tarfile.SYMTYPE, "/etc", b""), file("passwd"))),
    "hard link": ("hard link", packed(DIRECTORY, (f"{MEMBER}/l", tarfile.LNKTYPE, "/etc/passwd", b""))),
    "device": ("device", packed(DIRECTORY, (f"{MEMBER}/null", tarfile.CHRTYPE, "", b""))),
    "block device": ("device", packed(DIRECTORY, (f"{MEMBER}/disk", tarfile.BLKTYPE, "", b""))),
    "FIFO": ("FIFO", packed(DIRECTORY, (f"{MEMBER}/fifo", tarfile.FIFOTYPE, "", b""))),
    "unknown type": ("neither a file", packed(DIRECTORY, (f"{MEMBER}/x", b"Z", "", b""))),
    "twice": ("twice", packed(DIRECTORY, file("a", b"1"), file("a", b"2"))),
    "twice by another spelling": ("twice", packed(DIRECTORY, file("a"), file(".//a"))),
    "directory twice": ("twice", packed(DIRECTORY, DIRECTORY)),
    "file over a directory": ("twice", packed(DIRECTORY, (MEMBER, tarfile.REGTYPE, "", b"x"))),
    "below a file": ("no directory", packed(DIRECTORY, file("a"), file("a/b"))),
    "directory is missing": ("directory is not in the archive", packed(DIRECTORY, file("d/f"))),
    "too deep": ("deeper", packed(DIRECTORY, file("d/" * 300 + "f"))),
    "too long": ("too long", packed(DIRECTORY, file("x" * 5000))),
    "long for the system": ("too long", packed(DIRECTORY, file("x" * 300))),
    "too many": ("max_files", packed(DIRECTORY, *(file(str(n)) for n in range(2000)))),
    "too large": ("max_bytes", packed(DIRECTORY, file("a", b"x" * 3000), file("b", b"x" * 3000))),
    "GNU": ("POSIX", packed(DIRECTORY, file("x" * 200), form=tarfile.GNU_FORMAT)),
    "nothing": ("there is none", packed()),
    "empty": ("too early", b""),
    "cut": ("too early", packed(DIRECTORY, file("a", b"x" * 1000))[:2048]),
    "one zero block": ("malformed", packed(DIRECTORY)[:512] + bytes(512) + packed(DIRECTORY)[:512]),
    "more after the end": ("after its end", packed(DIRECTORY) + packed(DIRECTORY)),
    "endless end": ("after its end", packed(DIRECTORY) + bytes(2 << 20)),
    "no archive": ("number is malformed", b"x" * 512),
    "negative size": ("number is malformed", with_header(size=b"-0000000001\0")),
    "size in base 256": ("number is malformed", with_header(size=b"\xff" * 12)),
    "huge size": ("max_bytes", with_header(size=b"77777777777\0")),
    "huge size by a record": ("number is malformed", with_records(b"29 size=99999999999999999999\n")),
    "size that is no number": ("number is malformed", with_records(b"11 size=-1\n")),
    "wrong checksum": ("checksum", with_header(checksum=b"000000\0 ")),
    "directory with content": ("directory with content", with_header(kind=b"5")),
    "file that ends in a slash": ("name of a directory", with_header(name=b"copy/a/")),
    "NUL in a name": ("NUL", with_records(b"15 path=copy\0x\n")),
    "record without length": ("extended header is malformed", with_records(b"path=copy/x\n")),
    "record of length 0": ("extended header is malformed", with_records(b"0 path=copy/x\n")),
    "record that is longer": ("extended header is malformed", with_records(b"99 path=copy/x\n")),
    "record without name": ("extended header is malformed", with_records(b"6 =x1\n")),
    "holes": ("holes", with_records(b"22 GNU.sparse.major=1\n")),
    "extended twice": ("of another one", with_records(b"10 a=bcde\n")[:-10240] + with_records(b"10 a=bcde\n")[512:]),
    "large extended header": ("too large", with_records(b"", 1 << 20)),
    "global header": ("neither a file", with_header(kind=b"g")),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("size", [100, 1 << 20])
def test_hostile_archives(name: str, size: int, tmp_path: Path) -> None:
    """None makes anything but the target, or is taken for less than it is."""
    why, data = HOSTILE[name]
    (tmp_path / "in").mkdir()
    with pytest.raises(llmsandbox.Error, match=why):
        received(data, tmp_path / "in" / "target", size, max_bytes=5000)
    assert tree(tmp_path) == {"in": None}


@pytest.mark.parametrize("size", [1, 511, 513, 1 << 20])
def test_archives(size: int, tmp_path: Path) -> None:
    data = packed(DIRECTORY, (f"{MEMBER}/d", tarfile.DIRTYPE, "", b""), file("d/a", b"1" * 700), file("é" * 90), file("z", b""))
    assert received(data, tmp_path / "target", size) == llmsandbox.Copied(3, 701)
    assert tree(tmp_path / "target") == {"d": None, "d/a": b"1" * 700, "é" * 90: b"x", "z": b""}


def test_mutated_archives(tmp_path: Path) -> None:
    """Whatever comes, in whatever pieces, makes the same or is refused alike, and nothing outside of the target."""
    chance = random.Random(1)
    whole = packed(DIRECTORY, (f"{MEMBER}/d", tarfile.DIRTYPE, "", b""), file("d/a", b"1" * 700), file("é" * 90), file("z", b""))
    ends: set[bool] = set()
    for n in range(1500):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(4000)] = chance.choice(b"\0 /.57x1\xff")
        outcomes: list[object] = []
        for size in (len(data), chance.randrange(1, 700)):
            target = tmp_path / f"{n}-{size}"
            try:
                received(bytes(data), target, size, max_bytes=10_000)
                outcomes.append(tree(target))
            except llmsandbox.Error as e:
                outcomes.append(str(e))
                assert not target.exists()
        assert outcomes[0] == outcomes[1]
        ends.add(isinstance(outcomes[0], str))
    assert ends == {True, False}
    assert all(p.name.partition("-")[0].isdigit() for p in tmp_path.iterdir())


def test_directory_is_swapped(tmp_path: Path) -> None:
    """Who can write where a directory is received cannot lead its files elsewhere by a link."""
    receiver = Receiver(tmp_path / "target", 1000, 1000)
    data = packed(DIRECTORY, (f"{MEMBER}/d", tarfile.DIRTYPE, "", b""), file("d/a"))
    receiver.feed(data[:1024])
    (tmp_path / "elsewhere").mkdir()
    (inside,) = tmp_path.glob(f".target.*/{MEMBER}/d")
    inside.rmdir()
    inside.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(llmsandbox.LostError, match="no directory"):
        receiver.feed(data[1024:])
    receiver.close()
    assert tree(tmp_path) == {"elsewhere": None}


@pytest.mark.parametrize("name", ["a\\b", "C:x", "nul.txt", "COM1", "x.", "y ", "a:stream", "\x01", 'q"'])
def test_names_on_windows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tar, "WINDOWS", True)
    with pytest.raises(llmsandbox.LostError, match="Windows has no such name"):
        received(packed(DIRECTORY, file(name)), tmp_path / "target")


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            received(packed(DIRECTORY, file("a", b"x" * 5000)), tmp_path / "target")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, old)
    assert list(tmp_path.iterdir()) == []


def test_hostile_server(serve: Serve, tmp_path: Path) -> None:
    problem = answer({"code": "invalid", "detail": "directory"}, "422 Unprocessable Entity", "application/problem+json")
    stat = answer({"name": "d", "type": "directory", "mode": "0755", "modified": "2026-01-01T00:00:00Z"})
    archives = [packed(DIRECTORY, file("../../escaped")), packed(DIRECTORY)[:512]]
    for data in archives:
        url = serve(answer({"id": "sb-1"}, "201 Created"), problem, stat, answer(data, kind="application/x-tar"))
        with Client(url) as client, pytest.raises(llmsandbox.LostError, match="archive cannot be used"):
            Sandbox(client=client).files.download("d", tmp_path / "target")
    # Without the mark of its end, a part of an answer is not taken for the whole.
    cut = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-tar\r\nTransfer-Encoding: chunked\r\n\r\n200\r\n" + packed(DIRECTORY)[:512]
    with Client(serve(answer({"id": "sb-1"}, "201 Created"), problem, stat, cut)) as client:
        with pytest.raises(llmsandbox.LostError, match="ended"):
            Sandbox(client=client).files.download("d", tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


def test_packing_that_is_read(tmp_path: Path) -> None:
    """What is sent is an archive that others read, also where names are not text."""
    source = tmp_path / "source"
    made = make_tree(source)
    Path(os.fsdecode(os.fsencode(source) + b"/\xff")).write_bytes(b"bytes")
    with tarfile.open(fileobj=io.BytesIO(b"".join(Packing(source).pieces()))) as archive:
        assert {os.fsencode(m.name) for m in archive} == {os.fsencode(name) for name in made} | {b"\xff"}
