"""Pools of containers of Podman."""

from __future__ import annotations

from llm_sandbox.const import SandboxBackend
from llm_sandbox.podman import SandboxPodmanSession
from llm_sandbox.pool.docker_pool import DockerPoolManager


class PodmanPoolManager(DockerPoolManager):
    """A pool of containers of Podman."""

    backend = SandboxBackend.PODMAN
    _session_class = SandboxPodmanSession
