"""Adds the backend `llmsandbox` to llm-sandbox: importing this package registers it."""

from llm_sandbox import BackendCapabilities, register_backend

from llmsandbox_backend._session import LlmsandboxSession

__all__ = ["LlmsandboxSession"]

register_backend(
    "llmsandbox",
    LlmsandboxSession,
    capabilities=BackendCapabilities(filesystem_isolation=True, network_isolation=True, seccomp=True),
)
