"""Pools of pods."""

from __future__ import annotations

from typing import Any

from llm_sandbox.const import SandboxBackend, SupportedLanguage
from llm_sandbox.kubernetes import SandboxKubernetesSession
from llm_sandbox.pool.base import EnginePoolManager
from llm_sandbox.pool.config import PoolConfig


class KubernetesPoolManager(EnginePoolManager):
    """A pool of pods of a namespace."""

    backend = SandboxBackend.KUBERNETES
    _session_class = SandboxKubernetesSession

    def __init__(
        self,
        config: PoolConfig,
        lang: SupportedLanguage | str,
        image: str | None = None,
        client: Any = None,
        namespace: str = "default",
        pod_manifest: dict[str, Any] | None = None,
        **session_kwargs: Any,
    ) -> None:
        self.namespace = namespace
        self.pod_manifest = pod_manifest
        super().__init__(client, config, lang, image, **session_kwargs)

    def _common(self) -> dict[str, Any]:
        manifest = {} if self.pod_manifest is None else {"pod_manifest": self.pod_manifest}
        return {**super()._common(), "kube_namespace": self.namespace, **manifest}
