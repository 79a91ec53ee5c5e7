"""Sessions that keep variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_sandbox import (
    BackendCapabilities,
    InteractiveSandboxSession,
    InteractiveSettings,
    KernelType,
    NotOpenSessionError,
    SandboxTimeoutError,
    register_backend,
)
from llm_sandbox.core.session_base import BaseSession
from llm_sandbox.exceptions import LanguageNotSupportedError, UnsupportedBackendError


@pytest.fixture(scope="module")
def session() -> Iterator[InteractiveSandboxSession]:
    with InteractiveSandboxSession() as opened:
        yield opened


def test_state(session: InteractiveSandboxSession) -> None:
    assert isinstance(session, BaseSession)
    assert session.run("import math\nx = 41\ndef f(n): return n + 1").exit_code == 0
    assert session.run("print(f(x), math.floor(1.5))").stdout == "42 1\n"
    result = session.run("f(x)")
    assert result.stdout.startswith("Out[") and result.stdout.endswith("]: 42\n")


def test_errors_keep_state(session: InteractiveSandboxSession) -> None:
    session.run("kept = 1")
    result = session.run("1 / 0")
    assert result.exit_code == 1 and "ZeroDivisionError" in result.stderr and "\x1b[" not in result.stderr
    assert session.run("import sys; sys.exit(3)").exit_code == 3
    assert session.run("print(kept)").stdout == "1\n"


def test_magics(session: InteractiveSandboxSession) -> None:
    session.run("shown = 1")
    assert "shown" in session.run("%who").stdout
    assert "/sandbox" in session.run("%pwd").stdout
    assert "per loop" in session.run("%timeit -n 2 -r 2 1 + 1").stdout
    assert "per loop" in session.run("%%timeit -n 2 -r 2\nx = 1").stdout
    assert session.run("!echo hello").stdout == "hello\n"


def test_install_from_a_cell(session: InteractiveSandboxSession) -> None:
    session.run("before = 7")
    result = session.run("%pip install -q six\nimport six\nprint(six.__name__, before)")
    assert result.stdout.endswith("six 7\n"), result.stderr
    assert session.run("%pip install no-such-package-of-anybody").exit_code == 1
    assert session.run("import tomli; print('there')", libraries=["tomli"]).stdout == "there\n"


def test_timeout_keeps_state(session: InteractiveSandboxSession) -> None:
    session.run("kept = 2")
    with pytest.raises(SandboxTimeoutError, match=r"Interactive execution timed out after 0\.5 seconds"):
        session.run("while True: pass", timeout=0.5)
    assert session.run("print(kept)").stdout == "2\n"


def test_a_crash_is_told_at_once(session: InteractiveSandboxSession) -> None:
    result = session.run("import os; os._exit(5)", timeout=60)
    assert result.exit_code == 5 and "llm_sandbox: " in result.stderr
    assert session.run("print('again')").stdout == "again\n"


def test_callbacks(session: InteractiveSandboxSession) -> None:
    pieces: list[str] = []
    result = session.run("print('one')\n2", on_stdout=pieces.append)
    assert "".join(pieces) == result.stdout


def test_files_and_commands(session: InteractiveSandboxSession, tmp_path: Path) -> None:
    session.run("open('made.txt', 'w').write('made')")
    session.copy_from_runtime("/sandbox/made.txt", str(tmp_path / "made.txt"))
    assert (tmp_path / "made.txt").read_text() == "made"
    assert session.execute_command("cat made.txt").stdout == "made"


def test_settings() -> None:
    session = InteractiveSandboxSession(interactive_settings=InteractiveSettings(timeout=0.5, max_memory="256MB"))
    with session, pytest.raises(SandboxTimeoutError):
        session.run("while True: pass")
    assert session.settings.max_memory == "256MB"
    with pytest.raises(NotOpenSessionError):
        session.run("1")
    assert InteractiveSandboxSession(kernel_type="ipython").settings.kernel_type is KernelType.IPYTHON


def test_what_there_is_not(own_backends: None) -> None:
    with pytest.raises(LanguageNotSupportedError):
        InteractiveSandboxSession(lang="ruby")
    with pytest.raises(UnsupportedBackendError):
        InteractiveSandboxSession(backend="micromamba")
    register_backend("interactive-test", InteractiveSandboxSession, capabilities=BackendCapabilities(interactive=True))
    with pytest.raises(UnsupportedBackendError):
        InteractiveSandboxSession(backend="interactive-test")
