"""How sessions are made, and those that capture plots."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from llmsandbox import Artifact

from llm_sandbox._session import EngineSession
from llm_sandbox.backends import get_backend
from llm_sandbox.const import DefaultImage, SandboxBackend, SupportedLanguage
from llm_sandbox.core.session_base import BaseSession
from llm_sandbox.data import ExecutionResult, FileType, PlotOutput, StreamCallback
from llm_sandbox.exceptions import LanguageNotSupportPlotError, ValidationError
from llm_sandbox.interactive import InteractiveSandboxSession
from llm_sandbox.local.session import LocalSession
from llm_sandbox.pool.base import ContainerPoolManager
from llm_sandbox.pool.session import ArtifactPooledSandboxSession, PooledSandboxSession

if TYPE_CHECKING:
    from typing_extensions import Self

    from llm_sandbox.security import SecurityPolicy

__all__ = [
    "ArtifactSandboxSession",
    "ContainerPoolManager",
    "InteractiveSandboxSession",
    "PooledSandboxSession",
    "SandboxSession",
    "create_session",
]

_REFERENCE_IMAGES = {value for name, value in vars(DefaultImage).items() if name.isupper()}


def create_session(
    backend: SandboxBackend | str | None = None, pool: ContainerPoolManager | None = None, *args: Any, **kwargs: Any
) -> BaseSession | PooledSandboxSession:
    """Return a session, to be used in `with`.

    Without a backend, code runs on this machine, or in Docker if an image, Dockerfile, container or client is given. All other
    arguments are those of the backend's session, such as `lang`, `libraries`, `network`, `runtime_configs` and `verbose`.
    """
    if kwargs.pop("use_kubernetes", False):
        warnings.warn("use_kubernetes is deprecated: use backend='kubernetes'", DeprecationWarning, stacklevel=2)
        backend = SandboxBackend.KUBERNETES
    if pool is not None:
        _check_pool_backend(backend)
        return PooledSandboxSession(pool_manager=pool, **kwargs)
    if backend is None and args:
        backend = SandboxBackend.DOCKER  # whose first argument is the client
    if backend is None and not needs_engine(kwargs):
        return LocalSession(**{name: value for name, value in kwargs.items() if name not in ("image", "dockerfile", "client")})
    session: BaseSession = get_backend(SandboxBackend.DOCKER if backend is None else backend).factory(*args, **kwargs)
    return session


SandboxSession = create_session


def needs_engine(kwargs: Mapping[str, Any]) -> bool:
    """Return whether arguments ask for a container engine."""
    container = kwargs.get("container_id")
    return (
        kwargs.get("client") is not None
        or kwargs.get("dockerfile") is not None
        or kwargs.get("image") not in (None, *_REFERENCE_IMAGES)
        or bool(kwargs.get("commit_container"))
        or (isinstance(container, str) and not is_ours(container))
    )


def is_ours(container_id: str) -> bool:
    """Return whether an id is that of a sandbox, and not of a container of somebody else."""
    from llm_sandbox import _engine

    return container_id.startswith("sb-") or _engine.find(container_id) is not None


def _check_pool_backend(backend: SandboxBackend | str | None) -> None:
    if backend is not None and not get_backend(backend).capabilities.pooling:
        raise ValidationError(f"Backend '{backend}' does not support container pooling")


class ArtifactSandboxSession:
    """A session that returns the plots of each run. What is not defined here is the wrapped session's."""

    def __init__(
        self,
        backend: SandboxBackend | str | None = None,
        image: str | None = None,
        dockerfile: str | None = None,
        lang: str = SupportedLanguage.PYTHON,
        *,
        pool: ContainerPoolManager | None = None,
        keep_template: bool = False,
        commit_container: bool = False,
        verbose: bool = False,
        runtime_configs: dict[str, Any] | None = None,
        workdir: str | None = "/sandbox",
        enable_plotting: bool = True,
        security_policy: SecurityPolicy | None = None,
        container_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.enable_plotting = enable_plotting
        self._plots: list[PlotOutput] = []
        self._session: BaseSession | ArtifactPooledSandboxSession
        if pool is not None:
            _check_pool_backend(backend)
            self._session = ArtifactPooledSandboxSession(
                pool_manager=pool,
                verbose=verbose,
                workdir=workdir or "/sandbox",
                enable_plotting=enable_plotting,
                security_policy=security_policy,
                **kwargs,
            )
            return
        if backend is not None and get_backend(backend).name == SandboxBackend.WINDOWS_MXC:
            raise ValidationError("windows-mxc does not support the artifact wrapper; use SandboxSession and copy_from_runtime()")
        session = create_session(
            backend=backend,
            image=image,
            dockerfile=dockerfile,
            lang=lang,
            keep_template=keep_template,
            commit_container=commit_container,
            verbose=verbose,
            runtime_configs=runtime_configs,
            workdir=workdir,
            security_policy=security_policy,
            container_id=container_id,
            **kwargs,
        )
        assert isinstance(session, BaseSession)
        self._session = session

    def __enter__(self) -> Self:
        self._session.__enter__()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None) -> None:
        self._session.__exit__(exc_type, exc_val, exc_tb)

    def __getattr__(self, name: str) -> Any:
        if name == "_session":  # which is missing while this is unpickled
            raise AttributeError(name)
        return getattr(self._session, name)

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
        session = self._session
        if isinstance(session, ArtifactPooledSandboxSession):
            return session.run(code, libraries, timeout, clear_plots, on_stdout, on_stderr)
        if clear_plots:
            self.clear_plots()
        return run_with_plots(session, self._plots, self.enable_plotting, code, libraries, timeout, on_stdout, on_stderr)

    def clear_plots(self) -> None:
        """Forget the plots of earlier runs."""
        if not self.enable_plotting:
            return
        if isinstance(self._session, ArtifactPooledSandboxSession):
            self._session.clear_plots()
            return
        self._plots.clear()
        if not isinstance(self._session, EngineSession):
            self._session.execute_command("sh -c 'rm -rf /tmp/sandbox_plots; mkdir -p /tmp/sandbox_plots'")


def run_with_plots(
    session: BaseSession,
    plots: list[PlotOutput],
    enabled: bool,
    code: str,
    libraries: list[str] | None,
    timeout: float | None,
    on_stdout: StreamCallback | None,
    on_stderr: StreamCallback | None,
) -> ExecutionResult:
    """Run code in a session, and return its result with its plots after those of earlier runs."""
    handler = session.language_handler
    if enabled and not handler.is_support_plot_detection:
        raise LanguageNotSupportPlotError(handler.name)
    limit = timeout or session.config.get_execution_timeout() or 60
    if isinstance(session, EngineSession):
        result = session._run(code, libraries, limit, on_stdout, on_stderr)
        if enabled:
            plots += [plot for plot in map(plot_of, result.artifacts) if plot is not None]
        console = session._console(result)
        return ExecutionResult(console.exit_code, console.stderr, console.stdout, list(plots))
    kwargs = {name: callback for name, callback in (("on_stdout", on_stdout), ("on_stderr", on_stderr)) if callback is not None}
    output, found = handler.run_with_artifacts(session, code, libraries, enabled, timeout=limit, **kwargs)  # type: ignore[arg-type]
    return ExecutionResult(output.exit_code, output.stderr, output.stdout, found)


_PLOT_TYPES = {
    "image/png": FileType.PNG,
    "image/jpeg": FileType.JPEG,
    "image/svg+xml": FileType.SVG,
    "application/pdf": FileType.PDF,
    "text/html": FileType.HTML,
}


def plot_of(artifact: Artifact) -> PlotOutput | None:
    """Return the plot that an artifact is; None for tables and for files that code wrote itself."""
    kind = _PLOT_TYPES.get(artifact.mime)
    if kind is None or artifact.source == "file":
        return None
    content = base64.b64encode(artifact.data).decode("ascii")
    return PlotOutput(kind, content, artifact.width or None, artifact.height or None, round(artifact.dpi) or None)
