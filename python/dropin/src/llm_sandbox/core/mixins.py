"""What sessions have in common: timeouts, commands, and copies of files by a `ContainerAPI`."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, runtime_checkable

from llm_sandbox._archive import extract
from llm_sandbox.data import ConsoleOutput, StreamCallback
from llm_sandbox.exceptions import CommandEmptyError, NotOpenSessionError, SandboxTimeoutError, SecurityError


@runtime_checkable
class ContainerAPI(Protocol):
    """What a backend of one's own can do with containers, for the methods of the mixins below."""

    def create_container(self, config: Any) -> Any:
        """Create a container."""
        ...

    def start_container(self, container: Any) -> None:
        """Start it."""
        ...

    def stop_container(self, container: Any) -> None:
        """Stop and remove it."""
        ...

    def execute_command(self, container: Any, command: str, **kwargs: Any) -> tuple[int, Any]:
        """Run a command in it, and return its exit code and output."""
        ...

    def copy_to_container(self, container: Any, src: str, dest: str, **kwargs: Any) -> None:
        """Copy a file or directory into it."""
        ...

    def copy_from_container(self, container: Any, src: str, **kwargs: Any) -> tuple[bytes, dict[str, Any]]:
        """Return a file or directory of it as a tar archive, and what it is."""
        ...


class TimeoutMixin:
    """Bounds how long something may take."""

    logger: Any

    def _execute_with_timeout(
        self, func: Callable[..., Any], *args: Any, timeout: float | None = None, force_kill_on_timeout: bool = True, **kwargs: Any
    ) -> Any:
        """Call a function and return its result, or raise SandboxTimeoutError after `timeout` seconds.

        The function then still runs in its thread: `_handle_timeout`, which is called unless told otherwise, ends what it waits for.
        """
        if timeout is None:
            return func(*args, **kwargs)
        outcome: list[tuple[bool, Any]] = []

        def call() -> None:
            try:
                outcome.append((True, func(*args, **kwargs)))
            except BaseException as e:
                outcome.append((False, e))

        thread = threading.Thread(target=call, daemon=True, name="llm-sandbox-operation")
        thread.start()
        thread.join(timeout)
        if not outcome:
            handler = getattr(self, "_handle_timeout", None)
            if force_kill_on_timeout and callable(handler):
                threading.Thread(target=self._end_quietly, args=(handler,), daemon=True, name="llm-sandbox-timeout").start()
            raise SandboxTimeoutError(f"Operation timed out after {timeout} seconds", timeout_duration=timeout)
        succeeded, value = outcome[0]
        if not succeeded:
            raise value
        return value

    def _end_quietly(self, handler: Callable[[], object]) -> None:
        try:
            handler()
        except Exception as e:
            self.logger.warning("The container could not be cleaned up after a timeout: %s", e)


class FileOperationsMixin:
    """Copies files into and out of the container."""

    container_api: ContainerAPI
    container: Any
    verbose: bool
    logger: Any

    @staticmethod
    def _validate_container_path(path: str) -> str:
        """Return a path of the container in its usual form. One that leads upwards is refused."""
        normal = PurePosixPath(path)
        if ".." in normal.parts:
            raise SecurityError(f"Path traversal detected in container path: {path}")
        return str(normal)

    @staticmethod
    def _existing_source(src: str) -> Path:
        """Return a file or directory of this machine."""
        source = Path(src)
        if not (source.is_file() or source.is_dir()):
            raise FileNotFoundError(f"Source path {src} does not exist or is not accessible")
        return source

    def copy_to_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of this machine to a path in the container."""
        if not self.container:
            raise NotOpenSessionError
        dest = self._validate_container_path(dest)
        self._existing_source(src)
        if self.verbose:
            self.logger.info("Copying %s to %s", src, dest)
        self._ensure_directory_exists(str(PurePosixPath(dest).parent))
        self.container_api.copy_to_container(self.container, src, dest)
        self._ensure_ownership([dest])

    def copy_from_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of the container to this machine. Links are left out."""
        if not self.container:
            raise NotOpenSessionError
        if self.verbose:
            self.logger.info("Copying %s to %s", src, dest)
        archive, stat = self.container_api.copy_from_container(self.container, src)
        if not archive or not stat:
            raise FileNotFoundError(f"File {src} not found in container")
        self._extract_archive_safely(archive, dest)

    def _extract_archive_safely(self, bits: bytes, dest: str) -> None:
        """Extract an archive that comes from the container."""
        extract(bits, dest)

    @abstractmethod
    def _ensure_directory_exists(self, path: str) -> None:
        """Make a directory in the container, with its parents."""

    @abstractmethod
    def _ensure_ownership(self, paths: list[str]) -> None:
        """Give files of the container to the user that code runs as."""


class CommandExecutionMixin:
    """Runs commands in the container."""

    container_api: ContainerAPI
    container: Any
    verbose: bool
    logger: Any
    stream: bool

    def execute_command(
        self,
        command: str,
        workdir: str | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run a command and return its output and exit code. The callbacks get the output while it runs."""
        if not command:
            raise CommandEmptyError
        if not self.container:
            raise NotOpenSessionError
        if self.verbose:
            self.logger.info("Executing command: %s", command)
        stream = bool(getattr(self, "stream", False)) or on_stdout is not None or on_stderr is not None
        exit_code, output = self.container_api.execute_command(self.container, command, workdir=workdir, stream=stream)
        stdout, stderr = self._process_output(output, stream, on_stdout=on_stdout, on_stderr=on_stderr)
        self._log_output(stdout, stderr)
        return ConsoleOutput(exit_code=exit_code or 0, stdout=stdout, stderr=stderr)

    def _log_output(self, stdout: str, stderr: str) -> None:
        if self.verbose and stdout:
            self.logger.info("STDOUT: %s", stdout)
        if self.verbose and stderr:
            self.logger.error("STDERR: %s", stderr)

    def _process_output(
        self,
        output: Any,
        is_stream: bool | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> tuple[str, str]:
        """Return standard output and error of what `ContainerAPI.execute_command` has returned."""
        if is_stream if is_stream is not None else self.stream:
            return self._process_stream_output(output, on_stdout=on_stdout, on_stderr=on_stderr)
        return self._process_non_stream_output(output)

    @abstractmethod
    def _process_non_stream_output(self, output: Any) -> tuple[str, str]:
        """Return standard output and error of a command that has ended."""

    @abstractmethod
    def _process_stream_output(
        self, output: Any, on_stdout: StreamCallback | None = None, on_stderr: StreamCallback | None = None
    ) -> tuple[str, str]:
        """Return standard output and error of a command that runs, and call the callbacks with each piece."""
