"""How pools are made."""

from __future__ import annotations

from typing import Any

from llm_sandbox.const import SandboxBackend, SupportedLanguage
from llm_sandbox.exceptions import UnsupportedBackendError
from llm_sandbox.pool.base import ContainerPoolManager, EnginePoolManager
from llm_sandbox.pool.config import PoolConfig


def create_pool_manager(
    client: Any = None,
    backend: SandboxBackend | str | None = None,
    config: PoolConfig | None = None,
    lang: SupportedLanguage | str = SupportedLanguage.PYTHON,
    **kwargs: Any,
) -> ContainerPoolManager:
    """Return a pool. All other arguments are those of the sessions that open its containers, such as `libraries` and `runtime_configs`.

    Without a backend, the pool is on this machine, or of Docker if an image, Dockerfile or client is given.
    """
    from llm_sandbox.session import needs_engine

    config = config or PoolConfig()
    if backend is None and not needs_engine({**kwargs, "client": client}):
        from llm_sandbox.pool.local_pool import LocalPoolManager

        for name in ("image", "dockerfile"):
            kwargs.pop(name, None)
        return LocalPoolManager(None, config, lang, **kwargs)
    return _manager(backend or SandboxBackend.DOCKER)(client=client, config=config, lang=lang, **kwargs)


def _manager(backend: SandboxBackend | str) -> type[EnginePoolManager]:
    name = str(backend).lower()
    if name == SandboxBackend.DOCKER:
        from llm_sandbox.pool.docker_pool import DockerPoolManager

        return DockerPoolManager
    if name == SandboxBackend.PODMAN:
        from llm_sandbox.pool.podman_pool import PodmanPoolManager

        return PodmanPoolManager
    if name == SandboxBackend.KUBERNETES:
        from llm_sandbox.pool.kubernetes_pool import KubernetesPoolManager

        return KubernetesPoolManager
    raise UnsupportedBackendError(str(backend))
