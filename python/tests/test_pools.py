"""Pools of sandboxes that are open ahead."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from subprocess import CompletedProcess

import pytest
from conftest import Server

import llmsandbox
from llmsandbox import Client, Pool, Sandbox


def labelled(client: Client) -> Callable[[], Sandbox]:
    return lambda: Sandbox(labels={"of": "pool"}, client=client)


def listed(client: Client) -> set[str]:
    return {sandbox.id for sandbox in client.list(labels={"of": "pool"})}


def wait_for_opening(pool: Pool) -> None:
    for thread in list(pool._opening):
        thread.join()


def test_is_taken_and_replaced(client: Client) -> None:
    with Pool(labelled(client), size=2) as pool:
        wait_for_opening(pool)
        ready = listed(client)
        assert len(ready) == 2
        with pool.acquire() as sandbox:
            assert sandbox.id in ready and sandbox.run("print(1)").stdout == "1\n"
            wait_for_opening(pool)
            assert len(listed(client)) == 3
        assert sandbox.id not in listed(client)
        with pool.acquire() as other:
            assert other.id in ready - {sandbox.id}
        kept = pool.acquire()
    assert listed(client) == {kept.id}
    kept.close()
    for call in (pool.acquire, pool.__enter__):
        with pytest.raises(llmsandbox.ClosedError):
            call()
    pool.close()


def test_sandbox_that_has_ended(client: Client) -> None:
    """It is not handed out."""
    with Pool(labelled(client), size=1) as pool:
        wait_for_opening(pool)
        (ended,) = listed(client)
        Sandbox.attach(ended, client=client).destroy()
        with pool.acquire() as sandbox:
            assert sandbox.id != ended and sandbox.exec("true").ok


def test_many_threads(client: Client) -> None:
    def use(_: int) -> str:
        with pool.acquire() as sandbox:
            return sandbox.exec("echo $((1 + 1))").sandbox_id

    with Pool(labelled(client), size=3) as pool, ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(use, range(24)))) == 24
    assert listed(client) == set()


def test_errors(client: Client) -> None:
    """What goes wrong when a sandbox is opened ahead is told to who asks for one."""
    with Pool(lambda: Sandbox("brainfuck", client=client), size=2) as pool:
        for _ in range(2):
            with pytest.raises(llmsandbox.InvalidError, match="brainfuck"):
                pool.acquire()
    with pytest.raises(llmsandbox.InvalidError, match="at least one"):
        Pool(Sandbox, size=0)


def test_server_is_killed(new_server: type[Server]) -> None:
    server = new_server("--warm", "0")
    with server.client() as client:
        pool = Pool(lambda: Sandbox(client=client), size=1)
        pool.acquire().close()
        wait_for_opening(pool)
        server.process.kill()
        server.process.wait()
        with pytest.raises(llmsandbox.ConnectError):
            pool.acquire()


def test_programs_end_clean(program: Callable[..., "CompletedProcess[str]"]) -> None:
    """A pool that nobody closes leaves nothing behind, and one of a parent is not used after fork."""
    done = program(
        """
import llmsandbox, os
pool = llmsandbox.Pool(llmsandbox.Sandbox, size=2)
sandbox = pool.acquire()
assert sandbox.run("1").ok
for thread in list(pool._opening):
    thread.join()
child = os.fork()
if child == 0:
    try:
        pool.acquire()
    except llmsandbox.ClosedError as e:
        print(e, flush=True)
    pool.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
from llmsandbox import _local
(server,) = _local._servers.values()
print(server.process.pid)
"""
    )
    assert (done.stderr, done.returncode) == ("", 0)
    error, process = done.stdout.splitlines()
    assert "after fork" in error and not os.path.exists(f"/proc/{process}")


def test_asyncio(server: Server) -> None:
    async def main() -> None:
        async with server.async_client() as client:

            def make() -> llmsandbox.AsyncSandbox:
                return llmsandbox.AsyncSandbox(labels={"of": "asyncio"}, client=client)

            async def use() -> str:
                async with await pool.acquire() as sandbox:
                    return (await sandbox.exec("true")).sandbox_id

            async with llmsandbox.AsyncPool(make, size=3) as pool:
                await asyncio.wait(pool._opening)
                assert len(pool._ready) == 3
                assert len(set(await asyncio.gather(*(use() for _ in range(12))))) == 12
                task = asyncio.create_task(use())
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                with pytest.raises(ZeroDivisionError):
                    async with await pool.acquire():
                        raise ZeroDivisionError
            assert await client.list(labels={"of": "asyncio"}) == []
            with pytest.raises(llmsandbox.ClosedError):
                await pool.acquire()

    asyncio.run(main(), debug=True)
