"""Sandboxes of a server with a key: runs, streams, files, kernels and errors."""

from __future__ import annotations

import pickle
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from conftest import Server

import llmsandbox
from llmsandbox import Client, Sandbox, _local


def test_run(sandbox: Sandbox) -> None:
    result = sandbox.run("import sys; print(sys.argv[1:], input()); print('no', file=sys.stderr)", args=["a"], stdin="typed\n")
    assert (result.status, result.ok, result.exit_code) == ("ok", True, 0)
    assert (result.stdout, result.stderr) == ("['a'] typed\n", "no\n")
    assert result.duration > 0
    assert (result.sandbox_id, result.language) == (sandbox.id, "python")


def test_code_that_fails(sandbox: Sandbox) -> None:
    result = sandbox.run("raise SystemExit(3)")
    assert (result.status, result.exit_code, result.ok) == ("error", 3, False)
    result = sandbox.run("import os; os.kill(os.getpid(), 9)")
    assert (result.status, result.exit_code, result.signal) == ("killed", None, "SIGKILL")
    result = sandbox.run("import numpyx")
    assert "numpyx" in result.stderr


def test_timeout(sandbox: Sandbox) -> None:
    result = sandbox.run("import time; time.sleep(1000)", timeout=1)
    assert (result.status, result.ok, result.exit_code) == ("timeout", False, None)
    assert result.reason


def test_options(sandbox: Sandbox) -> None:
    code = "import os, other; print(os.environ['A'], other.x, os.path.basename(os.getcwd()))"
    sandbox.files.mkdir("below")
    assert sandbox.run("import os; print(os.getcwd())", cwd="below").stdout.endswith("/below\n")
    assert sandbox.run(code, env={"A": "b"}, files={"other.py": b"x = 1"}).stdout.startswith("b 1 ")
    assert sandbox.run("echo $0", language="bash").ok


def test_exec(sandbox: Sandbox) -> None:
    assert sandbox.exec("echo a b | tr a-z A-Z; exit 2").exit_code == 2
    assert sandbox.exec(["cat"], stdin="in").stdout == "in"
    with pytest.raises(llmsandbox.InvalidError):
        sandbox.exec([])


def test_run_of_its_own(client: Client) -> None:
    result = llmsandbox.run("print(6 * 7)", client=client, memory="64m", cpus=0.5)
    assert (result.stdout, result.ok) == ("42\n", True)
    assert llmsandbox.run("echo hello", language="bash", client=client).stdout == "hello\n"


def test_stream(sandbox: Sandbox) -> None:
    events = list(sandbox.stream("import sys; print('é' * 3, flush=True); print('b', file=sys.stderr)"))
    assert "".join(e.text for e in events if e.kind == "stdout") == "ééé\n"
    assert "".join(e.text for e in events if e.kind == "stderr") == "b\n"
    assert events[-1].kind == "done"
    assert events[-1].result is not None and events[-1].result.ok


def test_stream_that_is_left(sandbox: Sandbox) -> None:
    """A stream that is left ends its run: what it holds is free again."""
    for event in sandbox.stream(
        "import fcntl, time; f = open('lock', 'w'); fcntl.flock(f, 2); print('mine', flush=True); time.sleep(1000)"
    ):
        assert event.text.startswith("mine")
        break
    assert sandbox.run("import fcntl; f = open('lock', 'w'); fcntl.flock(f, 2)", timeout=60).ok


def test_files(sandbox: Sandbox, tmp_path: Path) -> None:
    files = sandbox.files
    files.write("a/é &?#%.txt", "één")
    assert files.read_text("a/é &?#%.txt") == "één"
    files.write("a/data", bytes(range(256)))
    assert files.read("a/data") == bytes(range(256))
    assert [(f.name, f.type, f.size) for f in files.list("a")] == [("data", "file", 256), ("é &?#%.txt", "file", 5)]
    files.rename("a/data", "a/other")
    described = files.stat("a/other")
    assert (described.type, described.mode) == ("file", 0o644)
    assert described.modified.utcoffset() is not None
    files.write("empty", b"")
    assert files.read("empty") == b""
    files.mkdir("x/y")
    assert files.stat("x").type == "directory"
    files.remove("a")
    assert "a" not in [f.name for f in files.list()]

    large = tmp_path / "large"
    large.write_bytes(b"0123456789abcdef" * 200_000)
    files.upload(large, "large")
    files.download("large", tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == large.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again", "large"]


def test_files_that_are_missing(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        sandbox.files.read("missing")
    assert isinstance(caught.value, llmsandbox.SandboxFileNotFoundError)
    again: object = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, llmsandbox.SandboxFileNotFoundError) and again.code == "file_not_found"
    with pytest.raises(FileNotFoundError):
        sandbox.files.download("missing", tmp_path / "target")
    with pytest.raises(FileNotFoundError):
        sandbox.files.upload(tmp_path / "missing", "a")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(llmsandbox.Error, match="/etc/passwd"):
        sandbox.files.write("/etc/passwd", "x")


def test_refused_upload(client: Client, sandbox: Sandbox) -> None:
    """What refuses a large file says why, and the connection is not used again, on which the server still expects the file."""
    sandbox.pause()
    with pytest.raises(llmsandbox.PausedError, match="paused"):
        sandbox.files.write("large", b"x" * 5_000_000)
    assert client._transport._idle == []
    sandbox.resume()
    sandbox.files.write("large", b"x" * 5_000_000)
    assert sandbox.files.stat("large").size == 5_000_000


def test_kernel(sandbox: Sandbox) -> None:
    with sandbox.kernel() as kernel:
        assert kernel.language == "python"
        assert kernel.run("x = 20").ok
        cell = kernel.run("print('p')\nx + 1")
        assert (cell.text, cell.stdout, cell.count) == ("21", "p\n", 2)
        failed = kernel.run("1 / 0")
        assert failed.error is not None and failed.error.name == "ZeroDivisionError"
        assert kernel.run("input()", stdin=["typed"]).text == "'typed'"
        assert [v.name for v in kernel.variables()] == ["x"]
        assert "print" in kernel.complete("prin").matches
        assert "int" in kernel.inspect("x")
        cell = kernel.run("import time; time.sleep(1000)", timeout=1)
        assert (cell.status, cell.interrupted, cell.state_lost) == ("timeout", True, False)
        events = list(kernel.stream("print(1)\nx"))
        assert "".join(e.text for e in events) == "1\n"
        last = events[-1].result
        assert isinstance(last, llmsandbox.Cell) and last.text == "20"
        kernel.reset()
        assert kernel.run("x").status == "error"
        kernel.restart()
        assert kernel.run("1").count == 1
    with pytest.raises(llmsandbox.ClosedError):
        kernel.run("1")


def test_kernel_is_interrupted(sandbox: Sandbox) -> None:
    with sandbox.kernel() as kernel:
        events = kernel.stream("import time\nprint('begun', flush=True)\ntime.sleep(1000)")
        assert next(events).text.startswith("begun")
        kernel.interrupt()
        *_, last = events
        assert last.result is not None and last.result.status == "killed"


def test_artifacts(sandbox: Sandbox) -> None:
    png = (
        "import base64, os\n"
        "open('artifacts/p.png', 'wb').write(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='))\n"
        "open('artifacts/t.csv', 'w').write('a,b\\n')\n"
    )
    result = sandbox.run(png)
    assert sorted(a.name for a in result.artifacts) == ["p.png", "t.csv"]
    (plot,) = result.plots
    assert (plot.mime, plot.width, plot.height) == ("image/png", 1, 1)
    assert plot.to_pil().size == (1, 1)
    assert [a.data for a in result.files if a.name == "t.csv"] == [b"a,b\n"]
    assert "data:image/png;base64," in result._repr_html_()


def test_install(sandbox: Sandbox) -> None:
    assert sandbox.run("import tabulate").status == "error"
    sandbox.install("tabulate==0.9.0")
    assert sandbox.run("import tabulate; print(tabulate.__name__)").stdout == "tabulate\n"
    with pytest.raises(llmsandbox.InstallError, match="no-such-library-of-anybody"):
        sandbox.install("no-such-library-of-anybody==99")


def test_attach_and_list(client: Client) -> None:
    with Sandbox(labels={"of": "test"}, client=client) as sandbox:
        sandbox.files.write("a", "1")
        with Sandbox.attach(sandbox.id, client=client) as same:
            assert same.files.read("a") == b"1"
        assert [s.id for s in client.list(labels={"of": "test"})] == [sandbox.id]
        with pytest.raises(llmsandbox.InvalidError, match="label"):
            client.list(labels={"of=test": ""})
        sandbox.set_lifetime(600)
        assert sandbox.info().deadline is not None
        sandbox.pause()
        with pytest.raises(llmsandbox.PausedError):
            sandbox.run("1")
        sandbox.resume()
        assert sandbox.run("1").ok
    assert client.list(labels={"of": "test"}) == []
    with pytest.raises(llmsandbox.NotFoundError):
        Sandbox.attach(sandbox.id, client=client)
    with pytest.raises(llmsandbox.ClosedError):
        sandbox.run("1")


def test_reset(client: Client) -> None:
    with Sandbox(resettable=True, client=client) as sandbox:
        sandbox.files.write("a", "1")
        sandbox.reset()
        assert "a" not in [f.name for f in sandbox.files.list()]


def test_connections_are_used_again(client: Client, sandbox: Sandbox) -> None:
    for _ in range(3):
        sandbox.files.list()
    (connection,) = client._transport._idle
    assert connection.reused
    client.close()
    assert client._transport._idle == []


def test_sandbox_that_has_ended(client: Client) -> None:
    sandbox = Sandbox(client=client)
    sandbox.run("1")
    Sandbox.attach(sandbox.id, client=client).destroy()
    with pytest.raises(llmsandbox.NotFoundError):
        sandbox.run("1")
    sandbox.close()


def test_refusals(server: Server, client: Client) -> None:
    with pytest.raises(llmsandbox.NotAllowedError, match="memory"):
        llmsandbox.run("1", memory="64g", client=client)
    with pytest.raises(ValueError, match="brainfuck"):
        llmsandbox.run("1", language="brainfuck", client=client)
    with pytest.raises(llmsandbox.TooLargeError, match="write files"):
        llmsandbox.run("#" * (9 << 20), client=client)
    with pytest.raises(llmsandbox.InvalidError, match="surrogate"):
        llmsandbox.run("\ud800", client=client)
    with pytest.raises(llmsandbox.InvalidError, match="not a size"):
        llmsandbox.run("1", memory="much", client=client)
    with pytest.raises(llmsandbox.InvalidError, match=r"use a list, such as \['numpy'\]"):
        llmsandbox.run("1", libraries="numpy", client=client)
    with llmsandbox.Client(server.url, "wrong") as stranger, pytest.raises(llmsandbox.AuthenticationError):
        llmsandbox.run("1", client=stranger)


def test_policy(new_server: type[Server]) -> None:
    server = new_server("--policy", "production", "--warm", "0")
    with server.client() as client:
        result = llmsandbox.run("import os; os.system('id')", client=client)
    assert result.status == "refused"
    assert result.findings


def test_key_is_shown_nowhere(server: Server, client: Client) -> None:
    secret = llmsandbox.Secret("TOKEN", "hunter2hunter2", ["example.org"])
    sandbox = Sandbox(client=client, secrets=[secret])
    for text in (repr(client), repr(client._endpoint), repr(sandbox), repr(sandbox.files), repr(secret)):
        assert server.key not in text
        assert "hunter2" not in text
    with pytest.raises(llmsandbox.InvalidError) as caught:
        llmsandbox.Client("https://user:hunter2@example.org")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "example.org", "ftp://example.org", "http://", "http://a b", "http://[", "http://x:y", "unix:relative", "http://x/?a=b"]
)
def test_malformed_urls(url: str) -> None:
    with pytest.raises(llmsandbox.InvalidError):
        llmsandbox.Client(url)


def test_unix_socket(tmp_path: Path, program: Callable[..., CompletedProcess[str]]) -> None:
    """A URL can be that of a Unix socket."""
    client = llmsandbox.Client(server_args=["--warm", "0"])
    llmsandbox.run("1", client=client)
    (server,) = (s for args, s in _local._servers.items() if args == ("--warm", "0"))
    done = program("import llmsandbox\nprint(llmsandbox.run('print(1)').stdout)", LLMSANDBOX_URL=f"unix:{server.socket}")
    assert (done.stdout, done.stderr) == ("1\n\n", "")


def test_tls(tmp_path: Path, new_server: type[Server], program: Callable[..., CompletedProcess[str]]) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    subprocess.run([*make, *subject], check=True, stderr=subprocess.DEVNULL)
    server = new_server("--warm", "0", "--tls-cert", str(cert), "--tls-key", str(key))
    assert server.url.startswith("https://")
    with server.client() as client, pytest.raises(llmsandbox.ConnectError, match="(?i)certificate"):
        llmsandbox.run("1", client=client)
    code = """
import asyncio, llmsandbox, threading
with llmsandbox.Client() as client, llmsandbox.Sandbox(client=client) as sandbox:
    sandbox.files.write("large", b"x" * 3_000_000)
    print(len(sandbox.files.read("large")), *(event.kind for event in sandbox.stream("pass")))
    with sandbox.terminal("stty raw -echo; printf begun; head -c 1000000 | wc -c; seq 100000") as terminal:
        assert terminal.read().startswith(b"b")
        typing = threading.Thread(target=terminal.write, args=("x" * 1_000_000,))
        typing.start()
        shown = b""
        while piece := terminal.read():
            shown += piece
        typing.join()
        print(b"1000000" in shown, shown.split()[-1].decode())

async def main():
    async with llmsandbox.AsyncSandbox() as sandbox:
        await sandbox.files.write("large", b"x" * 3_000_000)
        print(len(await sandbox.files.read("large")), *[event.kind async for event in sandbox.stream("pass")])
        try:
            await asyncio.wait_for(sandbox.run("import time; time.sleep(1000)"), 1)
        except asyncio.TimeoutError:
            print("cancelled")

asyncio.run(main())
"""
    done = program(code, LLMSANDBOX_URL=server.url, LLMSANDBOX_API_KEY=server.key, SSL_CERT_FILE=str(cert))
    assert (done.stdout, done.stderr) == ("3000000 done\nTrue 100000\n3000000 done\ncancelled\n", "")


def test_server_that_is_not_there() -> None:
    with llmsandbox.Client("http://127.0.0.1:1") as client, pytest.raises(llmsandbox.ConnectError, match="127.0.0.1:1"):
        llmsandbox.run("1", client=client)


def test_server_is_killed(new_server: type[Server]) -> None:
    server = new_server("--warm", "0")
    with server.client() as client:
        sandbox = Sandbox(client=client)
        events = sandbox.stream("import time; print('begun', flush=True); time.sleep(1000)")
        assert next(events).text.startswith("begun")
        server.process.kill()
        server.process.wait()
        with pytest.raises(llmsandbox.LostError):
            list(events)
        with pytest.raises(llmsandbox.ConnectError):
            sandbox.run("1")


def test_many_threads(sandbox: Sandbox) -> None:
    together = threading.Barrier(200)

    def run(n: int) -> str:
        together.wait()
        sandbox.files.write(f"files/{n}", str(n))
        return sandbox.files.read_text(f"files/{n}") + sandbox.exec(["echo", str(n)]).stdout

    with ThreadPoolExecutor(200) as threads:
        assert list(threads.map(run, range(200))) == [f"{n}{n}\n" for n in range(200)]


def test_opened_once_by_threads(client: Client) -> None:
    sandbox = Sandbox(labels={"of": "threads"}, client=client)

    def run(_: int) -> str:
        return sandbox.run("1").sandbox_id

    with ThreadPoolExecutor(8) as threads:
        ids = set(threads.map(run, range(8)))
    assert ids == {sandbox.id}
    sandbox.close()
    sandbox.close()
