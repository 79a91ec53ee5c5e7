"""The backend in the released llm-sandbox, with sandboxes of this machine."""

from __future__ import annotations

import importlib.metadata
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_sandbox import (
    ArtifactSandboxSession,
    ContainerError,
    SandboxSession,
    SecurityIssueSeverity,
    SecurityPattern,
    SecurityPolicy,
    ValidationError,
    get_backend,
)
from llm_sandbox.core.session_base import BaseSession
from llm_sandbox.exceptions import (
    CommandEmptyError,
    CommandFailedError,
    LanguageNotSupportPlotError,
    LibraryInstallationNotSupportedError,
    NotOpenSessionError,
    SandboxTimeoutError,
    SecurityViolationError,
)
from llm_sandbox.security import RestrictedModule

import llmsandbox
from llmsandbox_backend import LlmsandboxSession


@pytest.fixture(scope="module")
def session() -> Iterator[LlmsandboxSession]:
    with new() as opened:
        yield opened


def new(**kwargs: Any) -> Any:
    return SandboxSession(backend="llmsandbox", **kwargs)


def test_is_registered_with_the_released_package() -> None:
    assert importlib.metadata.version("llm-sandbox") == "0.3.46"
    backend = get_backend("LLMSandbox")
    assert backend.factory is LlmsandboxSession and not backend.builtin and backend.capabilities.network_isolation


def test_is_a_session(session: LlmsandboxSession) -> None:
    assert isinstance(session, BaseSession) and session.is_open and session.container.id


def test_run(session: LlmsandboxSession) -> None:
    result = session.run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert (result.exit_code, result.stdout, result.stderr) == (7, "out\n", "err\n")
    assert session.run("raise ValueError").exit_code == 1
    assert session.run("open('kept', 'w').write('x')").success()
    assert session.run("import os; print(os.getcwd(), open('kept').read())").stdout == "/sandbox x\n"


@pytest.mark.parametrize(
    ("lang", "code"),
    [
        ("javascript", "console.log(6 * 7)"),
        ("ruby", "puts 6 * 7"),
        ("cpp", '#include <cstdio>\nint main() { std::printf("%d\\n", 6 * 7); }'),
    ],
)
def test_languages(lang: str, code: str) -> None:
    with new(lang=lang) as session:
        result = session.run(code)
        if "is not installed" in result.stderr:
            pytest.skip(result.stderr)
        assert result.stdout == "42\n", result.stderr


def test_callbacks_get_the_output_in_order(session: LlmsandboxSession) -> None:
    pieces: list[str] = []
    code = "import sys\nfor n in range(3): print(n, flush=True)\nprint('€', file=sys.stderr)\nsys.exit(3)"
    result = session.run(code, on_stdout=pieces.append, on_stderr=lambda text: pieces.append(f"<{text}>"))
    assert result.exit_code == 3 and "".join(pieces).replace("<€\n>", "") == result.stdout == "0\n1\n2\n" and "<€\n>" in pieces
    pieces.clear()
    assert session.execute_command("echo a; exit 4", on_stdout=pieces.append).exit_code == 4 and pieces == ["a\n"]


def test_exception_of_a_callback_comes_out(session: LlmsandboxSession) -> None:
    def fail(text: str) -> None:
        raise LookupError(text)

    with pytest.raises(LookupError, match="a"):
        session.run("print('a', flush=True); import time; time.sleep(60)", on_stdout=fail)
    assert session.run("print(1)").stdout == "1\n"


def test_commands(session: LlmsandboxSession) -> None:
    assert session.execute_command("echo a | wc -c").stdout.strip() == "2"
    assert session.execute_command("no-such-program").exit_code == 127
    assert session.execute_command("pwd", workdir="/tmp").stdout == "/tmp\n"
    assert session.execute_commands(["true", ("exit 5", "/tmp"), "echo never"]).exit_code == 5
    with pytest.raises(CommandEmptyError):
        session.execute_command("")


def test_timeout_kills_the_program(session: LlmsandboxSession) -> None:
    with pytest.raises(SandboxTimeoutError, match="Operation timed out after 0.5 seconds") as caught:
        session.run("import subprocess; subprocess.run(['sleep', '1234'])", timeout=0.5)
    assert caught.value.timeout_duration == 0.5
    running = "import os\nprint([p for p in os.listdir('/proc') if p.isdigit() and b'1234' in open(f'/proc/{p}/cmdline', 'rb').read()])"
    assert session.run(running).stdout == "[]\n"


def test_files(session: LlmsandboxSession, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "a.txt").write_text("a")
    session.copy_to_runtime(str(tmp_path / "in"), "/sandbox/data/in")
    session.copy_to_runtime(str(tmp_path / "in" / "sub" / "a.txt"), "/sandbox/data/in/b.txt")
    session.execute_command("ln -s /etc/passwd data/in/link; touch data/in/empty")
    session.copy_from_runtime("/sandbox/data/in", str(tmp_path / "out"))
    copied = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")}
    assert copied == {"in", "in/sub", "in/sub/a.txt", "in/b.txt", "in/empty"}
    session.copy_from_runtime("data/in/empty", str(tmp_path / "new" / "name"))
    assert (tmp_path / "new" / "name").read_bytes() == b""
    archive, status = session.get_archive("/sandbox/data/in/b.txt")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert tar.getnames() == ["b.txt"] and status["size"] == 1
    with pytest.raises(FileNotFoundError, match="File /sandbox/none not found"):
        session.copy_from_runtime("/sandbox/none", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        session.copy_to_runtime(str(tmp_path / "none"), "/sandbox/none")
    with pytest.raises(Exception, match="Path traversal detected"):
        session.copy_to_runtime(str(tmp_path / "in"), "/sandbox/../etc")


def test_isolation(session: LlmsandboxSession) -> None:
    assert session.run("import os; print(os.getuid())").stdout != "0\n"
    assert not session.run("import socket; socket.create_connection(('1.1.1.1', 53), 5)").success()
    assert not session.run("open('/etc/new', 'w')").success()


def test_libraries_are_checked(session: LlmsandboxSession) -> None:
    session.install([])
    with pytest.raises(ValidationError, match="is not a valid python package"):
        session.install(["a; id"])
    with pytest.raises(CommandFailedError):
        session.run("print('never')", libraries=["no-such-package-of-anybody-0"])
    with pytest.raises(LibraryInstallationNotSupportedError):
        new(lang="java", libraries=["a"])


def test_policy() -> None:
    pattern = SecurityPattern(pattern=r"os\.system", description="shell", severity=SecurityIssueSeverity.HIGH)
    module = RestrictedModule(name="socket", description="sockets", severity=SecurityIssueSeverity.HIGH)
    policy = SecurityPolicy(severity_threshold=SecurityIssueSeverity.LOW, patterns=[pattern], restricted_modules=[module])
    session = new(security_policy=policy)
    assert session.is_safe("os.system('id')") == (False, [pattern]) and session.is_safe("print(1)") == (True, [])
    with pytest.raises(SecurityViolationError):
        session.install(["socket"])


def test_sandbox_options() -> None:
    with new(env={"GREETING": "hello"}, memory="256m", workdir="/tmp/work") as session:
        result = session.run("import os; print(os.environ['GREETING'], os.getcwd())")
        assert result.stdout == "hello /tmp/work\n"
        result = session.run("x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1")
        assert not result.success() and "memory" in result.stderr.lower()


@pytest.mark.parametrize(
    "wrong", [{"image": "python"}, {"dockerfile": "Dockerfile"}, {"commit_container": True}, {"runtime_configs": {"user": "0"}}]
)
def test_settings_of_containers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=f"The backend llmsandbox has no {next(iter(wrong))}"):
        new(**wrong)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="no_such_option"), new(no_such_option=1):
        pass
    with pytest.raises(ContainerError, match="could not be opened"), new(memory="1 kilogram"):
        pass


def test_closing_and_attaching() -> None:
    session = new()
    with pytest.raises(NotOpenSessionError):
        session.run("1")
    session.close()
    with session:
        session.open()
        session.run("open('kept', 'w').write('x')")
        with new(container_id=session.container.id) as other:
            assert other.run("print(open('kept').read())").stdout == "x\n"
        assert session.run("print(1)").stdout == "1\n"
    session.close()
    with pytest.raises(NotOpenSessionError):
        session.run("1")
    with pytest.raises(ContainerError, match="Container sb-none not found"):
        new(container_id="sb-none").open()


def test_session_timeout() -> None:
    with new(session_timeout=0.5) as session, pytest.raises((NotOpenSessionError, SandboxTimeoutError, ContainerError)):
        session.run("import time; time.sleep(60)")
        session.run("print(1)")


DRAW = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 2])\nplt.show()"


def test_artifact_session() -> None:
    client = llmsandbox.Client()
    with ArtifactSandboxSession(backend="llmsandbox", environment="data-science", client=client) as session:
        result = session.run(DRAW)
        assert result.success() and result.stdout == "", result.stderr
        assert [plot.format.value for plot in result.plots] == ["png"]
        assert len(session.run(DRAW).plots) == 2 and len(session.run("print(1)").plots) == 2
        assert len(session.run(DRAW, clear_plots=True).plots) == 1
        session.clear_plots()
        assert session.run("print(1)").plots == []
        failed = session.run("\nraise ValueError")
        assert failed.exit_code == 1 and "line 2" in failed.stderr


def test_artifact_session_without_plots() -> None:
    with ArtifactSandboxSession(backend="llmsandbox", lang="ruby") as session, pytest.raises(LanguageNotSupportPlotError):
        session.run("puts 1")
    with ArtifactSandboxSession(backend="llmsandbox", enable_plotting=False) as session:
        assert session.run("print(1)").plots == []
