"""Sessions whose code runs in a sandbox of llmsandbox."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
import threading
import time
import warnings
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NoReturn

import llmsandbox
from llmsandbox._request import EVENTS, Request, given
from llmsandbox._results import Outcome, parse_result

from llm_sandbox import _engine, _options
from llm_sandbox._engine import Engine, Known
from llm_sandbox._existing import ExistingContainer
from llm_sandbox._files import FileSession
from llm_sandbox._outcome import deliver, exit_code, explanation
from llm_sandbox.const import EncodingErrorsType, SupportedLanguage
from llm_sandbox.core.config import SessionConfig
from llm_sandbox.data import ConsoleOutput, StreamCallback
from llm_sandbox.exceptions import (
    CommandEmptyError,
    CommandFailedError,
    ContainerError,
    NotOpenSessionError,
    SandboxTimeoutError,
    SecurityViolationError,
    ValidationError,
)
from llm_sandbox.language_handlers.runtime_context import RuntimeContext

# What a result has in place of bytes that are not UTF-8.
_REPLACEMENT = "\ufffd"
# Keyword arguments of other backends, which say nothing about what code may do.
_WITHOUT_EFFECT = {"kube_namespace", "environment", "logger", "bwrap_path", "nsjail_path", "stream"}


@dataclass(frozen=True)
class Container:
    """The container or sandbox of a session."""

    id: str
    name: str
    sandbox: llmsandbox.Sandbox

    @property
    def short_id(self) -> str:
        """The beginning of the id."""
        return self.id[:12]

    @property
    def status(self) -> str:
        """Whether it is "running", "paused" or "exited"."""
        try:
            return "paused" if self.sandbox.info().paused else "running"
        except (llmsandbox.NotFoundError, llmsandbox.ClosedError, llmsandbox.ConnectError):
            return "exited"


class EngineSession(FileSession):
    """A session of any of our backends. Its subclasses say which engine they use."""

    def __init__(
        self,
        *,
        engine: Engine,
        image: str | None = None,
        dockerfile: str | None = None,
        lang: str = SupportedLanguage.PYTHON,
        verbose: bool = False,
        stream: bool = False,
        runtime_configs: Mapping[str, Any] | None = None,
        workdir: str | None = "/sandbox",
        security_policy: Any = None,
        default_timeout: float | None = None,
        execution_timeout: float | None = None,
        session_timeout: float | None = None,
        container_id: str | None = None,
        skip_environment_setup: bool = False,
        encoding_errors: EncodingErrorsType = "strict",
        libraries: list[str] | None = None,
        env_vars: Mapping[str, str] | None = None,
        network: str | Iterable[str] | None = None,
        writable_root: bool = False,
        **kwargs: Any,
    ) -> None:
        if encoding_errors not in ("strict", "replace", "ignore"):
            raise ValidationError(
                f"encoding_errors={encoding_errors!r}: bytes of the output that are not UTF-8 come as U+FFFD: use 'replace' or 'ignore'"
            )
        config = SessionConfig(
            image=image,
            dockerfile=dockerfile,
            lang=lang,
            verbose=verbose,
            workdir=workdir or "/sandbox",
            runtime_configs=dict(runtime_configs or {}),
            security_policy=security_policy,
            default_timeout=default_timeout,
            execution_timeout=execution_timeout,
            session_timeout=session_timeout,
            container_id=container_id,
            skip_environment_setup=skip_environment_setup,
            encoding_errors=encoding_errors,
        )
        super().__init__(config, libraries=libraries)
        if not PurePosixPath(config.workdir).is_absolute() or ".." in PurePosixPath(config.workdir).parts:
            raise ValidationError(f"workdir={config.workdir!r} is not an absolute path")
        self.stream = stream
        self._unused(kwargs)
        self._resettable = bool(kwargs.pop("_resettable", False))
        options = _options.apply(engine, config.runtime_configs)
        self._engine = options.engine.with_flags("--writable-root") if writable_root else options.engine
        self._run_timeout = options.timeout
        self._network = options.network if network is None else network if isinstance(network, str) else list(network)
        self._env = {"PYTHONUNBUFFERED": "1", **options.env, **_options.environment(env_vars or {})}
        self._environment = self._default_environment()
        self._sandbox: llmsandbox.Sandbox | None = None
        self._owned = False
        self._existing: ExistingContainer | None = None  # that is not ours
        self._over = False  # the time of the session
        self._opening = threading.Lock()
        self._programs: dict[str, str] | None = None
        self._output: int | None = None  # bytes of one run

    def _unused(self, kwargs: dict[str, Any]) -> None:
        for name in [name for name in kwargs if name in _WITHOUT_EFFECT]:
            if kwargs.pop(name) is not None:
                warnings.warn(f"{name} has no effect on {type(self).__name__}", UserWarning, stacklevel=2)
        for name in [name for name, value in kwargs.items() if value is None]:
            del kwargs[name]
        unknown = [name for name in kwargs if name != "_resettable"]
        if unknown:
            raise TypeError(f"{type(self).__name__} got unexpected keyword arguments: {', '.join(sorted(unknown))}")

    def _default_environment(self) -> str | None:
        """Return the name of the packages that Python has without asking for them."""
        own = self.config.image or self.config.dockerfile or self.config.container_id or self.config.skip_environment_setup
        is_python = self.language_handler.name == SupportedLanguage.PYTHON
        return "data-science" if is_python and not own and not self._engine.is_remote and self._engine.backend != "kubernetes" else None

    # Opening and closing

    def open(self) -> None:
        """Open the sandbox, or attach to the one of `container_id`."""
        with self._opening:
            if self.is_open:
                return
            self._over = False
            with self._translated("open"):
                if self.config.container_id is not None:
                    self._connect_to_existing_container(self.config.container_id)
                else:
                    self._open_own()
            super().open()
        try:
            self.environment_setup()
        except BaseException:
            self.close()
            raise

    def _open_own(self) -> None:
        language = self.language_handler.name
        known = not self._has_own_handler
        sandbox = llmsandbox.Sandbox(
            str(language) if known else None,
            network=self._network,
            libraries=self._initial_names(),
            env=self._env,
            environment=self._environment,
            workdir=self._own_workdir(),
            output=self._output,
            resettable=True if self._resettable else None,
            client=self._engine.client(),
        )
        try:
            sandbox.__enter__()
            self._use(sandbox, owned=True)
        except BaseException:
            with contextlib.suppress(llmsandbox.Error):
                sandbox.close()
            raise

    def _initial_names(self) -> list[str]:
        """Return the libraries that the sandbox is opened with."""
        if self.config.skip_environment_setup:
            return []
        return self._checked_libraries(self._initial_libraries)

    def _own_workdir(self) -> str | None:
        """Return the working directory for the request. One in /tmp is made there instead."""
        path = PurePosixPath(self.config.workdir)
        return None if path == PurePosixPath("/sandbox") or path.parts[1:2] == ("tmp",) else str(path)

    def _use(self, sandbox: llmsandbox.Sandbox, *, owned: bool, container: Any = None) -> None:
        self._sandbox, self._owned = sandbox, owned
        if container is None:
            container = self._container_of(sandbox)
        self.container = container
        if owned:
            _engine.remember(self.container_id, Known(self._engine, sandbox.id))

    @property
    def container_id(self) -> str:
        """The id by which another session finds the container."""
        return self.container if isinstance(self.container, str) else str(self.container.id)

    def _container_of(self, sandbox: llmsandbox.Sandbox) -> Any:
        """Return what the session has as its container."""
        return Container(sandbox.id, sandbox.id, sandbox)

    def _connect_to_existing_container(self, container_id: str) -> None:
        known = _engine.find(container_id)
        if known is None and not container_id.startswith("sb-"):
            self._open_existing(container_id)
            return
        engine, sandbox_id = (known.engine, known.sandbox_id) if known else (self._engine, container_id)
        try:
            sandbox = llmsandbox.Sandbox.attach(sandbox_id, client=engine.client())
        except (llmsandbox.NotFoundError, llmsandbox.InvalidError) as e:
            raise ContainerError(f"Container {container_id} not found") from e
        self._use(sandbox, owned=False)

    def _open_existing(self, container_id: str) -> None:
        """Open a sandbox in a container that is not ours."""
        raise ContainerError(f"Container {container_id} not found")

    def environment_setup(self) -> None:
        """Make the working directory where the sandbox has not."""
        if self.using_existing_container and self._initial_libraries:
            self._log(f"{self._initial_libraries} are not installed: the session uses an existing container", "warning")
        if self._existing is None and self._own_workdir() is None and self.config.workdir != "/sandbox":
            made = self.execute_command(f"mkdir -p {shlex.quote(self.config.workdir)}", workdir="/")
            if made.exit_code:
                raise ContainerError(f"workdir={self.config.workdir!r} cannot be made: {made.stderr.strip()}")

    def reset(self) -> None:
        """Make the sandbox what it was when it was opened."""
        with self._translated("reset"):
            self._opened().reset()
        self.environment_setup()

    def close(self) -> None:
        """Remove the sandbox. One that the session has attached to stays."""
        sandbox, self._sandbox = self._sandbox, None
        super().close()
        container, self.container, self._existing = self.container, None, None
        if sandbox is None:
            return
        if self._owned:
            _engine.forget(container if isinstance(container, str) else container.id)
        with self._translated("close"):
            sandbox.close()
        if self._engine.is_remote:
            sandbox._client.close()  # which this session has alone

    def _end_session(self) -> None:
        self._over = True
        super()._end_session()

    def _handle_timeout(self) -> None:
        """Do nothing: the server ends a run that takes too long, with all that it has started."""

    def _opened(self) -> llmsandbox.Sandbox:
        sandbox = self._sandbox
        if self._existing is not None:
            raise ValidationError("this is not available in a container that exists: open a session of its own")
        if sandbox is None:
            raise NotOpenSessionError
        self._check_session_timeout()
        return sandbox

    def _use_existing(self, container_id: str, container: Any, *flags: str) -> None:
        """Use a container of somebody else, which flags of the command name."""
        self._existing = ExistingContainer(
            container_id,
            ("--backend", self._engine.backend, *flags),
            self.config.workdir,
            str(self.language_handler.name),
            dict(self._engine.env),
            self._env,
        )
        try:
            self._existing.check()
        except BaseException:
            self._existing = None
            raise
        self.container = container

    # Code and commands

    @property
    def _has_own_handler(self) -> bool:
        """Whether the language's handler is of the program's own making, and says how code is run."""
        return not type(self.language_handler).__module__.startswith("llm_sandbox.language_handlers.")

    def run(
        self,
        code: str,
        libraries: list[str] | None = None,
        timeout: float | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run code and return its output and exit code, or raise SandboxTimeoutError. After that, the session goes on."""
        return self._console(self._run(code, libraries, timeout, on_stdout, on_stderr))

    def _run(
        self,
        code: str,
        libraries: list[str] | None = None,
        timeout: float | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> llmsandbox.Result:
        if self._existing is None:
            self._opened()
        limit = timeout or self.config.get_execution_timeout() or self._run_timeout
        since = time.monotonic()
        if libraries:
            self._execute_with_timeout(self.install, libraries, timeout=limit, force_kill_on_timeout=False)
        left = self._left(limit, since)
        if self._has_own_handler:
            name = f"run-{time.monotonic_ns():x}.{self.language_handler.file_extension}"
            path = str(PurePosixPath(self.config.workdir) / name)
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="llm-sandbox-") as file:
                file.write(code)
                file.flush()
                self.copy_to_runtime(file.name, path)
            lines = self.language_handler.get_execution_commands(path, runtime_context=self._runtime_context())
            result = self._exec("\n".join(["set -e", *lines]), self.config.workdir, left, on_stdout, on_stderr)
        else:
            body = given(code=code, timeout_seconds=left, language=str(self.language_handler.name), dir=self.config.workdir)
            result = self._request("/run", body, on_stdout, on_stderr)
        if result.status == "timeout":
            raise SandboxTimeoutError(f"Operation timed out after {limit} seconds", timeout_duration=limit)
        return result

    def _left(self, limit: float | None, since: float) -> float | None:
        """Return how much of a time limit is left for a request."""
        if limit is None:
            return None if self._engine.is_remote else _engine.LONGEST
        left = limit - (time.monotonic() - since)
        if left <= 0:
            raise SandboxTimeoutError(f"Operation timed out after {limit} seconds", timeout_duration=limit)
        return left

    def execute_command(
        self,
        command: str,
        workdir: str | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run a line of the sandbox's shell and return its output and exit code."""
        if not command:
            raise CommandEmptyError
        self._log(f"Executing command: {command}")
        return self._console(self._exec(command, workdir, self._left(None, 0), on_stdout, on_stderr))

    def _exec(
        self, line: str, workdir: str | None, timeout: float | None, on_stdout: StreamCallback | None, on_stderr: StreamCallback | None
    ) -> llmsandbox.Result:
        body = given(shell=line, dir=workdir or self.config.workdir, timeout_seconds=timeout)
        return self._request("/exec", body, on_stdout, on_stderr)

    def _request(
        self, path: str, body: Mapping[str, object], on_stdout: StreamCallback | None, on_stderr: StreamCallback | None
    ) -> llmsandbox.Result:
        """Send a request to run something, and call the callbacks with its output while it runs."""
        if self._existing is not None:
            self._check_session_timeout()
            return self._existing.request(body, on_stdout, on_stderr)
        sandbox = self._opened()
        with self._translated("run"):
            events = sandbox._opened().outcome(Request("POST", path, body=body, accept=EVENTS), parse_result)
            result = deliver(events, on_stdout, on_stderr, self._decoded)
        assert isinstance(result, llmsandbox.Result)
        return result

    def _decoded(self, text: str) -> str:
        return text.replace(_REPLACEMENT, "") if self.config.encoding_errors == "ignore" else text

    def _console(self, result: Outcome) -> ConsoleOutput:
        stdout, stderr = self._decoded(result.stdout), self._decoded(result.stderr) + explanation(result, self._network or self._engine.reach)
        self._log_output(stdout, stderr)
        return ConsoleOutput(exit_code=exit_code(result), stdout=stdout, stderr=stderr)

    # Libraries

    @property
    def _can_install(self) -> bool:
        """Whether libraries can be installed: those of Java, too, for which its handler has no command."""
        return super()._can_install or self.language_handler.name == SupportedLanguage.JAVA

    def install(self, libraries: list[str] | None = None) -> None:
        """Install libraries of the session's language, or raise CommandFailedError."""
        names = self._checked_libraries(libraries)
        if not names:
            return
        if self._has_own_handler:
            super().install(names)
            return
        self._log(f"Installing libraries: {names}")
        if self._existing is not None:
            self._existing.install(names)
            return
        with self._translated("install"):
            self._opened().install(*names)

    # Programs inside

    @property
    def python_executable_path(self) -> str:
        """The Python of the session, inside."""
        return self._program("python")

    @property
    def pip_executable_path(self) -> str:
        """The pip of the session, inside. What it installs is for this session only, and it needs a network."""
        return self._program("pip")

    def _program(self, name: str) -> str:
        if self._programs is None and self.container is not None:
            found = self._exec("command -v python || command -v python3; command -v pip || command -v pip3", None, 60, None, None).stdout
            lines = [line for line in found.splitlines() if line.startswith("/")]
            self._programs = dict(zip(("python", "pip"), lines, strict=False))
        return (self._programs or {}).get(name, name)

    def _runtime_context(self) -> RuntimeContext:
        if self.language_handler.name != SupportedLanguage.PYTHON:
            return RuntimeContext(workdir=self.config.workdir)
        return RuntimeContext(self.config.workdir, self.python_executable_path, self.pip_executable_path, self.pip_cache_dir_path)

    # Unused parts of the base class, for sessions with a ContainerAPI

    def _ensure_directory_exists(self, path: str) -> None:
        self.execute_command(f"mkdir -p {shlex.quote(path)}", workdir="/")

    def _ensure_ownership(self, paths: list[str]) -> None:
        """Do nothing: what is copied in belongs to the user that code runs as."""

    def _process_non_stream_output(self, output: Any) -> tuple[str, str]:
        raise NotImplementedError("the server decodes the output")

    def _process_stream_output(
        self, output: Any, on_stdout: StreamCallback | None = None, on_stderr: StreamCallback | None = None
    ) -> tuple[str, str]:
        raise NotImplementedError("the server decodes the output")

    # Errors

    @contextlib.contextmanager
    def _translated(self, what: str) -> Generator[None]:
        """Raise the exceptions of this package in place of those of llmsandbox."""
        try:
            yield
        except llmsandbox.Error as e:
            if self._over and self.config.session_timeout:
                limit = self.config.session_timeout
                raise SandboxTimeoutError(f"Session exceeded maximum lifetime of {limit} seconds", timeout_duration=limit) from e
            self._raise(what, e)

    def _raise(self, what: str, e: llmsandbox.Error) -> NoReturn:
        if isinstance(e, llmsandbox.InstallError):
            raise CommandFailedError("install", 1, str(e)) from e
        if isinstance(e, llmsandbox.SandboxFileNotFoundError):
            raise FileNotFoundError(f"File {what} not found in container: {e}") from e
        if isinstance(e, llmsandbox.SandboxPermissionError):
            raise ContainerError(f"{what}: {e}; in Python, that is writable_root=True or runtime_configs={{'read_only': False}}") from e
        if isinstance(e, llmsandbox.RefusedError):
            raise SecurityViolationError(str(e)) from e
        if isinstance(e, llmsandbox.ClosedError):
            raise NotOpenSessionError from e
        if isinstance(e, (llmsandbox.InvalidError, llmsandbox.NotAllowedError)):
            raise ValidationError(f"{what}: {e}") from e
        raise ContainerError(f"{what}: {e}") from e
