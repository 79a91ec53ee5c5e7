"""Sessions that keep variables from one run to the next."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import Any

import llmsandbox

from llm_sandbox._engine import LONGEST, Engine
from llm_sandbox._outcome import deliver
from llm_sandbox._session import EngineSession
from llm_sandbox.backends import get_backend
from llm_sandbox.const import SandboxBackend, StrEnum, SupportedLanguage
from llm_sandbox.core.session_base import BaseSession
from llm_sandbox.data import ConsoleOutput, StreamCallback
from llm_sandbox.exceptions import (
    CommandFailedError,
    LanguageNotSupportedError,
    NotOpenSessionError,
    SandboxTimeoutError,
    UnsupportedBackendError,
)


class KernelType(StrEnum):
    """The kernels of interactive sessions."""

    IPYTHON = "ipython"


@dataclass(slots=True)
class InteractiveSettings:
    """Settings of an interactive session.

    `timeout` is how many seconds a cell may take, or None for any number. `poll_interval` is accepted for compatibility: results
    are not polled for.
    """

    kernel_type: KernelType = KernelType.IPYTHON
    max_memory: str | None = None
    history_size: int = 1000
    timeout: float | None = 300.0
    poll_interval: float = 0.1

    def __post_init__(self) -> None:
        if self.history_size < 0:
            raise ValueError("history_size must be non-negative")
        if self.poll_interval <= 0:
            raise ValueError("poll_interval must be positive")


class InteractiveSandboxSession(BaseSession):
    """A session of Python that keeps variables, functions and imports from one run to the next.

    Magics and `!command` work as in IPython, and `%pip install` installs libraries. The value of a cell's last expression is in the
    standard output, as `Out[N]: VALUE`. What ends the interpreter ends its variables; the next cell has a new one.
    """

    def __init__(
        self,
        *,
        backend: SandboxBackend | str | None = None,
        lang: str = SupportedLanguage.PYTHON,
        kernel_type: KernelType | str = KernelType.IPYTHON,
        max_memory: str | None = "1GB",
        history_size: int = 1000,
        timeout: float | None = 300.0,
        runtime_configs: dict[str, Any] | None = None,
        interactive_settings: InteractiveSettings | None = None,
        **kwargs: Any,
    ) -> None:
        if str(lang).lower() != SupportedLanguage.PYTHON:
            raise LanguageNotSupportedError(str(lang))
        if backend is not None:
            definition = get_backend(backend)
            if not (definition.builtin and definition.capabilities.interactive):
                raise UnsupportedBackendError(str(backend))
        self.settings = interactive_settings or InteractiveSettings(KernelType(kernel_type), max_memory, history_size, timeout)
        configs = dict(runtime_configs or {})
        # A server of LLMSANDBOX_URL has limits of its own, which only a limit of the caller's is to change.
        if self.settings.max_memory is not None and not (self.settings.max_memory == "1GB" and Engine().is_remote):
            configs.setdefault("mem_limit", self.settings.max_memory)
        from llm_sandbox.session import create_session

        inner = create_session(backend, lang=lang, runtime_configs=configs, **kwargs)
        assert isinstance(inner, EngineSession)
        self._inner = inner
        self._kernel: llmsandbox.Kernel | None = None
        super().__init__(inner.config)
        self.language_handler = inner.language_handler

    def open(self) -> None:
        """Open the sandbox and start the interpreter."""
        if self.is_open:
            return
        self._inner.open()
        try:
            self._start()
        except BaseException:
            self._inner.close()
            raise
        self.container = self._inner.container
        self._start_session_timer()
        self.is_open = True

    def _start(self) -> None:
        """Start IPython, or the interpreter's own shell where IPython can neither be found nor installed."""
        sandbox = self._inner._opened()
        with self._inner._translated("interactive session"):
            if self._inner._engine not in _WITHOUT_IPYTHON:
                try:
                    self._kernel = sandbox.kernel("python", cwd=self.config.workdir, libraries=["ipython"])
                    return
                except llmsandbox.InstallError as e:
                    self._log(f"IPython cannot be installed, so its own magics are missing: {e}", "warning")
                    _WITHOUT_IPYTHON.add(self._inner._engine)
            self._kernel = sandbox.kernel("python", cwd=self.config.workdir)

    def close(self) -> None:
        """End the interpreter and remove the sandbox."""
        self._kernel = None
        self.container = None
        super().close()
        self._inner.close()

    def run(
        self,
        code: str,
        libraries: list[str] | None = None,
        timeout: float | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run a cell, or raise SandboxTimeoutError. After that, variables are still there unless the cell could not be interrupted."""
        kernel = self._kernel
        if kernel is None or not self.is_open:
            raise NotOpenSessionError
        self._check_session_timeout()
        limit = timeout or self.settings.timeout or self.config.get_execution_timeout()
        cell, wanted = _installs(code)
        try:
            self._install_here(kernel, [*(libraries or []), *wanted])
        except CommandFailedError as e:
            return ConsoleOutput(exit_code=1, stderr=f"{e}\n")
        left = limit if limit is not None else None if self._inner._engine.is_remote else LONGEST
        with self._inner._translated("run"):
            found = deliver(kernel.stream(cell, timeout=left), on_stdout, on_stderr, self._inner._decoded)
        assert isinstance(found, llmsandbox.Cell)
        if found.status == "timeout":
            raise SandboxTimeoutError(f"Interactive execution timed out after {limit} seconds", timeout_duration=limit)
        return self._output(found, on_stdout)

    def _output(self, cell: llmsandbox.Cell, on_stdout: StreamCallback | None) -> ConsoleOutput:
        console = self._inner._console(cell)
        stdout = console.stdout
        if cell.text is not None:
            line = f"{'' if stdout.endswith(chr(10)) or not stdout else chr(10)}Out[{cell.count}]: {cell.text}\n"
            stdout += line
            if on_stdout is not None:
                on_stdout(line)
        stderr = console.stderr
        if cell.error is not None:
            trace = _ANSI.sub("", cell.error.traceback) or f"{cell.error.name}: {cell.error.message}"
            stderr += trace if trace.endswith("\n") else trace + "\n"
        return ConsoleOutput(exit_code=console.exit_code, stdout=stdout, stderr=stderr)

    def install(self, libraries: list[str] | None = None) -> None:
        """Install libraries, which the next cell can import. Variables stay."""
        if self._kernel is None:
            raise NotOpenSessionError
        self._install_here(self._kernel, list(libraries or []))

    def _install_here(self, kernel: llmsandbox.Kernel, libraries: list[str]) -> None:
        if not libraries:
            return
        self._inner.install(libraries)
        # Programs find what was installed when they start. This one runs already, and is told where it is.
        paths = self._inner._run("import json, sys; print(json.dumps([p for p in sys.path if p]))", timeout=60).stdout
        known: object = json.loads(paths)
        with self._inner._translated("install"):
            kernel.run(
                "import sys as _sys, importlib as _importlib\n"
                f"_sys.path.extend(p for p in {known!r} if p not in _sys.path)\n"
                "_importlib.invalidate_caches()\ndel _sys, _importlib",
                timeout=60,
            )

    def execute_command(
        self,
        command: str,
        workdir: str | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run a line of the sandbox's shell and return its output and exit code."""
        return self._inner.execute_command(command, workdir, on_stdout, on_stderr)

    def copy_to_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of this machine into the sandbox."""
        self._inner.copy_to_runtime(src, dest)

    def copy_from_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of the sandbox to this machine."""
        self._inner.copy_from_runtime(src, dest)

    def _handle_timeout(self) -> None:
        """Do nothing: the server interrupts a cell that takes too long."""

    def _connect_to_existing_container(self, container_id: str) -> None:
        self._inner._connect_to_existing_container(container_id)

    def _ensure_directory_exists(self, path: str) -> None:
        self._inner._ensure_directory_exists(path)

    def _ensure_ownership(self, paths: list[str]) -> None:
        self._inner._ensure_ownership(paths)

    def _process_non_stream_output(self, output: Any) -> tuple[str, str]:
        return self._inner._process_non_stream_output(output)

    def _process_stream_output(
        self, output: Any, on_stdout: StreamCallback | None = None, on_stderr: StreamCallback | None = None
    ) -> tuple[str, str]:
        return self._inner._process_stream_output(output, on_stdout, on_stderr)


_WITHOUT_IPYTHON: set[Engine] = set()  # where it could not be installed, which may take long to find out
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_INSTALL = re.compile(r"^[%!]pip3?[ \t]+install[ \t]+(.*)$", re.MULTILINE)


def _installs(code: str) -> tuple[str, list[str]]:
    """Return a cell without its lines `%pip install ...`, and the libraries that these name."""
    wanted: list[str] = []

    def take(match: re.Match[str]) -> str:
        words = shlex.split(match[1])
        for word in words:
            if word not in ("-q", "--quiet", "-U", "--upgrade"):
                wanted.append(word)
        return ""

    return _INSTALL.sub(take, code), wanted
