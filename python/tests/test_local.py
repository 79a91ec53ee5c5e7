"""The private server of a process: where it runs, and that it ends with the process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Server

import llmsandbox
from llmsandbox import _local

Program = Callable[..., "subprocess.CompletedProcess[str]"]

SHOW = """
import llmsandbox, os
from llmsandbox import _local
def server():
    (one,) = _local._servers.values()
    return one
"""


def ends(process: int) -> None:
    """Wait until a process that is not our child has ended, or is only waited for."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{process}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except FileNotFoundError:
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} still runs")


def test_first_lines(program: Program) -> None:
    done = program("import llmsandbox\nprint(llmsandbox.run('print(6 * 7)').stdout)")
    assert (done.stdout, done.stderr, done.returncode) == ("42\n\n", "", 0)


def test_one_server_that_ends(program: Program) -> None:
    """A program that leaves a sandbox and all that it can have open ends without a warning, and nothing of them is left."""
    done = program(
        SHOW
        + """
sandbox = llmsandbox.Sandbox()
kernel = sandbox.kernel()
process = sandbox.start("exec sleep 1000")
terminal = sandbox.terminal("exec sleep 1000")
pool = llmsandbox.Pool(llmsandbox.Sandbox)
taken = pool.acquire()
output = process.stream()
events = sandbox.stream("import time; print('begun', flush=True); time.sleep(1000)")
next(events)
llmsandbox.run("1")
print(server().process.pid, server().socket)
"""
    )
    assert (done.stderr, done.returncode) == ("", 0)
    process, path = done.stdout.split()
    ends(int(process))
    assert not Path(path).exists()


def test_full_disk(server: Server, tmp_path: Path) -> None:
    """The exception says so and where, and nothing half is left."""
    full, path = tmp_path / "full", tmp_path / "program.py"
    full.mkdir()
    path.write_text(
        f"""
import llmsandbox, os
full = {str(full)!r}
with llmsandbox.Client({server.url!r}, {server.key!r}) as client, llmsandbox.Sandbox(client=client) as sandbox:
    sandbox.exec("mkdir d; head -c 1000000 /dev/zero >d/f")
    for source, target in (("d", "x"), ("d/f", "x")):
        try:
            sandbox.files.download(source, f"{{full}}/{{target}}")
        except OSError as e:
            print(os.strerror(e.errno), os.path.relpath(e.filename, full), os.listdir(full))
os.environ["XDG_RUNTIME_DIR"] = full
try:
    for n in range(9):
        open(f"{{full}}/{{n}}", "w").close()
except OSError:
    pass
try:
    llmsandbox.run("1")
except llmsandbox.StartError as e:
    print(e)
"""
    )
    mounted = f"mount -t tmpfs -o size=64k,nr_inodes=4 none {full} && exec {sys.executable} -X dev -W error {path}"
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted]
    done = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert (done.stderr, done.returncode) == ("", 0)
    *downloads, start = done.stdout.splitlines()
    assert downloads == ["No space left on device x/f []", "No space left on device x []"]
    assert "No space left on device" in start and "XDG_RUNTIME_DIR" in start


def test_exception_with_open_sandbox(program: Program) -> None:
    done = program(SHOW + "sandbox = llmsandbox.Sandbox()\nsandbox.run('1')\nprint(server().process.pid)\n1 / 0")
    assert done.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "Warning" not in done.stderr
    ends(int(done.stdout))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_process_is_killed(how: signal.Signals) -> None:
    """The server ends with a process that can do nothing about it, and so does what runs in its sandboxes."""
    marker = f"marker-{uuid.uuid4()}"
    code = (
        SHOW
        + f"""
sandbox = llmsandbox.Sandbox()
for event in sandbox.stream("print('begun', flush=True)\\nwhile True: pass", args=["{marker}"]):
    print(server().process.pid, flush=True)
"""
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        (inside,) = (p for p in processes(marker) if p != process.pid)
        process.send_signal(how)
        process.wait(60)
        ends(server)
        ends(inside)


def processes(marker: str) -> list[int]:
    """Return the processes with an argument."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if marker.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C in a terminal ends the run and raises KeyboardInterrupt. The server and the sandbox live on."""
    code = (
        SHOW
        + """
with llmsandbox.Sandbox() as sandbox:
    try:
        for event in sandbox.stream("open('f', 'w').write('kept')\\nprint('begun', flush=True)\\nwhile True: pass"):
            if event.text.startswith("begun"):
                print(server().process.pid, flush=True)
    except KeyboardInterrupt:
        print(sandbox.files.read_text("f"), sandbox.exec("pgrep -c python || true").ok)
"""
    )
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("kept True\n", "", 0)
    ends(server)


def test_interrupt_that_another_thread_takes(program: Program) -> None:
    """The system gives a signal to any thread. The main thread raises KeyboardInterrupt also if its system call goes on."""
    done = program(
        SHOW
        + """
import signal, threading
with llmsandbox.Sandbox() as sandbox:
    def interrupt():
        sandbox.exec("while ! test -e begun; do sleep 0.01; done")
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        sandbox.run("open('begun', 'w').close()\\nwhile True: pass", timeout=250)
    except KeyboardInterrupt:
        print("interrupted")
    thread.join()
"""
    )
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_fork(program: Program) -> None:
    """A forked process has a server of its own. What it does with its parent's sandbox is an error, and does not end it."""
    done = program(
        SHOW
        + """
sandbox = llmsandbox.Sandbox()
sandbox.run("1")
first = server().process.pid
child = os.fork()
if child == 0:
    try:
        sandbox.run("1")
    except llmsandbox.ClosedError as e:
        print("error:", e, flush=True)
    sandbox.close()
    assert llmsandbox.run("print(1)").stdout == "1\\n"
    assert server().process.pid != first
    print(server().process.pid, flush=True)
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
assert sandbox.run("1").ok
print(first)
"""
    )
    assert (done.stderr, done.returncode) == ("", 0)
    error, child, parent = done.stdout.splitlines()
    assert error.startswith("error: the sandbox belongs to the process that opened it")
    ends(int(child))
    ends(int(parent))


def test_parent_ends_before_its_child(tmp_path: Path) -> None:
    """A forked child does not keep its parent's server alive."""
    code = (
        SHOW
        + """
import sys
sandbox = llmsandbox.Sandbox()
sandbox.run("1")
if os.fork() == 0:
    sys.stdin.read()  # lives on
    os._exit(0)
print(server().process.pid, flush=True)
"""
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        process.wait(60)
        ends(server)


def test_subprocess_does_not_keep_the_server(tmp_path: Path) -> None:
    code = (
        SHOW
        + """
import subprocess, sys
llmsandbox.run("1")
subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], close_fds=False)
print(server().process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ends(int(process.stdout.readline()))


def test_server_is_killed() -> None:
    """The sandbox of a private server that was killed is lost. The next one has a new server."""
    sandbox = llmsandbox.Sandbox()
    sandbox.run("1")
    (server,) = _local._servers.values()
    server.process.kill()
    server.process.wait()
    with pytest.raises(llmsandbox.Error, match="private server of this process"):
        sandbox.run("1")
    sandbox.close()
    assert llmsandbox.run("print(1)").ok


def test_many_threads() -> None:
    """More programs than a server runs at once, or has wait."""

    def run(n: int) -> str:
        return sandbox.run(f"echo {n}", language="bash").stdout

    with llmsandbox.Sandbox() as sandbox, ThreadPoolExecutor(200) as threads:
        assert list(threads.map(run, range(200))) == [f"{n}\n" for n in range(200)]


def test_network_and_flags() -> None:
    """Code has no network unless it is asked for, and a private server's flags can be set."""
    code = "import socket; socket.create_connection(('example.org', 443), 5)"
    assert llmsandbox.run(code).status == "error"
    assert llmsandbox.run("1", network=["example.org"]).ok
    with (
        llmsandbox.Client(server_args=["--memory", "1g", "--warm", "0"]) as client,
        llmsandbox.Sandbox(memory="1g", client=client) as sandbox,
    ):
        assert sandbox.run("x = bytearray(600 << 20)").ok


def test_isolation() -> None:
    with llmsandbox.Client(isolation="process", server_args=["--warm", "0"]) as client:
        assert llmsandbox.run("print(1)", client=client).stdout == "1\n"


def test_only_isolation_process_works(tmp_path: Path) -> None:
    """Where namespaces cannot be made, the exception says which argument allows the weaker isolation."""
    path = tmp_path / "program.py"
    path.write_text(
        "import llmsandbox\n"
        "try:\n    llmsandbox.run('1')\nexcept llmsandbox.StartError as e:\n    print(e)\n"
        "client = llmsandbox.Client(isolation='process')\n"
        "print(llmsandbox.run('print(42)', client=client).stdout)"
    )
    without = "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all -- "
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", f"{without} {sys.executable} {path}"]
    # Root's own cache is open to a group of sandboxes, which has another number in there: the command would close it.
    env = os.environ | {"LLMSANDBOX_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, text=True, capture_output=True, timeout=120, env=env)
    assert done.stderr == ""
    refused, *out = done.stdout.splitlines()
    assert 'llmsandbox.Client(isolation="process")' in refused
    assert out[0] == "42"


def test_directory_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / f"llmsandbox-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(llmsandbox.StartError, match="closed to all others"):
        _local.endpoint(("--warm", "0"))


def test_flag_that_is_wrong() -> None:
    with llmsandbox.Client(server_args=["--no-such-flag"]) as client, pytest.raises(llmsandbox.StartError, match="no-such-flag"):
        llmsandbox.run("1", client=client)


def test_server_that_never_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "llmsandbox"
    command.write_text("#!/bin/sh\necho waiting >&2\nexec cat\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(_local, "START_TIME", 1)
    with pytest.raises(llmsandbox.StartError, match="did not start within 1 seconds"):
        _local.endpoint(("never",))


def test_command_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(llmsandbox.StartError, match="on the PATH"):
        _local.find_command()


def test_arguments_that_exclude_each_other() -> None:
    with pytest.raises(llmsandbox.InvalidError, match="private server"):
        llmsandbox.Client("http://127.0.0.1:1", isolation="process")
    with pytest.raises(llmsandbox.InvalidError, match="LLMSANDBOX_URL"):
        llmsandbox.Client(api_key="key")


def test_environment(program: Program) -> None:
    done = program(
        "import llmsandbox\nprint(llmsandbox.Client())\nllmsandbox.run('1')",
        LLMSANDBOX_URL="http://127.0.0.1:1/prefix/",
        LLMSANDBOX_API_KEY="hunter2",
    )
    assert done.stdout == "Client('http://127.0.0.1:1/prefix')\n"
    assert "ConnectError" in done.stderr and "hunter2" not in done.stderr
