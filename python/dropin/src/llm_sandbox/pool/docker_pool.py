"""Pools of containers of Docker."""

from __future__ import annotations

from typing import Any

from llm_sandbox._session import EngineSession
from llm_sandbox.const import SandboxBackend, SupportedLanguage
from llm_sandbox.docker import SandboxDockerSession
from llm_sandbox.pool.base import EnginePoolManager
from llm_sandbox.pool.config import PoolConfig


class DockerPoolManager(EnginePoolManager):
    """A pool of containers of Docker."""

    backend = SandboxBackend.DOCKER
    _session_class: type[EngineSession] = SandboxDockerSession

    def __init__(
        self,
        config: PoolConfig,
        lang: SupportedLanguage | str,
        image: str | None = None,
        dockerfile: str | None = None,
        client: Any = None,
        runtime_configs: dict[str, Any] | None = None,
        **session_kwargs: Any,
    ) -> None:
        for name, value in (("dockerfile", dockerfile), ("runtime_configs", runtime_configs)):
            if value is not None:
                session_kwargs[name] = value
        super().__init__(client, config, lang, image, **session_kwargs)
