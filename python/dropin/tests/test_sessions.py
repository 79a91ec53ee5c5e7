"""Sessions on this machine."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from llm_sandbox import (
    ConsoleOutput,
    ContainerError,
    NotOpenSessionError,
    RestrictedModule,
    SandboxSession,
    SandboxTimeoutError,
    SecurityIssueSeverity,
    SecurityPolicy,
    SecurityPolicyViolation,
    ValidationError,
    create_session,
)
from llm_sandbox.core.session_base import BaseSession
from llm_sandbox.exceptions import (
    CommandEmptyError,
    CommandFailedError,
    LibraryInstallationNotSupportedError,
    SecurityViolationError,
)
from llm_sandbox.language_handlers.factory import LanguageHandlerFactory
from llm_sandbox.language_handlers.base import LanguageConfig
from llm_sandbox.language_handlers.python_handler import PythonHandler


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with SandboxSession() as opened:
        yield opened


def test_run(session: Any) -> None:
    assert session.run("import sys; print(6 * 7); print('e', file=sys.stderr)") == ConsoleOutput(0, "e\n", "42\n")
    assert session.run("import sys; sys.exit(3)").exit_code == 3
    assert "ZeroDivisionError" in session.run("1 / 0").stderr


def test_libraries_are_there(session: Any) -> None:
    assert session.run("import numpy, matplotlib, pandas, seaborn, plotly; print(numpy.arange(3).sum())").stdout == "3\n"


def test_a_session_is_a_base_session(session: Any) -> None:
    assert SandboxSession is create_session
    assert isinstance(session, BaseSession)
    assert session.is_open and session.container.status == "running" and session.container.short_id == session.container.id[:12]


def test_files_of_runs_stay(session: Any) -> None:
    session.run("open('kept.txt', 'w').write('here')")
    assert session.run("import os; print(open('kept.txt').read(), os.getcwd())").stdout == "here /sandbox\n"


def test_callbacks_in_order_while_it_runs() -> None:
    pieces: list[tuple[str, str]] = []
    with SandboxSession() as session:

        def first(text: str) -> None:
            pieces.append(("out", text))
            if "go on" not in open_files:
                open_files.add("go on")
                session.copy_to_runtime(__file__, "/sandbox/go")

        open_files: set[str] = set()
        code = (
            "import os, sys, time\nprint('one'); print('two', file=sys.stderr)\n"
            "while not os.path.exists('/sandbox/go'): time.sleep(0.01)\nprint('three €'); sys.exit(4)"
        )
        result = session.run(code, timeout=60, on_stdout=first, on_stderr=lambda text: pieces.append(("err", text)))
    assert result == ConsoleOutput(4, "two\n", "one\nthree €\n")
    assert "".join(text for kind, text in pieces if kind == "out") == result.stdout
    assert pieces[-1][1].endswith("\n") and "".join(text for kind, text in pieces if kind == "err") == result.stderr


def test_a_callback_that_raises_ends_the_run(session: Any) -> None:
    def fail(text: str) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        session.run("import time\nprint(1, flush=True)\ntime.sleep(600)", on_stdout=fail)
    assert session.run("print(2)").stdout == "2\n"


def test_timeouts(session: Any) -> None:
    with pytest.raises(SandboxTimeoutError, match=r"Operation timed out after 0\.5 seconds") as caught:
        session.run("import time; time.sleep(600)", timeout=0.5)
    assert caught.value.timeout_duration == 0.5
    assert session.run("print('goes on')").stdout == "goes on\n"
    assert "sleep" not in session.execute_command("ps ax -o args 2>/dev/null || true").stdout


def test_execution_timeout_of_the_session() -> None:
    with SandboxSession(execution_timeout=0.5, default_timeout=600) as session, pytest.raises(SandboxTimeoutError, match="after 0.5 seconds"):
        session.run("while True: pass")
    with SandboxSession(runtime_configs={"timeout": 0.5}) as session, pytest.raises(SandboxTimeoutError, match="after 0.5 seconds"):
        session.run("while True: pass")


def test_session_timeout_ends_a_run() -> None:
    session: Any = SandboxSession(session_timeout=1)
    with session:
        with pytest.raises(SandboxTimeoutError, match=r"Session exceeded maximum lifetime of 1\.0 seconds"):
            session.run("import time; time.sleep(600)")
        with pytest.raises((NotOpenSessionError, SandboxTimeoutError)):
            session.run("print(1)")


def test_closed_sessions() -> None:
    session: Any = SandboxSession()
    with pytest.raises(NotOpenSessionError):
        session.run("1")
    with pytest.raises(NotOpenSessionError):
        session.execute_command("ls")
    with pytest.raises(NotOpenSessionError):
        session.install(["six"])
    with session:
        pass
    with pytest.raises(NotOpenSessionError):
        session.copy_to_runtime(__file__, "/sandbox/x")
    with session:  # it can be opened again
        assert session.run("print(1)").stdout == "1\n"


def test_execute_command(session: Any) -> None:
    assert session.execute_command("exit 2").exit_code == 2
    assert session.execute_command("echo a | wc -c").stdout == "2\n"
    assert session.execute_command("no-such-program").exit_code == 127
    assert session.execute_command("pwd").stdout == "/sandbox\n"
    assert session.execute_command("pwd", workdir="/tmp").stdout == "/tmp\n"
    assert session.execute_command("for p in python pip sh find ls cat; do command -v $p; done").exit_code == 0
    with pytest.raises(CommandEmptyError):
        session.execute_command("")
    pieces: list[str] = []
    session.execute_command("echo one; echo two >&2", on_stdout=pieces.append, on_stderr=pieces.append)
    assert sorted(pieces) == ["one\n", "two\n"]


def test_execute_commands(session: Any) -> None:
    assert session.execute_commands(["pwd", ("pwd", "/tmp"), ["pwd", None]]).stdout == "/sandbox\n"
    assert session.execute_commands(["exit 3", "echo not reached"]) == ConsoleOutput(3)
    assert session.execute_commands(["true", ("pwd", "/tmp")], workdir="/").stdout == "/tmp\n"


@pytest.mark.parametrize("workdir", ["/tmp/sandbox/deep", "/srv/a/b"])
def test_workdir(workdir: str) -> None:
    with SandboxSession(workdir=workdir) as session:
        assert session.run("import os; print(os.getcwd())").stdout == workdir + "\n"
        assert session.execute_command("pwd").stdout == workdir + "\n"
        session.copy_to_runtime(__file__, "relative.py")
        assert session.execute_command("ls relative.py").stdout == "relative.py\n"


def test_install(session: Any) -> None:
    assert session.run("import six; print(six.__name__)", libraries=["six"]).stdout == "six\n"
    with pytest.raises(CommandFailedError, match="no-such-package-of-anybody"):
        session.install(["no-such-package-of-anybody"])
    with pytest.raises(ValidationError):
        session.install(["six; touch /tmp/x"])


def test_libraries_of_the_session() -> None:
    with SandboxSession(libraries=["six"]) as session:
        assert session.run("import six; print(six.__name__)").stdout == "six\n"
    with SandboxSession(skip_environment_setup=True) as session, pytest.raises(LibraryInstallationNotSupportedError):
        session.install(["six"])


def test_restricted_libraries() -> None:
    module = RestrictedModule(name="six", description="not this", severity=SecurityIssueSeverity.HIGH)
    policy = SecurityPolicy(severity_threshold=SecurityIssueSeverity.LOW, restricted_modules=[module])
    session: Any = SandboxSession(security_policy=policy)
    assert session.is_safe("import six")[0] is False  # not opened yet
    with session:
        with pytest.raises(SecurityViolationError, match=r"six==1\.17 is not allowed"):
            session.install(["six==1.17"])
        with pytest.raises(SecurityPolicyViolation):
            session.safe_run("import six")
        assert session.safe_run("print(1)").stdout == "1\n"


def test_programs_of_the_session(session: Any) -> None:
    assert session.execute_command(f"{session.python_executable_path} -c 'import numpy; print(1)'").stdout == "1\n"
    assert session.execute_command(f"{session.pip_executable_path} --version").exit_code == 0
    assert session.execute_command(f"mkdir -p {session.pip_cache_dir_path}").exit_code == 0


@pytest.mark.parametrize(
    ("lang", "code", "output"),
    [
        ("javascript", "console.log(6 * 7)", "42\n"),
        ("ruby", "puts 6 * 7", "42\n"),
        ("R", "cat(6 * 7)", "42"),
        ("cpp", "#include <iostream>\nint main() { std::cout << 6 * 7; return 5; }", "42"),
        ("java", "public class Main { public static void main(String[] a) { System.out.print(6 * 7); } }", "42"),
        ("go", 'package main\nimport "fmt"\nfunc main() { fmt.Print(6 * 7) }', "42"),
    ],
)
def test_languages(lang: str, code: str, output: str) -> None:
    with SandboxSession(lang=lang) as session:
        result = session.run(code)
    assert (result.stdout, result.exit_code) == (output, 5 if lang == "cpp" else 0), result.stderr


def test_a_program_that_does_not_compile() -> None:
    with SandboxSession(lang="cpp") as session:
        result = session.run("int main( {")
    assert result.exit_code == 1 and "error" in result.stderr


def test_a_handler_of_ones_own() -> None:
    class Shouting(PythonHandler):
        def __init__(self, logger: logging.Logger | None = None) -> None:
            super().__init__(logger)
            self.config = LanguageConfig("shouting", "txt", ["tr a-z A-Z <{file} >out", "cat out"], "false")

    LanguageHandlerFactory.register_handler("shouting", Shouting)
    with SandboxSession(lang="shouting") as session:
        assert session.run("hello").stdout == "HELLO"
        assert session.run("quiet", on_stdout=lambda text: None).exit_code == 0


def test_what_happened_to_code() -> None:
    with SandboxSession(runtime_configs={"mem_limit": "128MB"}) as session:
        killed = session.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        memory = session.run("x = 'a' * (1 << 30)")
    assert (killed.exit_code, memory.exit_code) == (137, 137)
    assert "llm_sandbox: the sandbox reached its memory limit of 128 MiB" in memory.stderr


def test_no_network_says_how_to_have_one(session: Any) -> None:
    result = session.run("import urllib.request; urllib.request.urlopen('http://example.org', timeout=5)")
    assert result.exit_code == 1
    assert "network='full'" in result.stderr


def test_attach(session: Any) -> None:
    session.run("open('shared', 'w').write('x')")
    attached: Any = SandboxSession(container_id=session.container.id)
    with attached as other:
        assert other.run("print(open('shared').read())").stdout == "x\n"
        other.install(["six"])
        assert other.get_archive("/sandbox/shared")[1]["size"] == 1
    assert session.run("print(1)").stdout == "1\n"  # it lives on


def test_sessions_that_nobody_closes_can_be_attached_to() -> None:
    def left() -> str:
        session: Any = SandboxSession()
        session.open()
        session.run("open('left', 'w').write('x')")
        return str(session.container.id)

    container_id = left()
    gc.collect()
    with SandboxSession(container_id=container_id) as other:
        assert other.run("print(open('left').read())").stdout == "x\n"


def test_attach_to_nothing() -> None:
    with pytest.raises(ContainerError, match="Container sb-00000000-none not found"), SandboxSession(container_id="sb-00000000-none"):
        pass


def test_arguments() -> None:
    with pytest.raises(TypeError, match="runtime_config$"):
        SandboxSession(runtime_config={"mem_limit": "1g"})
    with pytest.raises(ValidationError, match="cannot be kept"):
        SandboxSession(runtime_configs={"cap_add": ["SYS_ADMIN"]})
    with pytest.raises(ValidationError, match="encoding_errors"):
        SandboxSession(encoding_errors="surrogateescape")
    with pytest.warns(UserWarning, match="kube_namespace has no effect"):
        SandboxSession(kube_namespace="x")
    with pytest.raises(ValueError, match="rust"):
        SandboxSession(lang="rust")


def test_encoding() -> None:
    code = r"import sys; sys.stdout.buffer.write(b'a\xff\xfeb')"
    with SandboxSession() as session:
        assert session.run(code).stdout == "a\ufffd\ufffdb"
    with SandboxSession(encoding_errors="ignore") as session:
        assert session.run(code).stdout == "ab"


def test_verbose(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), SandboxSession(verbose=True) as session:
        session.execute_command("echo shown")
    assert "Executing command: echo shown" in caplog.text and "STDOUT: shown" in caplog.text


def test_threads(session: Any) -> None:
    with ThreadPoolExecutor(8) as threads:
        results = [future.result().stdout for future in [threads.submit(session.run, f"print({n})") for n in range(16)]]
    assert results == [f"{n}\n" for n in range(16)]


def test_close_ends_a_run() -> None:
    session: Any = SandboxSession()
    session.open()
    started = threading.Event()
    ended: list[BaseException] = []

    def notice(text: str) -> None:
        started.set()

    def run() -> None:
        try:
            session.run("import time\nprint(1, flush=True)\ntime.sleep(600)", on_stdout=notice)
        except Exception as e:
            ended.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    since = time.monotonic()
    session.close()
    thread.join(60)
    assert not thread.is_alive() and time.monotonic() - since < 60
    assert len(ended) <= 1  # it raises, or tells that the code was killed
