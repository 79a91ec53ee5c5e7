"""The base class of sessions, also of backends of one's own."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
import types
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from llm_sandbox.core.config import SessionConfig
from llm_sandbox.core.mixins import CommandExecutionMixin, ContainerAPI, FileOperationsMixin, TimeoutMixin
from llm_sandbox.data import ConsoleOutput, StreamCallback
from llm_sandbox.exceptions import (
    CommandFailedError,
    LibraryInstallationNotSupportedError,
    NotOpenSessionError,
    SandboxTimeoutError,
    SecurityPolicyViolation,
)
from llm_sandbox.language_handlers.factory import LanguageHandlerFactory
from llm_sandbox.language_handlers.runtime_context import RuntimeContext
from llm_sandbox.security.check import check_code, check_library
from llm_sandbox.security.package_validators import validate_package_name

if TYPE_CHECKING:
    from typing_extensions import Self

    from llm_sandbox.security import SecurityPattern

Command = str | tuple[str, str | None] | list[str | None]


class BaseSession(ABC, TimeoutMixin, FileOperationsMixin, CommandExecutionMixin):
    """A session: it is opened, runs code and commands, and is closed.

    A backend of one's own sets `container` and either `container_api` or the methods that use it, and implements the abstract ones.
    """

    def __init__(self, config: SessionConfig, **kwargs: Any) -> None:
        self.config = config
        self.verbose = config.verbose
        self.logger = logging.getLogger(type(self).__module__)
        self._initial_libraries: list[str] | None = kwargs.pop("libraries", None)
        if self.verbose:
            log_verbosely(self.logger)
        self.language_handler = LanguageHandlerFactory.create_handler(str(config.lang), self.logger)
        self._session_start_time: float | None = None
        self._session_timer: threading.Timer | None = None
        self.container: Any = None
        self.is_open = False
        self.stream = False
        self.using_existing_container = config.is_using_existing_container()
        self.container_api: ContainerAPI

    def _log(self, message: str, level: str = "info") -> None:
        """Log a message if the session is verbose."""
        if self.verbose:
            getattr(self.logger, level)(message)

    # Time limits of the session

    def _check_session_timeout(self) -> None:
        """Raise SandboxTimeoutError if the session is over."""
        limit = self.config.session_timeout
        if limit and self._session_start_time is not None and time.monotonic() - self._session_start_time > limit:
            raise SandboxTimeoutError(f"Session exceeded maximum lifetime of {limit} seconds", timeout_duration=limit)

    def _start_session_timer(self) -> None:
        """Have the session closed once it is over."""
        self._session_start_time = time.monotonic()
        if self.config.session_timeout:
            self._session_timer = threading.Timer(self.config.session_timeout, self._end_session)
            self._session_timer.daemon = True
            self._session_timer.start()

    def _end_session(self) -> None:
        self._log(f"The session is closed after {self.config.session_timeout} seconds", "warning")
        self._end_quietly(self.close)

    def _stop_session_timer(self) -> None:
        timer, self._session_timer = self._session_timer, None
        if timer is not None:
            timer.cancel()

    # Policies

    def is_safe(self, code: str) -> tuple[bool, list[SecurityPattern]]:
        """Return whether the security policy lets code pass, and what it finds. It works before the session is opened."""
        return check_code(code, self.config.security_policy, self.language_handler)

    # Libraries

    def install(self, libraries: list[str] | None = None) -> None:
        """Install libraries, or raise CommandFailedError."""
        names = self._checked_libraries(libraries)
        context = self._runtime_context()
        for name in names:
            command = self.language_handler.get_library_installation_command(name, runtime_context=context)
            result = self.execute_command(command, workdir=self.config.workdir)
            if result.exit_code:
                raise CommandFailedError(command, result.exit_code, result.stderr or result.stdout)

    @property
    def _can_install(self) -> bool:
        return self.language_handler.is_support_library_installation

    def _checked_libraries(self, libraries: Sequence[str] | None) -> list[str]:
        """Return the names of libraries that may be installed in this session."""
        if not libraries:
            return []
        if self.config.skip_environment_setup or not self._can_install:
            raise LibraryInstallationNotSupportedError(str(self.config.lang))
        names = [validate_package_name(name, self.language_handler.name) for name in libraries]
        for name in names:
            check_library(name, self.config.security_policy)
        return names

    # Commands and code

    def execute_commands(
        self,
        commands: Sequence[Command],
        workdir: str | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run commands until one fails, and return the output of the last that ran. An item can have a directory of its own."""
        output = ConsoleOutput()
        for item in commands:
            command, directory = (item, workdir) if isinstance(item, str) else (str(item[0]), item[1])
            output = self.execute_command(command, workdir=directory, on_stdout=on_stdout, on_stderr=on_stderr)
            if output.exit_code:
                break
        return output

    @property
    def python_executable_path(self) -> str:
        """The session's Python, inside."""
        return "python"

    @property
    def pip_executable_path(self) -> str:
        """The session's pip, inside."""
        return "pip"

    @property
    def pip_cache_dir_path(self) -> str:
        """The directory, inside, where pip keeps what it downloads."""
        return f"{self.config.workdir}/.sandbox-pip-cache"

    def _runtime_context(self) -> RuntimeContext:
        return RuntimeContext(workdir=self.config.workdir)

    def environment_setup(self) -> None:
        """Make the working directory, and install the libraries that the session was made with."""
        if self.using_existing_container or self.config.skip_environment_setup:
            if self._initial_libraries:
                self._log(f"{self._initial_libraries} are not installed: the session uses an environment as it is", "warning")
            return
        self.execute_command(f"mkdir -p {self.config.workdir}")
        self.install(self._initial_libraries)

    def run(
        self,
        code: str,
        libraries: list[str] | None = None,
        timeout: float | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run code and return its output and exit code, or raise SandboxTimeoutError.

        The callbacks get the output while it is written. Without a timeout here and in the session, the code has any time.
        """
        if not self.container or not self.is_open:
            raise NotOpenSessionError
        self._check_session_timeout()

        def run_it() -> ConsoleOutput:
            self.install(libraries)
            return self._run_file(code, on_stdout, on_stderr)

        try:
            result: ConsoleOutput = self._execute_with_timeout(run_it, timeout=timeout or self.config.get_execution_timeout())
            return result
        except SandboxTimeoutError:
            self._handle_timeout()
            raise

    def safe_run(
        self,
        code: str,
        libraries: list[str] | None = None,
        timeout: float | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run code that the security policy lets pass, or raise SecurityPolicyViolation."""
        safe, violations = self.is_safe(code)
        if not safe and self.config.security_policy is not None:
            raise SecurityPolicyViolation(violations, self.config.security_policy.severity_threshold)
        return self.run(code, libraries, timeout, on_stdout, on_stderr)

    def _run_file(self, code: str, on_stdout: StreamCallback | None, on_stderr: StreamCallback | None) -> ConsoleOutput:
        """Copy code to a file of the working directory and run the commands that the language has for it."""
        name = f"{uuid.uuid4().hex}.{self.language_handler.file_extension}"
        inside = str(PurePosixPath(self.config.workdir) / name)
        with tempfile.TemporaryDirectory(prefix="llm-sandbox-") as directory:
            file = Path(directory) / name
            file.write_text(code, encoding="utf-8")
            file.chmod(0o644)
            self.copy_to_runtime(str(file), inside)
        commands = self.language_handler.get_execution_commands(inside, runtime_context=self._runtime_context())
        return self.execute_commands(commands, self.config.workdir, on_stdout, on_stderr)

    # What a backend implements

    @abstractmethod
    def _handle_timeout(self) -> None:
        """End what still runs after a timeout."""

    @abstractmethod
    def _connect_to_existing_container(self, container_id: str) -> None:
        """Use a container that exists."""

    @abstractmethod
    def open(self) -> None:
        """Open the session. A backend calls this once it is ready."""
        self._start_session_timer()
        self.is_open = True

    @abstractmethod
    def close(self) -> None:
        """Close the session. A backend calls this, too."""
        self._stop_session_timer()
        self.is_open = False

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: types.TracebackType | None
    ) -> None:
        self.close()


def log_verbosely(logger: logging.Logger) -> None:
    """Have a logger write everything to standard error, unless the program has said where it writes."""
    logger.setLevel(logging.DEBUG)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s", datefmt="%Y-%m-%d %H:%M:%S"))
        logger.addHandler(handler)
