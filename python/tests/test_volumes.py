"""Volumes of a server that has them, and its pool."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Server

import llmsandbox
from llmsandbox import Client, Sandbox, VolumeMount


@pytest.fixture(scope="module")
def volumes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose projects can have two volumes, which are not those of this machine."""
    started = Server("--warm", "0", "--max-volumes", "2", LLMSANDBOX_STATE_DIR=str(tmp_path_factory.mktemp("state")))
    yield started
    started.close()


def test_volumes(volumes: Server, tmp_path: Path) -> None:
    with volumes.client() as client:
        made = client.volumes.create("data", labels={"of": "test"})
        assert client.volumes.list() == [made] and made.labels == {"of": "test"}
        (tmp_path / "in" / "d").mkdir(parents=True)
        (tmp_path / "in" / "d" / "f").write_text("1")
        assert client.volumes.upload("data", tmp_path / "in", "/x").files == 1
        assert client.volumes.upload("data", tmp_path / "in" / "d" / "f", "/x/g").files == 1
        with Sandbox(client=client, volumes=[VolumeMount("data", "/data")]) as sandbox:
            assert sandbox.exec("cat /data/x/d/f /data/x/g; echo 2 >/data/new").stdout == "11"
            with pytest.raises(llmsandbox.APIError, match="data"):
                client.volumes.remove("data")
        code = "print(open('/data/new').read()); open('/data/no', 'w')"
        result = llmsandbox.run(code, client=client, volumes=[VolumeMount("data", "/data", read_only=True)])
        assert (result.stdout, result.status) == ("2\n\n", "error")
        assert client.volumes.download("data", "/x", tmp_path / "out").files == 2
        assert (tmp_path / "out" / "d" / "f").read_text() == "1"
        (tmp_path / "new").write_text("replaced")
        assert client.volumes.download("data", "/new", tmp_path / "new") == llmsandbox.Copied(1, 2)
        assert (tmp_path / "new").read_text() == "2\n"
        client.volumes.remove("data", force=True)
        assert client.volumes.list() == []


def test_errors(volumes: Server, tmp_path: Path) -> None:
    with volumes.client() as client:
        for name in ("", "../x", "A", "x" * 47, "a/b"):
            with pytest.raises(llmsandbox.InvalidError):
                client.volumes.remove(name)
        with pytest.raises(llmsandbox.Error):
            client.volumes.download("missing", "/", tmp_path / "out")
        with pytest.raises(FileNotFoundError):
            client.volumes.upload("missing", tmp_path / "missing", "/x")
        with pytest.raises(llmsandbox.UnsupportedError):
            client.volumes.create("bounded", size_limit="1m")
        client.volumes.create("a")
        client.volumes.create("b")
        with pytest.raises(llmsandbox.QuotaError):
            client.volumes.create("c")
        client.volumes.remove("a")
        client.volumes.remove("b")
    assert list(tmp_path.iterdir()) == []


def test_asyncio(volumes: Server, tmp_path: Path) -> None:
    async def main() -> None:
        async with volumes.async_client() as client:
            await client.volumes.create("data")
            (tmp_path / "f").write_text("1")
            await client.volumes.upload("data", tmp_path / "f", "/f")
            result = await llmsandbox.run_async("print(open('/data/f').read())", client=client, volumes=[VolumeMount("data", "/data")])
            assert result.stdout == "1\n"
            await client.volumes.remove("data", force=True)

    asyncio.run(main(), debug=True)


def test_pool(client: Client) -> None:
    before = client.pool()
    llmsandbox.run("1", client=client)
    after = client.pool()
    assert (before.languages, before.kept) == (["python"], 2)
    assert after.hits + after.misses == before.hits + before.misses + 1
