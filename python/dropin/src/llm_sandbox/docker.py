"""The backend Docker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import llmsandbox

from llm_sandbox import _connections
from llm_sandbox._engine import Engine
from llm_sandbox._session import Container, EngineSession
from llm_sandbox.const import DefaultImage, EncodingErrorsType, SupportedLanguage
from llm_sandbox.exceptions import ContainerError, ImagePullError
from llm_sandbox.security import SecurityPolicy


@dataclass(frozen=True)
class ForeignContainer:
    """A container of somebody else."""

    id: str

    @property
    def short_id(self) -> str:
        """The beginning of the id."""
        return self.id[:12]

    @property
    def status(self) -> str:
        """It runs, since the session has opened it."""
        return "running"


_REFERENCE_IMAGES = {value for name, value in vars(DefaultImage).items() if name.isupper()}


class SandboxDockerSession(EngineSession):
    """A session in a container of Docker: the one of `client`, or else the one that the command `docker` uses.

    The package docker is not needed. `runtime_configs` are those of its `containers.create`.
    """

    _backend = "docker"

    def __init__(
        self,
        client: Any = None,
        image: str | None = None,
        dockerfile: str | None = None,
        lang: str = SupportedLanguage.PYTHON,
        keep_template: bool = False,
        commit_container: bool = False,
        commit_image_tag: str | None = None,
        verbose: bool = False,
        stream: bool = False,
        runtime_configs: Mapping[str, Any] | None = None,
        workdir: str | None = "/sandbox",
        security_policy: SecurityPolicy | None = None,
        default_timeout: float | None = None,
        execution_timeout: float | None = None,
        session_timeout: float | None = None,
        container_id: str | None = None,
        skip_environment_setup: bool = False,
        encoding_errors: EncodingErrorsType = "strict",
        *,
        mounts: Any = None,
        **kwargs: Any,
    ) -> None:
        self.client = client
        self.keep_template = keep_template
        self.commit_container = commit_container
        self.commit_image_tag = commit_image_tag
        configs = dict(runtime_configs or {})
        if mounts is not None:
            warnings.warn("'mounts' is deprecated: put the mounts in 'runtime_configs' instead", DeprecationWarning, stacklevel=3)
            configs["mounts"] = [*configs.get("mounts", []), *(mounts if isinstance(mounts, (list, tuple)) else [mounts])]
        engine = Engine(self._backend, env=self._address(client))
        if image in _REFERENCE_IMAGES and not _has_image(engine, image):
            image = None  # the default one, which has the same language
        engine = engine.with_flags(*self._image_flags(image, dockerfile))
        super().__init__(
            engine=engine,
            image=image,
            dockerfile=dockerfile,
            lang=lang,
            verbose=verbose,
            stream=stream,
            runtime_configs=configs,
            workdir=workdir,
            security_policy=security_policy,
            default_timeout=default_timeout,
            execution_timeout=execution_timeout,
            session_timeout=session_timeout,
            container_id=container_id,
            skip_environment_setup=skip_environment_setup,
            encoding_errors=encoding_errors,
            **kwargs,
        )

    def _address(self, client: Any) -> _connections.Env:
        """Return the variables for the engine of a client."""
        return () if client is None else _connections.docker_env(client)

    def _image_flags(self, image: str | None, dockerfile: str | None) -> Iterable[str]:
        if image is not None:
            yield from ("--image", image)
        if dockerfile is not None:
            yield from ("--dockerfile", str(dockerfile))
        if self.keep_template or self.commit_container:
            yield "--keep-image"

    def _container_of(self, sandbox: llmsandbox.Sandbox) -> Any:
        """Return the container, whose id the engine's mounts name. No code of the caller has run yet."""
        mounts = sandbox.exec("cat /proc/self/mountinfo").stdout
        found = re.search(r"/(?:containers|overlay-containers)/([0-9a-f]{64})/", mounts)
        return Container(found[1] if found else sandbox.id, sandbox.id, sandbox)

    def _open_existing(self, container_id: str) -> None:
        self._use_existing(container_id, ForeignContainer(container_id), "--container", container_id)

    def close(self) -> None:
        """Remove the container, after it has become an image if the session was asked for that."""
        if self.commit_container and self._sandbox is not None and self.config.container_id is None:
            self._commit(self._sandbox.id)
        super().close()

    def _commit(self, sandbox_id: str) -> None:
        tag = self.commit_image_tag or self.config.image
        if tag is None:
            raise ContainerError("commit_container: the image of the session has no name of yours: set image or commit_image_tag")
        overwrite = () if self.commit_image_tag and not _has_image(self._engine, tag) else ("--overwrite-tag", tag)
        self._engine.command("commit", "--backend", self._backend, *overwrite, sandbox_id, tag)

    def _raise(self, what: str, e: llmsandbox.Error) -> NoReturn:
        if self.config.image and re.search("pull", str(e), re.IGNORECASE) and isinstance(e, (llmsandbox.APIError, llmsandbox.StartError)):
            raise ImagePullError(self.config.image, str(e)) from e
        super()._raise(what, e)


def _has_image(engine: Engine, image: str | None) -> bool:
    """Return whether an engine has an image, as its own command knows."""
    program = shutil.which("podman" if engine.backend == "podman" else "docker")
    if image is None or program is None:
        return False
    remote = ["--remote"] if engine.backend == "podman" else []
    command = [program, *remote, "image", "inspect", "--format", "{{.Id}}", image]
    try:
        done = subprocess.run(command, env={**os.environ, **dict(engine.env)}, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
