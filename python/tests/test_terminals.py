"""Terminals of a server, blocking and with asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from conftest import Server, answer

import llmsandbox
from llmsandbox import Sandbox, Terminal


def until(terminal: Terminal, text: str) -> str:
    """Return what is shown up to a text."""
    shown = b""
    while text.encode() not in shown:
        piece = terminal.read()
        assert piece, f"the terminal has ended, and showed {shown!r}"
        shown += piece
    return shown.decode()


def test_shell(sandbox: Sandbox) -> None:
    with sandbox.terminal(cols=100, rows=30) as terminal:
        terminal.write("stty size; echo $((6 * 7))-\n")
        shown = until(terminal, "42-")
        assert "30 100" in shown
        terminal.resize(90, 20)
        terminal.write(b"stty size; printf %s $((1 + 1)):\n")
        assert "20 90" in until(terminal, "2:")
        terminal.write("exit 4\n")
        result = terminal.wait()
        assert result.exit_code == 4 and terminal.wait() is result
        assert terminal.read() == b""
    with pytest.raises(llmsandbox.ClosedError):
        terminal.write("x")


def test_commands(sandbox: Sandbox) -> None:
    with sandbox.terminal("tty | head -c 4; exit 3") as terminal:
        assert until(terminal, "/dev")
        assert terminal.wait().exit_code == 3
    with sandbox.terminal(["sh", "-c", 'echo "$1"-', "sh", "a b"]) as terminal:
        assert until(terminal, "a b-")


def test_keys(sandbox: Sandbox) -> None:
    with sandbox.terminal("trap 'echo told; exec cat' INT; echo begun; while :; do sleep 0.01; done") as terminal:
        until(terminal, "begun")
        terminal.write("\x03")  # Ctrl-C
        until(terminal, "told")
        terminal.write("\x04")  # Ctrl-D
        assert terminal.wait().ok


def test_much_is_shown_and_typed(sandbox: Sandbox) -> None:
    with sandbox.terminal("stty raw -echo; printf begun; head -c 300000 | wc -c; seq 200000; exec sleep 1000") as terminal:
        until(terminal, "begun")
        typing = threading.Thread(target=terminal.write, args=("x" * 300_000,))
        typing.start()
        assert "300000" in until(terminal, "\n199999\n200000")
        typing.join()


def test_detach_and_attach(sandbox: Sandbox) -> None:
    terminal = sandbox.terminal("read a; echo got $a-; read b; exit 5")
    terminal.write("one\n")
    until(terminal, "got one-")
    terminal.detach()
    terminal.detach()
    assert terminal.read() == b""
    with pytest.raises(llmsandbox.ClosedError):
        terminal.wait()
    with sandbox.terminal(process=terminal.process) as same:
        assert same.process == terminal.process
        same.write("two\n")
        assert same.wait().exit_code == 5


def test_other_client_takes_over(sandbox: Sandbox) -> None:
    first = sandbox.terminal("exec sleep 1000")
    with sandbox.terminal(process=first.process) as second:
        with pytest.raises(llmsandbox.Error):
            while first.read():
                pass
        first.detach()
    assert second.read() == b"" or second.process


def test_close_ends_the_program(sandbox: Sandbox) -> None:
    """Also while another thread waits for what is shown."""
    terminal = sandbox.terminal("echo begun; exec sleep 1000")
    until(terminal, "begun")
    shown: list[bytes] = []
    reading = threading.Thread(target=lambda: shown.append(terminal.read()))
    reading.start()
    terminal.close()
    reading.join()
    assert terminal.process not in [p.id for p in sandbox.processes() if p.running]


def test_errors(sandbox: Sandbox) -> None:
    with pytest.raises(llmsandbox.InvalidError, match="belong together"):
        sandbox.terminal(cols=80)
    with pytest.raises(llmsandbox.SandboxFileNotFoundError):
        sandbox.terminal(process=12345)
    with pytest.raises(llmsandbox.Error, match="no-such-program"):
        sandbox.terminal(["no-such-program"]).wait()
    with sandbox.terminal("exec sleep 1000") as terminal:
        terminal.resize(0, 0)
        with pytest.raises(llmsandbox.InvalidError, match="1 to 1000"):
            terminal.wait()


def test_server_is_killed(new_server: type[Server]) -> None:
    server = new_server("--warm", "0")
    with server.client() as client:
        terminal = Sandbox(client=client).terminal("echo begun; exec sleep 1000")
        until(terminal, "begun")
        server.process.kill()
        server.process.wait()
        with pytest.raises(llmsandbox.LostError):
            terminal.read()
        with pytest.raises(llmsandbox.ConnectError):
            terminal.close()


def test_asyncio(server: Server) -> None:
    async def until(terminal: llmsandbox.AsyncTerminal, text: bytes) -> None:
        shown = b""
        while text not in shown:
            shown += await terminal.read()

    async def main() -> None:
        async with server.async_client() as client, llmsandbox.AsyncSandbox(client=client) as sandbox:
            async with await sandbox.terminal(cols=100, rows=30) as terminal:
                reading = asyncio.create_task(until(terminal, b"42-"))
                await terminal.write("echo $((6 * 7))-\n")
                await reading
                waiting = asyncio.create_task(terminal.wait())
                await sandbox.exec("true")
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                await terminal.write("exit 3\n")
                assert (await terminal.wait()).exit_code == 3
            async with await sandbox.terminal("exec sleep 1000") as terminal:
                pass

    asyncio.run(main(), debug=True)


@pytest.mark.parametrize(
    "data",
    [
        answer({}),
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ],
)
def test_server_that_does_not_switch(serve: Callable[..., str], data: bytes) -> None:
    with llmsandbox.Client(serve(answer({"id": "sb-1"}, "201 Created"), data)) as client:
        with pytest.raises(llmsandbox.LostError):
            Sandbox(client=client).terminal()
