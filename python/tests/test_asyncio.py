"""The asyncio client: the same calls, cancellation and event loops that end early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from conftest import Server

import llmsandbox
from llmsandbox import AsyncSandbox
from llmsandbox._async import transport
from llmsandbox._endpoint import Endpoint

Program = Callable[..., "CompletedProcess[str]"]


@asynccontextmanager
async def opened(server: Server) -> AsyncGenerator[AsyncSandbox, None]:
    async with server.async_client() as client, AsyncSandbox(client=client) as sandbox:
        yield sandbox


def with_sandbox(server: Server, test: Callable[[AsyncSandbox], Awaitable[None]]) -> None:
    async def main() -> None:
        async with opened(server) as sandbox:
            await asyncio.wait_for(test(sandbox), 120)

    asyncio.run(main(), debug=True)


LOCK = "import fcntl\nf = open('lock', 'w')\nfcntl.flock(f, 2)\n"
HOLD = LOCK + "print('mine', flush=True)\nimport time\ntime.sleep(1000)"


def test_calls(server: Server, tmp_path: Path) -> None:
    async def test(sandbox: AsyncSandbox) -> None:
        assert (await sandbox.run("print(1)")).stdout == "1\n"
        assert (await llmsandbox.run_async("print(2)", client=sandbox._client)).stdout == "2\n"
        events = [event async for event in sandbox.stream("print(3)")]
        assert "".join(e.text for e in events) == "3\n" and events[-1].kind == "done"
        assert (await sandbox.exec("echo 4")).stdout == "4\n"
        await sandbox.files.write("d/a", "é")
        assert await sandbox.files.read_text("d/a") == "é"
        assert [f.name for f in await sandbox.files.list("d")] == ["a"]
        large = tmp_path / "large"
        large.write_bytes(b"0123456789abcdef" * 200_000)
        await sandbox.files.upload(large, "large")
        await sandbox.files.download("large", tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == large.read_bytes()
        with pytest.raises(FileNotFoundError):
            await sandbox.files.read("missing")
        async with await sandbox.kernel() as kernel:
            await kernel.run("x = 20")
            assert (await kernel.run("x + 1")).text == "21"
            assert [v.name for v in await kernel.variables()] == ["x"]
        same = await AsyncSandbox.attach(sandbox.id, client=sandbox._client)
        assert (await same.info()).id == sandbox.id
        assert sandbox.id in [s.id for s in await sandbox._client.list()]

    with_sandbox(server, test)


def test_many_tasks(server: Server) -> None:
    async def main() -> None:
        async def one(n: int) -> str:
            await sandbox.files.write(f"files/{n}", str(n))
            return await sandbox.files.read_text(f"files/{n}")

        async with opened(server) as sandbox:
            assert await asyncio.gather(*(one(n) for n in range(200))) == [str(n) for n in range(200)]

    asyncio.run(main())  # the debug mode takes so long for 200 connections that a server closes some which are silent


def test_opened_once_by_tasks(server: Server) -> None:
    async def main() -> None:
        async with server.async_client() as client:
            sandbox = AsyncSandbox(client=client)
            results = await asyncio.gather(*(sandbox.exec("true") for _ in range(8)))
            assert {result.sandbox_id for result in results} == {sandbox.id}
            await sandbox.close()

    asyncio.run(main(), debug=True)


def test_connections_are_used_again(server: Server) -> None:
    async def main() -> None:
        async with server.async_client() as client, AsyncSandbox(client=client) as sandbox:
            for _ in range(3):
                await sandbox.files.list()
            (connection,) = client._transport._idle
            assert connection.reused
        assert client._transport._idle == []
        await sandbox._client.list()  # outside of async with, none is kept
        assert client._transport._idle == []

    asyncio.run(main(), debug=True)


def test_cancelled_run_ends(server: Server) -> None:
    """The server ends a run whose task is cancelled: what it held is free again."""

    async def test(sandbox: AsyncSandbox) -> None:
        begun = asyncio.Event()

        async def hold() -> None:
            async for _ in sandbox.stream(HOLD):
                begun.set()

        task = asyncio.create_task(hold())
        await begun.wait()
        run = asyncio.create_task(sandbox.run("import time; time.sleep(1000)"))
        await sandbox.exec("true")
        for one in (task, run):
            one.cancel()
            with pytest.raises(asyncio.CancelledError):
                await one
        assert (await sandbox.run(LOCK)).ok

    with_sandbox(server, test)


def test_cancelled_when_it_has_connected(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancellation that comes with the connection is not lost."""
    connect = transport._open

    async def connect_and_cancel(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opened = await connect(endpoint)
        tasks[0].cancel()
        return opened

    async def main() -> None:
        async with server.async_client() as client:
            tasks.append(asyncio.create_task(client.list()))
            with pytest.raises(asyncio.CancelledError):
                await tasks[0]

    tasks: list[asyncio.Task[list[llmsandbox.SandboxInfo]]] = []
    monkeypatch.setattr(transport, "_open", connect_and_cancel)
    asyncio.run(main(), debug=True)


def test_stream_that_is_left(server: Server) -> None:
    async def test(sandbox: AsyncSandbox) -> None:
        events = sandbox.stream(HOLD)
        assert (await anext(events)).text.startswith("mine")
        await events.aclose()
        assert (await sandbox.run(LOCK)).ok

    with_sandbox(server, test)


def test_cancelled_cell_keeps_its_state(server: Server) -> None:
    async def test(sandbox: AsyncSandbox) -> None:
        async with await sandbox.kernel() as kernel:
            await kernel.run("x = 1")
            events = kernel.stream("print('begun', flush=True)\nimport time\ntime.sleep(1000)")
            assert (await anext(events)).text.startswith("begun")
            await events.aclose()
            assert (await kernel.run("x")).text == "1"

    with_sandbox(server, test)


def test_exception_closes_the_sandbox(server: Server) -> None:
    """A task that fails takes the others of its group along, and the sandbox is removed. (asyncio.gather stands for TaskGroup of 3.11.)"""

    async def main() -> None:
        async with server.async_client() as client:
            with pytest.raises(ZeroDivisionError):
                async with AsyncSandbox(labels={"of": "exception"}, client=client) as sandbox:
                    run = asyncio.create_task(sandbox.run("import time; time.sleep(1000)"))
                    await sandbox.exec("true")
                    run.cancel()
                    raise ZeroDivisionError
            assert await client.list(labels={"of": "exception"}) == []

    asyncio.run(main(), debug=True)


def test_cancelled_while_the_server_is_gone(new_server: type[Server]) -> None:
    """That a sandbox cannot be removed does not hide a cancellation."""
    server = new_server("--warm", "0")

    async def main() -> None:
        async def use() -> None:
            async with server.async_client() as client, AsyncSandbox(client=client) as sandbox:
                await sandbox.exec("true")
                begun.set()
                await asyncio.Event().wait()

        begun = asyncio.Event()
        task = asyncio.create_task(use())
        await begun.wait()
        server.process.kill()
        server.process.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main(), debug=True)


def test_server_is_killed(new_server: type[Server]) -> None:
    server = new_server("--warm", "0")

    async def main() -> None:
        async with server.async_client() as client:
            sandbox = AsyncSandbox(client=client)
            events = sandbox.stream(HOLD)
            assert (await anext(events)).text.startswith("mine")
            server.process.kill()
            server.process.wait()
            with pytest.raises(llmsandbox.LostError):
                async for _ in events:
                    pass
            with pytest.raises(llmsandbox.ConnectError):
                await sandbox.run("1")

    asyncio.run(main(), debug=True)


def test_programs_end_clean(program: Program) -> None:
    """Event loops that end early, one after the other, leave no warning and nothing that runs."""
    done = program(
        """
import asyncio, llmsandbox

async def left():
    sandbox = llmsandbox.AsyncSandbox()
    async for event in sandbox.stream("print('begun', flush=True); import time; time.sleep(1000)"):
        break
    task = asyncio.create_task(sandbox.run("import time; time.sleep(1000)"))
    await sandbox.exec("true")
    return sandbox

sandbox = asyncio.run(left())
assert asyncio.run(sandbox.run("print(1)")).stdout == "1\\n"

loop = asyncio.new_event_loop()
events = sandbox.stream("print('begun', flush=True); import time; time.sleep(1000)")
assert loop.run_until_complete(anext(events)).text.startswith("begun")
loop.run_until_complete(loop.shutdown_asyncgens())
loop.run_until_complete(sandbox.run("1"))
loop.close()

async def interrupted():
    try:
        await asyncio.wait_for(sandbox.run("import time; time.sleep(1000)"), 1)
    except asyncio.TimeoutError:
        print("timeout")
    async with llmsandbox.AsyncSandbox() as other:
        await other.exec("true")
        raise KeyboardInterrupt
try:
    asyncio.run(interrupted())
except KeyboardInterrupt:
    print("interrupted")
from llmsandbox import _local
(server,) = _local._servers.values()
print(server.process.pid)
"""
    )
    assert (done.stderr, done.returncode) == ("", 0)
    *out, process = done.stdout.splitlines()
    assert out == ["timeout", "interrupted"]
    assert not Path(f"/proc/{process}").exists()
