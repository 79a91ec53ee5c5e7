"""The backend Micromamba."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.docker import SandboxDockerSession
from llm_sandbox.security import SecurityPolicy

DEFAULT_IMAGE = "mambaorg/micromamba:latest"


class MicromambaSession(SandboxDockerSession):
    """A session in a container of Docker whose programs are those of a Micromamba environment."""

    _backend = "micromamba"

    def __init__(
        self,
        client: Any = None,
        image: str | None = DEFAULT_IMAGE,
        dockerfile: str | None = None,
        lang: str = SupportedLanguage.PYTHON,
        keep_template: bool = False,
        verbose: bool = False,
        mounts: Any = None,
        environment: str = "base",
        commit_container: bool = False,
        stream: bool = True,
        runtime_configs: Mapping[str, Any] | None = None,
        workdir: str | None = "/sandbox",
        security_policy: SecurityPolicy | None = None,
        default_timeout: float | None = None,
        execution_timeout: float | None = None,
        session_timeout: float | None = None,
        container_id: str | None = None,
        skip_environment_setup: bool = False,
        **kwargs: Any,
    ) -> None:
        self.environment = environment
        super().__init__(
            client,
            None if image == DEFAULT_IMAGE else image,
            dockerfile,
            lang,
            keep_template,
            commit_container,
            verbose=verbose,
            stream=stream,
            runtime_configs=runtime_configs,
            workdir=workdir,
            security_policy=security_policy,
            default_timeout=default_timeout,
            execution_timeout=execution_timeout,
            session_timeout=session_timeout,
            container_id=container_id,
            skip_environment_setup=skip_environment_setup,
            mounts=mounts,
            **kwargs,
        )

    def _image_flags(self, image: str | None, dockerfile: str | None) -> Iterable[str]:
        yield from super()._image_flags(image, dockerfile)
        yield from ("--micromamba-env", self.environment)

    def _default_environment(self) -> str | None:
        return None
