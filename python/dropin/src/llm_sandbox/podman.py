"""The backend Podman."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_sandbox import _connections
from llm_sandbox.const import EncodingErrorsType, SupportedLanguage
from llm_sandbox.docker import SandboxDockerSession
from llm_sandbox.security import SecurityPolicy


class SandboxPodmanSession(SandboxDockerSession):
    """A session in a container of Podman: the one of `client`, or else the one that the command `podman --remote` uses."""

    _backend = "podman"

    def __init__(
        self,
        client: Any = None,
        image: str | None = None,
        dockerfile: str | None = None,
        lang: str = SupportedLanguage.PYTHON,
        keep_template: bool = False,
        commit_container: bool = False,
        verbose: bool = False,
        mounts: Any = None,
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
        **kwargs: Any,
    ) -> None:
        super().__init__(
            client,
            image,
            dockerfile,
            lang,
            keep_template,
            commit_container,
            verbose=verbose,
            mounts=mounts,
            stream=stream,
            runtime_configs=runtime_configs,
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
        return () if client is None else _connections.podman_env(client)
