"""Programs that go on without their client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from conftest import Server, answer

import llmsandbox
from llmsandbox import Event, Sandbox

ECHO = """
import sys
print('begun', flush=True)
for line in sys.stdin:
    print(line.upper(), end='', flush=True)
print('end', file=sys.stderr)
"""


def until(events: Iterator[Event], kind: str, text: str) -> Event:
    """Read events up to the one with which so much of one kind has come. Output comes in pieces of any size."""
    come = ""
    for event in events:
        come += event.text if event.kind == kind else ""
        if come == text:
            return event
    raise AssertionError(f"{kind} was {come!r}")


def written(events: list[Event], kind: str) -> str:
    return "".join(event.text for event in events if event.kind == kind)


def test_input_and_output(sandbox: Sandbox) -> None:
    with sandbox.start_run(ECHO, stdin_open=True) as process:
        assert process.poll() is None
        assert [p.running for p in sandbox.processes() if p.id == process.id] == [True]
        events = process.stream()
        until(events, "stdout", "begun\n")
        process.write("one\n")
        first = until(events, "stdout", "ONE\n")
        events.close()  # it goes on

        same = sandbox.process(process.id)
        same.write(b"two\n")
        same.close_stdin()
        *output, last = same.stream(after=first.id)
        assert (written(output, "stdout"), written(output, "stderr")) == ("TWO\n", "end\n")
        result = process.wait()
        assert last.result == result
        assert (result.status, result.stdout, result.stderr) == ("ok", "begun\nONE\nTWO\n", "end\n")
        assert process.poll() is result
        assert written(list(process.stream()), "stdout") == result.stdout


def test_commands(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("d")
    assert sandbox.start("echo $A | cat; pwd; exit 3", env={"A": "b"}, cwd="d").wait().stdout == "b\n/sandbox/d\n"
    assert sandbox.start(["cat"], stdin="typed").wait().stdout == "typed"
    assert sandbox.start("sleep 1000", timeout=1).wait().status == "timeout"
    assert sandbox.start_run("echo $1", language="bash", args=["x"]).wait().stdout == "x\n"
    with pytest.raises(llmsandbox.InvalidError):
        sandbox.start([])


def test_signals(sandbox: Sandbox) -> None:
    process = sandbox.start("trap 'echo told; exit 7' INT; echo begun; while :; do sleep 0.01; done")
    events = process.stream()
    until(events, "stdout", "begun\n")
    process.signal("SIGINT")
    assert written(list(events), "stdout") == "told\n"
    assert process.wait().exit_code == 7
    killed = sandbox.start("sleep 1000")
    killed.kill()
    killed.kill()
    assert killed.wait().signal == "SIGKILL"
    with sandbox.start("sleep 1000") as left:
        pass
    assert left.wait().status == "killed"


def test_output_that_is_not_kept(sandbox: Sandbox) -> None:
    process = sandbox.start("head -c 3000000 /dev/zero | tr '\\0' x; echo begun >&2; exec sleep 1000")
    until(process.stream(), "stderr", "begun\n")
    first = next(process.stream())
    assert first.kind == "stdout" and first.text == "" and 0 < first.missing < 3000000
    following = next(process.stream(after=first.id))
    assert following.missing == 0 and following.text.startswith("x")
    process.kill()


def test_program_that_does_not_run(new_server: type[Server]) -> None:
    """Its result is there, and there is nothing to wait for, kill or read."""
    server = new_server("--policy", "production", "--warm", "0")
    with server.client() as client, Sandbox(client=client) as sandbox:
        with sandbox.start_run("import os; os.system('id')") as process:
            result = process.wait()
            assert (process.id, result.status) == (0, "refused")
            assert [e.result for e in process.stream()] == [result]
            with pytest.raises(llmsandbox.NotFoundError, match="before it ran"):
                process.write("x")


def test_errors(sandbox: Sandbox) -> None:
    with pytest.raises(llmsandbox.NotFoundError):
        sandbox.process(12345)
    process = sandbox.start("true")
    with pytest.raises(llmsandbox.APIError, match="takes no more input"):
        process.write("x")
    with pytest.raises(llmsandbox.InvalidError, match="not the id of an event"):
        next(process.stream(after="1-1\r\nX: y"))
    with pytest.raises(llmsandbox.InvalidError, match="seconds"):
        process.poll(-1)
    with sandbox.start("sleep 1000") as running, pytest.raises(llmsandbox.InvalidError):
        running.signal("SIGNONE")


def test_asyncio(server: Server) -> None:
    async def main() -> None:
        async with server.async_client() as client, llmsandbox.AsyncSandbox(client=client) as sandbox:
            async with await sandbox.start_run(ECHO, stdin_open=True) as process:
                reader = asyncio.create_task(collect(process))
                await process.write("one\n")
                await process.close_stdin()
                assert await reader == "begun\nONE\n"
                assert (await process.wait()).ok
            waiting = asyncio.create_task((await sandbox.start("sleep 1000")).wait())
            (running,) = [p for p in await sandbox.processes() if p.running]
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await (same := await sandbox.process(running.id)).poll()) is None  # to wait is not to own
            await same.kill()

    async def collect(process: llmsandbox.AsyncProcess) -> str:
        return written([event async for event in process.stream()], "stdout")

    asyncio.run(main(), debug=True)


@pytest.mark.parametrize(
    "state",
    [{"state": "ended"}, {"state": "running", "id": "1"}, {}],
)
def test_malformed_states(serve: Callable[..., str], state: dict[str, object]) -> None:
    with llmsandbox.Client(serve(answer({"id": "sb-1"}, "201 Created"), answer(state, "201 Created"))) as client:
        with pytest.raises(llmsandbox.LostError, match="cannot be used"):
            Sandbox(client=client).start("true")


def test_malformed_gap(serve: Callable[..., str]) -> None:
    gap = answer(b'event: gap\nid: 1-0\ndata: {"stream": "stdin", "bytes": 1}\n\n', kind="text/event-stream")
    url = serve(answer({"id": "sb-1"}, "201 Created"), answer({"state": "running", "id": 1}, "201 Created"), gap)
    with llmsandbox.Client(url) as client, pytest.raises(llmsandbox.LostError, match="gap"):
        next(Sandbox(client=client).start("true").stream())
