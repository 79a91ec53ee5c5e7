"""Pools of sandboxes on this machine."""

from __future__ import annotations

from llm_sandbox.const import SandboxBackend
from llm_sandbox.local.session import LocalSession
from llm_sandbox.pool.base import EnginePoolManager


class LocalPoolManager(EnginePoolManager):
    """A pool of sandboxes on this machine, or of the server of LLMSANDBOX_URL."""

    backend = SandboxBackend.BUBBLEWRAP
    _session_class = LocalSession
