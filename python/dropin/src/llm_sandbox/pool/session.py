"""Sessions in containers of a pool."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from llm_sandbox._session import EngineSession
from llm_sandbox.const import EncodingErrorsType
from llm_sandbox.data import ConsoleOutput, ExecutionResult, PlotOutput, StreamCallback
from llm_sandbox.pool.base import ContainerPoolManager, EnginePoolManager, PooledContainer
from llm_sandbox.pool.exceptions import DuplicateClientError, SessionNotOpenError

if TYPE_CHECKING:
    from typing_extensions import Self

    from llm_sandbox.security import SecurityPolicy

__all__ = ["ArtifactPooledSandboxSession", "DuplicateClientError", "PooledSandboxSession"]


class PooledSandboxSession:
    """A session in a container of a pool, which gets it back at the end. What is not defined here is that of the session inside."""

    def __init__(
        self,
        pool_manager: ContainerPoolManager,
        verbose: bool = False,
        stream: bool = False,
        workdir: str | None = "/sandbox",
        security_policy: SecurityPolicy | None = None,
        default_timeout: float | None = None,
        execution_timeout: float | None = None,
        session_timeout: float | None = None,
        encoding_errors: EncodingErrorsType = "strict",
        **kwargs: Any,
    ) -> None:
        if not isinstance(pool_manager, EnginePoolManager):
            raise RuntimeError(f"Cannot infer backend from pool manager class: {type(pool_manager).__name__}")
        self._pool_manager = pool_manager
        self._pooled_container: PooledContainer | None = None
        self._backend_session: EngineSession | None = None
        self.backend = pool_manager.backend
        if workdir in (None, "/sandbox"):
            workdir = pool_manager.session_kwargs.get("workdir", "/sandbox")
        self._session_kwargs = {
            "lang": pool_manager.lang,
            "verbose": verbose,
            "stream": stream,
            "workdir": workdir,
            "security_policy": security_policy,
            "default_timeout": default_timeout,
            "execution_timeout": execution_timeout,
            "session_timeout": session_timeout,
            "encoding_errors": encoding_errors,
            **{name: value for name, value in kwargs.items() if name not in ("image", "namespace")},
        }

    @property
    def backend_session(self) -> EngineSession:
        """The session inside."""
        if self._backend_session is None:
            raise SessionNotOpenError
        return self._backend_session

    def open(self) -> None:
        """Take a container of the pool, or raise PoolExhaustedError or PoolClosedError."""
        if "client" in self._session_kwargs:
            raise DuplicateClientError
        if self._backend_session is not None:
            return
        container = self._pool_manager.acquire()
        try:
            session = self._pool_manager.attach(container.container_id, **self._session_kwargs)
            session.open()
        except BaseException:
            self._pool_manager.release(container)
            raise
        self._pooled_container, self._backend_session = container, session

    def close(self) -> None:
        """Give the container back."""
        session, self._backend_session = self._backend_session, None
        container, self._pooled_container = self._pooled_container, None
        try:
            if session is not None:
                session.close()
        finally:
            if container is not None:
                self._pool_manager.release(container)

    def run(
        self,
        code: str,
        libraries: list[str] | None = None,
        timeout: float | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run code and return its output and exit code. Libraries are those of the pool."""
        return self.backend_session.run(code, libraries, timeout, on_stdout, on_stderr)

    def execute_command(
        self,
        command: str,
        workdir: str | None = None,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ConsoleOutput:
        """Run a line of the sandbox's shell and return its output and exit code."""
        return self.backend_session.execute_command(command, workdir, on_stdout, on_stderr)

    def copy_to_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of this machine into the sandbox."""
        self.backend_session.copy_to_runtime(src, dest)

    def copy_from_runtime(self, src: str, dest: str) -> None:
        """Copy a file or directory of the sandbox to this machine."""
        self.backend_session.copy_from_runtime(src, dest)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_backend_session":  # copy and pickle ask for these
            raise AttributeError(name)
        return getattr(self.backend_session, name)


class ArtifactPooledSandboxSession:
    """A session in a container of a pool that returns the plots of each run."""

    def __init__(
        self,
        pool_manager: ContainerPoolManager,
        *,
        verbose: bool = False,
        stream: bool = False,
        workdir: str = "/sandbox",
        enable_plotting: bool = True,
        security_policy: SecurityPolicy | None = None,
        **kwargs: Any,
    ) -> None:
        self.enable_plotting = enable_plotting
        self._plots: list[PlotOutput] = []
        self._session = PooledSandboxSession(
            pool_manager, verbose=verbose, stream=stream, workdir=workdir, security_policy=security_policy, **kwargs
        )

    def run(
        self,
        code: str,
        libraries: list[str] | None = None,
        timeout: float | None = None,
        clear_plots: bool = False,
        on_stdout: StreamCallback | None = None,
        on_stderr: StreamCallback | None = None,
    ) -> ExecutionResult:
        """Run code and return its output and all plots since the last `clear_plots`. Without a timeout, it may take 60 seconds."""
        from llm_sandbox.session import run_with_plots

        if clear_plots:
            self.clear_plots()
        session = self._session.backend_session
        return run_with_plots(session, self._plots, self.enable_plotting, code, libraries, timeout, on_stdout, on_stderr)

    def clear_plots(self) -> None:
        """Forget the plots of earlier runs."""
        self._plots.clear()

    def __enter__(self) -> Self:
        self._session.open()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None) -> None:
        self._session.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_session":  # copy and pickle ask for these
            raise AttributeError(name)
        return getattr(self._session, name)
