"""The main flows of the Python SDKs, sync and async, against the server that the environment names. What an older SDK cannot do is left out."""

import asyncio
import contextlib
import datetime
import os
import threading
import time
import uuid
from importlib.metadata import version

import httpx
from e2b import (
    AuthenticationException,
    CommandExitException,
    FileType,
    InvalidArgumentException,
    NotFoundException,
    PtySize,
    Sandbox,
    SandboxException,
    SandboxQuery,
    TimeoutException,
)
from e2b_code_interpreter import AsyncSandbox as AsyncInterpreter
from e2b_code_interpreter import Sandbox as Interpreter

SDK, INTERPRETER = ([int(n) for n in version(name).split(".")] for name in ("e2b", "e2b-code-interpreter"))

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@contextlib.contextmanager
def fails(*kinds, says=""):
    """Fails where what is in it does not, or with another error."""
    try:
        yield
    except kinds as e:
        assert says in str(e), e
        return
    raise AssertionError(f"it is none of {kinds}")


def life():
    metadata = {"who": "me & you", "a=b": "ä/+%"}
    with Sandbox.create(metadata=metadata, envs={"A": "1"}, timeout=120) as sb:
        assert sb.is_running()
        info = sb.get_info()
        assert (info.sandbox_id, info.metadata, info.template_id) == (sb.sandbox_id, metadata, "base"), info
        assert info.state.value == "running" and info.end_at - info.started_at > datetime.timedelta(seconds=100), info
        found = Sandbox.list(query=SandboxQuery(metadata=metadata)).next_items()
        assert [s.sandbox_id for s in found] == [sb.sandbox_id], found
        sb.set_timeout(300)
        again = Sandbox.connect(sb.sandbox_id)
        assert Sandbox.get_info(sb.sandbox_id).end_at > info.end_at
        assert again.commands.run("echo $A $E2B_SANDBOX_ID").stdout == f"1 {sb.sandbox_id}\n"
        assert sb.kill() and not sb.kill() and not sb.is_running()
    for gone in (sb.get_info, lambda: sb.set_timeout(1), lambda: Sandbox.connect(sb.sandbox_id), lambda: sb.commands.run("true"), lambda: sb.files.read("x")):
        with fails(SandboxException):
            gone()
    with fails(AuthenticationException):
        Sandbox.create(api_key="e2b_00")
    with fails(SandboxException, says="none-of-this-name"):
        Sandbox.create("none-of-this-name")
    with fails(SandboxException):
        Sandbox.create(timeout=10**7)
    with fails(InvalidArgumentException, SandboxException):
        Sandbox.create(envs={"": "x"})


def pages():
    metadata, made = {"pages": str(uuid.uuid4())}, []
    try:
        for _ in range(3):
            made.insert(0, Sandbox.create(metadata=metadata, timeout=120))
        listed = Sandbox.list(query=SandboxQuery(metadata=metadata), limit=2)
        first = listed.next_items()
        assert len(first) == 2 and listed.has_next and listed.next_token
        rest = Sandbox.list(query=SandboxQuery(metadata=metadata), limit=2, next_token=listed.next_token).next_items()
        assert [s.sandbox_id for s in first + rest] == [s.sandbox_id for s in made]
        assert listed.next_items()[0].sandbox_id == rest[0].sandbox_id and not listed.has_next
        full = Sandbox.list(query=SandboxQuery(metadata=metadata), limit=3)
        assert len(full.next_items()) == 3 and not full.has_next
        with fails(SandboxException):
            Sandbox.list(next_token="none").next_items()
    finally:
        for sb in made:
            sb.kill()


def commands(sb):
    done = sb.commands.run("echo out; echo err >&2; pwd; echo $HOME")
    assert (done.stdout, done.stderr, done.exit_code) == ("out\n/home/user\n/home/user\n", "err\n", 0), done
    try:
        sb.commands.run("echo x; exit 3")
        raise AssertionError("exit 3 is no error")
    except CommandExitException as e:
        assert e.exit_code == 3 and e.stdout == "x\n", e
    out, err = [], []
    sb.commands.run("for i in 1 2 3; do echo $i$B; done; pwd >&2", on_stdout=out.append, on_stderr=err.append, envs={"B": "ä"}, cwd="/tmp")
    assert "".join(out) == "1ä\n2ä\n3ä\n" and "".join(err) == "/tmp\n", (out, err)
    with fails(TimeoutException):
        sb.commands.run("sleep 60", timeout=1)
    with fails(InvalidArgumentException):
        sb.commands.run("true", cwd="/none")
    with fails(AuthenticationException):
        sb.commands.run("true", user="nobody-here")

    cat = sb.commands.run("head -n2", background=True, **({"stdin": True} if SDK >= [2] else {}))
    assert ["-l", "-c", "head -n2"] in [p.args for p in sb.commands.list() if p.pid == cat.pid]
    other = sb.commands.connect(cat.pid)
    sb.commands.send_stdin(cat.pid, "typed\n")
    sb.commands.send_stdin(cat.pid, "möre\n")
    assert cat.wait().stdout == "typed\nmöre\n"
    assert other.wait().exit_code == 0
    if hasattr(sb.commands, "close_stdin"):
        cat = sb.commands.run("cat", background=True, stdin=True)
        sb.commands.send_stdin(cat.pid, "typed")
        sb.commands.close_stdin(cat.pid)
        assert cat.wait().stdout == "typed"
    asleep = sb.commands.run("sleep 60", background=True)
    assert asleep.kill() and not sb.commands.kill(asleep.pid)
    with fails(CommandExitException):
        asleep.wait()
    with fails(NotFoundException):
        sb.commands.connect(999_999)

    shown = []
    pty = sb.pty.create(PtySize(rows=20, cols=50), timeout=60)
    sb.pty.resize(pty.pid, PtySize(rows=30, cols=60))
    sb.pty.send_stdin(pty.pid, b"stty size; exit 4\n")
    with fails(CommandExitException):
        pty.wait(on_pty=shown.append)
    assert b"30 60" in b"".join(shown), shown


def files(sb):
    info = sb.files.write("dir/a.txt", "hällo")
    assert info.path == "/home/user/dir/a.txt" and info.name == "a.txt", info
    assert sb.files.read("dir/a.txt") == "hällo"
    assert bytes(sb.files.read("/home/user/dir/a.txt", format="bytes")) == "hällo".encode()
    assert b"".join(sb.files.read("dir/a.txt", format="stream")) == "hällo".encode()
    assert sb.files.exists("dir") and not sb.files.exists("none")
    for missing in (sb.files.read, sb.files.list, *([sb.files.get_info] if hasattr(sb.files, "get_info") else [])):
        with fails(NotFoundException):
            missing("none")
    with fails(InvalidArgumentException):
        sb.files.read("dir")
    with fails(InvalidArgumentException):
        sb.files.list("dir/a.txt")
    several = [{"path": "b1", "data": "1"}, {"path": "/tmp/b 2+", "data": b"2"}]
    written = sb.files.write_files(several) if hasattr(sb.files, "write_files") else sb.files.write(several)
    assert [f.path for f in written] == ["/home/user/b1", "/tmp/b 2+"], written
    assert sb.files.read("/tmp/b 2+") == "2"
    assert sb.files.make_dir("deep/er") and not sb.files.make_dir("deep/er")
    entries = {e.path: e for e in sb.files.list("/home/user", depth=2)}
    assert entries["/home/user/deep/er"].type == FileType.DIR and "/home/user/b1" in entries, entries
    moved = sb.files.rename("b1", "deep/c1")
    assert moved.path == "/home/user/deep/c1", moved
    if hasattr(sb.files, "get_info"):
        entry = sb.files.get_info("deep/c1")
        assert entry.mode == 0o644 and entry.permissions == "-rw-r--r--" and entry.size == 1, entry
    sb.files.remove("deep")
    sb.files.remove("deep")
    assert not sb.files.exists("deep")
    big = b"x" * (20 << 20)
    with fails(TimeoutException, httpx.TimeoutException):
        sb.files.write("big", big, request_timeout=0.001)  # so much is not written so soon
    sb.files.write("big", big)
    assert bytes(sb.files.read("big", format="bytes")) == big
    assert sb.commands.run("wc -c <big").stdout.strip() == str(len(big))

    watched = sb.files.watch_dir("dir", recursive=True)
    sb.files.write("dir/sub/new", "x")
    events, end = [], time.monotonic() + 30
    while "sub/new" not in [e.name for e in events] and time.monotonic() < end:
        events += watched.get_new_events()
    watched.stop()
    assert [e for e in events if e.name == "sub/new"], events
    with fails(NotFoundException):
        sb.files.watch_dir("none")


def urls(sb):
    at = "urls/a b+c.txt"
    upload = sb.upload_url(at, use_signature_expiration=60)
    put = httpx.post(upload, files={"file": ("ignored", "signed ä")})
    assert put.status_code == 200, put.text
    assert put.json() == [{"path": f"/home/user/{at}", "name": "a b+c.txt", "type": "file"}], put.text
    for options in ({}, {"use_signature_expiration": 60}, {"user": "user"}):
        got = httpx.get(sb.download_url(at, **options))
        assert (got.status_code, got.text) == (200, "signed ä"), got.text
    url = sb.download_url(at)
    for wrong, status, message in (
        (sb.download_url(at, use_signature_expiration=-1), 401, "signature is already expired"),
        (url.replace("urls%2F", ""), 401, "invalid signature"),
        (sb.download_url("none"), 404, "none"),
    ):
        got = httpx.get(wrong)
        assert got.status_code == status and message in got.json()["message"], (wrong, got.text)


def pauses():
    wakes = SDK >= [2, 45]  # older ones ask for no auto-resume
    if wakes:
        sb = Sandbox.create(timeout=300, lifecycle={"on_timeout": "pause", "auto_resume": True})
        pause = sb.pause
    else:
        sb = Sandbox.beta_create(timeout=300, auto_pause=True)
        pause = sb.beta_pause
    try:
        sb.files.write("kept", "kept")
        pid = sb.commands.run("exec sleep 1000", background=True).pid
        pause()
        assert not sb.is_running()
        assert sb.get_info().state.value == "paused"
        pause()  # again, which is none
        again = Sandbox.connect(sb.sandbox_id, timeout=300)
        assert again.is_running() and sb.is_running()
        assert pid in [p.pid for p in again.commands.list()]
        if wakes:
            of = again.get_info().lifecycle
            assert (of["on_timeout"], of["auto_resume"]) == ("pause", True), of
            pause()
            assert sb.commands.run("cat kept").stdout == "kept"
        again.set_timeout(1)
        until = time.monotonic() + 60
        while sb.get_info().state.value != "paused":
            assert time.monotonic() < until, "it is not paused at its timeout"
            time.sleep(0.1)
        assert not sb.is_running()
        assert Sandbox.connect(sb.sandbox_id, timeout=300).files.read("kept") == "kept"
    finally:
        assert sb.kill()


def code():
    with Interpreter.create(timeout=120, envs={"S": "of the sandbox"}) as sb:
        done = sb.run_code("x = 1\nprint('hello')\nx + 1")
        assert done.logs.stdout == ["hello\n"] and done.text == "2" and not done.error and done.execution_count == 1, done
        assert sb.run_code("x").text == "1"
        assert sb.run_code("import os; os.environ['S'] + os.environ['V']", envs={"V": "v"}).text == "of the sandboxv"
        out, err, results, errors = [], [], [], []
        failed = sb.run_code(
            f"""import base64, sys
print('a'); print('ä'); print('e', file=sys.stderr)
class Picture:
    def _repr_png_(self): return base64.b64decode('{PNG}')
    def _repr_html_(self): return '<b>picture</b>'
display(Picture())
1/0""",
            on_stdout=lambda m: out.append(m.line),
            on_stderr=lambda m: err.append(m.line),
            on_result=results.append,
            on_error=errors.append,
        )
        assert "".join(out) == "a\nä\n" and "".join(err) == "e\n", (out, err)
        assert (failed.error.name, failed.error.value) == ("ZeroDivisionError", "division by zero") and errors == [failed.error], failed
        assert "1/0" in failed.error.traceback
        main = sb.run_code("Picture()").results[0]
        for picture in (results[0], main):
            assert (picture.png, picture.html) == (PNG, "<b>picture</b>"), picture
            assert {"png", "html"} <= set(picture.formats()), picture
        assert main.is_main_result and not results[0].is_main_result
        one = sb.create_code_context(cwd="/tmp")
        assert sb.run_code("x", context=one).error.name == "NameError"
        assert sb.run_code("import os; os.getcwd()", context=one).text == "/tmp"
        if hasattr(sb, "list_code_contexts"):
            assert one.id in [c.id for c in sb.list_code_contexts()]
            sb.restart_code_context(one)
            assert sb.run_code("os", context=one).error.name == "NameError"
            sb.remove_code_context(one)
            with fails(NotFoundException, SandboxException):
                sb.run_code("1", context=one)
        for language, text in (("js", "console.log(1 + 2)"), ("bash", "echo $((1+2))")):
            shell = sb.run_code(text, language=language)
            assert "".join(shell.logs.stdout) == "3\n", shell
        with fails(SandboxException):
            sb.run_code("1", language="cobol")
        with fails(TimeoutException):
            sb.run_code("import time; time.sleep(60)", timeout=1)
        assert sb.run_code("x").text == "1", "the state has not outlived the time-out"
        assert sb.commands.run("echo both").stdout == "both\n"
        with fails(Exception):
            sb.run_code("print('begun', flush=True); time.sleep(60)", on_stdout=lambda _: threading.Thread(target=sb.kill).start())


async def asynchronous():
    sb = await AsyncInterpreter.create(timeout=120)
    try:
        done = await asyncio.gather(*(sb.commands.run(f"echo {i}") for i in range(5)))
        assert [d.stdout for d in done] == [f"{i}\n" for i in range(5)], done
        await sb.files.write("a", "b")
        assert await sb.files.read("a") == "b"
        seen = asyncio.Event()
        handle = await sb.files.watch_dir("/home/user", on_event=lambda e: seen.set() if e.name == "w" else None)
        await sb.files.write("w", "1")
        await asyncio.wait_for(seen.wait(), 30)
        await handle.stop()
        if INTERPRETER >= [2, 9] or "E2B_SANDBOX_URL" not in os.environ:
            assert (await sb.run_code("1 + 1")).text == "2"
    finally:
        await sb.kill()


def main():
    life()
    pages()
    with Sandbox.create(timeout=300) as sb:
        commands(sb)
        files(sb)
        urls(sb)
    pauses()
    # Older ones do not know E2B_SANDBOX_URL: they want names for sandboxes.
    if INTERPRETER >= [2, 9] or "E2B_SANDBOX_URL" not in os.environ:
        code()
    asyncio.run(asynchronous())


if __name__ == "__main__":
    main()
    # pyqwest's own threads may abort the interpreter while it ends (0.12.0: one run in eight), after all has passed.
    os._exit(0)
