"""Copies of files into and out of sandboxes, and archives that are hostile."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_sandbox import ContainerError, SandboxSession, SecurityError
from llm_sandbox._archive import extract


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with SandboxSession() as opened:
        yield opened


def test_file_round_trip(session: Any, tmp_path: Path) -> None:
    source = tmp_path / "data.bin"
    source.write_bytes(bytes(range(256)) * 4096)
    source.chmod(0o755)
    session.copy_to_runtime(str(source), "/sandbox/new/dir/data.bin")
    assert session.execute_command("test -x new/dir/data.bin").exit_code == 0
    session.copy_from_runtime("/sandbox/new/dir/data.bin", str(tmp_path / "made" / "back.bin"))
    assert (tmp_path / "made" / "back.bin").read_bytes() == source.read_bytes()


def test_empty_file_and_odd_names(session: Any, tmp_path: Path) -> None:
    session.execute_command(": >empty; echo x >'a..b and é'")
    session.copy_from_runtime("/sandbox/empty", str(tmp_path / "empty"))
    session.copy_from_runtime("a..b and é", str(tmp_path / "odd"))
    assert (tmp_path / "empty").read_bytes() == b""
    assert (tmp_path / "odd").read_text() == "x\n"


def test_directory_round_trip(session: Any, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "c.txt").write_text("c")
    (source / "link").symlink_to("/etc/passwd")
    session.copy_to_runtime(str(source), "/sandbox/copied")
    assert session.execute_command("find copied | sort").stdout == "copied\ncopied/sub\ncopied/sub/c.txt\n"
    session.copy_from_runtime("/sandbox/copied", str(tmp_path / "out"))
    assert (tmp_path / "out" / "copied" / "sub" / "c.txt").read_text() == "c"


def test_relative_source(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here.txt").write_text("here")
    session.copy_to_runtime("here.txt", "/tmp/there.txt")
    assert session.execute_command("cat /tmp/there.txt").stdout == "here"


def test_what_cannot_be_copied(session: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist or is not accessible"):
        session.copy_to_runtime(str(tmp_path / "none"), "/sandbox/x")
    with pytest.raises(SecurityError, match="Path traversal detected in container path"):
        session.copy_to_runtime(__file__, "/sandbox/../etc/x")
    with pytest.raises(FileNotFoundError):
        session.copy_from_runtime("/sandbox/none", str(tmp_path / "x"))
    with pytest.raises(ContainerError, match="writable_root=True"):
        session.copy_to_runtime(__file__, "/opt/x")
    assert not (tmp_path / "x").exists()


def test_writable_root(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("a writable root needs root here")
    with SandboxSession(runtime_configs={"read_only": False}) as session:
        session.copy_to_runtime(__file__, "/opt/x.py")
        assert session.execute_command("ls /opt/x.py").stdout == "/opt/x.py\n"


def test_get_archive(session: Any) -> None:
    session.execute_command("mkdir -p got; echo 12345 >got/f; ln -s /etc/passwd got/l; mkfifo got/p")
    bits, info = session.get_archive("/sandbox/got")
    with tarfile.open(fileobj=io.BytesIO(bits)) as tar:
        assert sorted(tar.getnames()) == ["got", "got/f"]
    assert info["name"] == "got" and info["mode"] & (1 << 31)
    assert session.get_archive("got/f")[1]["size"] == 6


def _archive(*members: tarfile.TarInfo) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return file.getvalue()


def _member(name: str, kind: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.size = 1 if kind == tarfile.REGTYPE else 0
    for field, value in fields.items():
        setattr(member, field, value)
    return member


@pytest.mark.parametrize(
    "member",
    [
        _member("/etc/evil"),
        _member("../evil"),
        _member("a/../../evil"),
        _member("link", tarfile.SYMTYPE, linkname="/etc/passwd"),
        _member("hard", tarfile.LNKTYPE, linkname="/etc/passwd"),
    ],
)
def test_unsafe_members_are_left_out(member: tarfile.TarInfo, tmp_path: Path) -> None:
    extract(_archive(_member("d", tarfile.DIRTYPE), _member("d/good"), member), str(tmp_path / "out"))
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["out", "out/d", "out/d/good"]
    with pytest.raises(FileNotFoundError, match="No safe content found in archive"):
        extract(_archive(member), str(tmp_path / "none"))


def test_devices_are_refused(tmp_path: Path) -> None:
    for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE):
        with pytest.raises(SecurityError, match="Unsupported archive member type: dev"):
            extract(_archive(_member("dev", kind)), str(tmp_path / "out"))


def test_links_of_this_machine_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "d").symlink_to(tmp_path / "secret")
    with pytest.raises(SecurityError, match="Unsafe archive member"):
        extract(_archive(_member("x"), _member("d/evil")), str(tmp_path / "out"))
    assert list((tmp_path / "secret").iterdir()) == []


def test_modes(tmp_path: Path) -> None:
    extract(_archive(_member("f", mode=0o6755)), str(tmp_path / "f"))
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) & 0o6022 == 0


def test_archives_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(SecurityError, match="cannot be read"):
        extract(b"x" * 2000, str(tmp_path / "out"))
