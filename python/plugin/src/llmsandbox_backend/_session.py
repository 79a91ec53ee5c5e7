"""The session of the backend."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

import llmsandbox
from llm_sandbox import ConsoleOutput, ContainerError, SecurityPolicy, SessionConfig, SupportedLanguage, ValidationError
from llm_sandbox.core.session_base import BaseSession
from llm_sandbox.exceptions import (
    CommandEmptyError,
    CommandFailedError,
    LibraryInstallationNotSupportedError,
    NotOpenSessionError,
    SandboxTimeoutError,
    SecurityViolationError,
)
from llm_sandbox.security import validate_package_name

from llmsandbox_backend._plots import capture_plots

Callback = Callable[[str], None]


class LlmsandboxSession(BaseSession):
    """A session whose code runs in a sandbox of LLM Sandbox.

    Besides the arguments of other sessions there are those of `llmsandbox.Sandbox`, such as `network`, `memory`, `env` and `client`.
    `container_id` is the id of a sandbox. A run may take 60 seconds unless it or the session says otherwise.
    """

    def __init__(
        self,
        *,
        lang: str = SupportedLanguage.PYTHON,
        workdir: str = "/sandbox",
        libraries: Sequence[str] | None = None,
        verbose: bool = False,
        security_policy: SecurityPolicy | None = None,
        default_timeout: float | None = 60,
        execution_timeout: float | None = None,
        session_timeout: float | None = None,
        container_id: str | None = None,
        image: str | None = None,
        dockerfile: str | None = None,
        keep_template: bool = False,
        commit_container: bool = False,
        runtime_configs: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        containers = {"image": image, "dockerfile": dockerfile, "commit_container": commit_container, "runtime_configs": runtime_configs}
        if used := [name for name, value in containers.items() if value]:
            raise ValidationError(
                f"The backend llmsandbox has no {', '.join(used)}: use the arguments of llmsandbox.Sandbox, such as memory="
            )
        config = SessionConfig(
            lang=SupportedLanguage(lang),
            workdir=workdir,
            verbose=verbose,
            security_policy=security_policy,
            default_timeout=default_timeout,
            execution_timeout=execution_timeout,
            session_timeout=session_timeout,
            container_id=container_id,
        )
        super().__init__(config, libraries=None)
        self._libraries = self._checked(libraries)
        self._options = options
        self._sandbox: llmsandbox.Sandbox | None = None
        self.artifacts: list[llmsandbox.Artifact] = []
        self.stream = False
        capture_plots(self)

    def open(self) -> None:
        """Open the sandbox, or attach to that of `container_id`."""
        if self.is_open:
            return
        try:
            if self.config.container_id is not None:
                self._connect_to_existing_container(self.config.container_id)
            else:
                self._sandbox = self._new().__enter__()
                self._sandbox.files.mkdir(self.config.workdir)
        except llmsandbox.InstallError as error:
            raise CommandFailedError("install", 1, str(error)) from error
        except llmsandbox.Error as error:
            self.close()
            raise ContainerError(f"The sandbox could not be opened: {error}") from error
        self.container = self._sandbox
        super().open()

    def _new(self) -> llmsandbox.Sandbox:
        parts = PurePosixPath(self.config.workdir).parts
        workdir = None if parts[:2] in (("/", "sandbox"), ("/", "tmp")) else self.config.workdir  # both are there, and private
        return llmsandbox.Sandbox(str(self.config.lang), workdir=workdir, libraries=self._libraries, **self._options)

    def close(self) -> None:
        """Remove the sandbox. One that was attached to stays."""
        super().close()
        sandbox, self._sandbox, self.container = self._sandbox, None, None
        if sandbox is not None:
            sandbox.close()

    def _connect_to_existing_container(self, container_id: str) -> None:
        try:
            self._sandbox = llmsandbox.Sandbox.attach(container_id, client=self._options.get("client"))
        except (llmsandbox.NotFoundError, llmsandbox.InvalidError) as error:
            raise ContainerError(f"Container {container_id} not found") from error

    def _opened(self) -> llmsandbox.Sandbox:
        self._check_session_timeout()
        if self._sandbox is None:
            raise NotOpenSessionError
        return self._sandbox

    def run(
        self,
        code: str,
        libraries: list[str] | None = None,
        timeout: float | None = None,
        on_stdout: Callback | None = None,
        on_stderr: Callback | None = None,
    ) -> ConsoleOutput:
        """Run code. A run that takes too long is killed with all that it has started, and the session goes on."""
        sandbox = self._opened()
        self.install(libraries)
        limit = timeout or self.config.get_execution_timeout()
        result = self._follow(sandbox.stream(code, timeout=limit, cwd=self.config.workdir), on_stdout, on_stderr)
        self.artifacts = result.artifacts
        if result.status == "timeout":
            raise SandboxTimeoutError(f"Operation timed out after {limit} seconds", timeout_duration=limit)
        return self._output(result)

    def execute_command(
        self, command: str, workdir: str | None = None, on_stdout: Callback | None = None, on_stderr: Callback | None = None
    ) -> ConsoleOutput:
        """Run a line of the sandbox's shell."""
        if not command:
            raise CommandEmptyError
        sandbox = self._opened()
        where = workdir or self.config.workdir
        try:
            if on_stdout is None and on_stderr is None:
                return self._output(sandbox.exec(command, cwd=where))
            with sandbox.start(command, cwd=where) as process:
                return self._output(self._follow(process.stream(), on_stdout, on_stderr))
        except llmsandbox.Error as error:
            raise ContainerError(str(error)) from error

    def _follow(
        self, events: Generator[llmsandbox.Event, None, None], on_stdout: Callback | None, on_stderr: Callback | None
    ) -> llmsandbox.Result:
        """Pass output on while it is written, and return the result."""
        callbacks = {"stdout": on_stdout, "stderr": on_stderr}
        try:
            with closing(events):
                for event in events:
                    if isinstance(event.result, llmsandbox.Result):
                        return event.result
                    callback = callbacks.get(event.kind)
                    if callback is not None and event.text:
                        callback(event.text)
        except llmsandbox.RefusedError as error:
            raise SecurityViolationError(str(error)) from error
        except llmsandbox.Error as error:
            raise ContainerError(str(error)) from error
        raise ContainerError("The server ended the output without a result: whether the program has ended is not known")

    def _output(self, result: llmsandbox.Result) -> ConsoleOutput:
        stderr = result.stderr if result.ok or not result.reason else f"{result.stderr}llmsandbox: {result.reason}\n"
        code = result.exit_code
        if code is None or (code == 0 and not result.ok):
            code = 0 if result.ok else 1  # killed, out of memory or refused: the reason is in stderr
        if self.verbose:
            self.logger.info("Exit code %d, stdout %r, stderr %r", code, result.stdout, stderr)
        return ConsoleOutput(exit_code=code, stdout=result.stdout, stderr=stderr)

    def install(self, libraries: list[str] | None = None) -> None:
        """Install libraries, or raise CommandFailedError."""
        names = self._checked(libraries)
        if not names:
            return
        try:
            self._opened().install(*names)
        except llmsandbox.InstallError as error:
            raise CommandFailedError(f"install {' '.join(names)}", 1, str(error)) from error
        except llmsandbox.Error as error:
            raise ContainerError(str(error)) from error

    def _checked(self, libraries: Sequence[str] | None) -> list[str]:
        if not libraries:
            return []
        if not self.language_handler.is_support_library_installation:
            raise LibraryInstallationNotSupportedError(self.config.lang)
        policy = self.config.security_policy
        for module in (policy.restricted_modules or []) if policy else []:
            if module.name in libraries:
                raise SecurityViolationError(f"Library {module.name} is not allowed to be installed")
        return [validate_package_name(library, str(self.config.lang)) for library in libraries]

    def copy_to_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of this machine into the sandbox."""
        sandbox = self._opened()
        target = self._inside(self._validate_container_path(dest))
        if not Path(src).is_file() and not Path(src).is_dir():
            raise FileNotFoundError(f"Source path {src} does not exist or is not accessible")
        try:
            sandbox.files.upload(src, target)
        except llmsandbox.Error as error:
            raise ContainerError(f"{target}: {error}") from error

    def copy_from_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of the sandbox to this machine, a directory below `dest`. Links are left out."""
        with tempfile.TemporaryDirectory() as directory:
            source = self._download(src, Path(directory))
            target = Path(dest) / source.name if source.is_dir() else Path(dest)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, target)

    def get_archive(self, path: str) -> tuple[bytes, dict[str, Any]]:
        """Return a file or directory of the sandbox as a tar archive, and what it is."""
        with tempfile.TemporaryDirectory() as directory:
            source = self._download(path, Path(directory))
            file = io.BytesIO()
            with tarfile.open(fileobj=file, mode="w") as archive:
                archive.add(source, source.name)
            status = source.stat()
        return file.getvalue(), {
            "name": source.name,
            "size": status.st_size,
            "mode": status.st_mode,
            "mtime": status.st_mtime,
            "linkTarget": "",
        }

    def _inside(self, path: str) -> str:
        return str(PurePosixPath(self.config.workdir) / path)

    def _download(self, path: str, directory: Path) -> Path:
        target = directory / (PurePosixPath(path).name or "root")
        try:
            self._opened().files.download(self._inside(path), target)
        except llmsandbox.SandboxFileNotFoundError as error:
            raise FileNotFoundError(f"File {path} not found in container") from error
        except llmsandbox.Error as error:
            raise ContainerError(f"{path}: {error}") from error
        return target

    # What the base class needs for containers, and this session does itself

    def _handle_timeout(self) -> None:
        """Do nothing: the server has killed the program."""

    def _ensure_directory_exists(self, path: str) -> None:
        self._opened().files.mkdir(path)

    def _ensure_ownership(self, paths: list[str]) -> None:
        """Do nothing: files that are copied in belong to the code's user."""

    def _process_non_stream_output(self, output: Any) -> tuple[str, str]:
        raise NotImplementedError

    def _process_stream_output(self, output: Any, on_stdout: Callback | None = None, on_stderr: Callback | None = None) -> tuple[str, str]:
        raise NotImplementedError
