"""The backends by name, and how to add one."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm_sandbox.const import SandboxBackend
from llm_sandbox.exceptions import UnsupportedBackendError

if TYPE_CHECKING:
    from llm_sandbox.core.session_base import BaseSession

BackendFactory = Callable[..., "BaseSession"]
"""Makes a session of what the caller of `SandboxSession` has passed, without `backend` and `pool`."""


@dataclass(frozen=True)
class BackendCapabilities:
    """What a backend can do. `platforms` has names as `sys.platform` has them; empty means any."""

    platforms: tuple[str, ...] = ()
    container_images: bool = False
    interactive: bool = False
    pooling: bool = False
    filesystem_isolation: bool = False
    network_isolation: bool = False
    seccomp: bool = False
    daemon_required: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "platforms", tuple(self.platforms))


@dataclass(frozen=True)
class BackendDefinition:
    """A backend: its name, what makes its sessions, and what it can do."""

    name: str
    factory: BackendFactory
    capabilities: BackendCapabilities
    builtin: bool = False


def register_backend(name: str, factory: BackendFactory, *, capabilities: BackendCapabilities | None = None) -> BackendDefinition:
    """Add a backend, whose sessions the factory makes. It is called when a session is made, and not before."""
    key = _key(name)
    if not callable(factory):
        raise TypeError("Backend factory must be callable")
    if capabilities is not None and not isinstance(capabilities, BackendCapabilities):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("capabilities must be a BackendCapabilities instance")
    definition = BackendDefinition(key, factory, capabilities or BackendCapabilities())
    with _changing:
        if key in _backends:
            raise ValueError(f"Backend '{key}' is already registered and cannot be replaced")
        _backends[key] = definition
    return definition


def get_backend(name: SandboxBackend | str) -> BackendDefinition:
    """Return the backend with a name, in any case, or raise UnsupportedBackendError."""
    try:
        return _backends[_key(name)]
    except (KeyError, TypeError, ValueError) as error:
        raise UnsupportedBackendError(name) from error


def list_backends() -> tuple[BackendDefinition, ...]:
    """Return the backends: ours, and then the others as they were added."""
    with _changing:
        return tuple(_backends.values())


def _key(name: str) -> str:
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("Backend names must be strings")
    key = name.lower()
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", key):
        raise ValueError("Backend names must start with a letter and contain only letters, digits, underscores, or hyphens")
    return key


def _builtin(name: SandboxBackend, module: str, session: str, **features: bool | tuple[str, ...]) -> BackendDefinition:
    def factory(*args: Any, **kwargs: Any) -> BaseSession:
        made: BaseSession = getattr(importlib.import_module(f"llm_sandbox.{module}"), session)(*args, **kwargs)
        return made

    capabilities: dict[str, Any] = {"filesystem_isolation": True, "network_isolation": True, "seccomp": True, **features}
    return BackendDefinition(str(name), factory, BackendCapabilities(**capabilities), builtin=True)


_ENGINE = {"container_images": True, "interactive": True, "pooling": True, "daemon_required": True}

_changing = threading.Lock()
_backends = {
    definition.name: definition
    for definition in (
        _builtin(SandboxBackend.DOCKER, "docker", "SandboxDockerSession", **_ENGINE),
        _builtin(SandboxBackend.KUBERNETES, "kubernetes", "SandboxKubernetesSession", **_ENGINE, network_isolation=False, seccomp=False),
        _builtin(SandboxBackend.PODMAN, "podman", "SandboxPodmanSession", **_ENGINE),
        _builtin(SandboxBackend.MICROMAMBA, "micromamba", "MicromambaSession", container_images=True, daemon_required=True),
        _builtin(SandboxBackend.BUBBLEWRAP, "bubblewrap", "BubblewrapSession", platforms=("linux",)),
        _builtin(SandboxBackend.NSJAIL, "nsjail", "NsjailSession", platforms=("linux",)),
        _builtin(SandboxBackend.WINDOWS_MXC, "windows_mxc", "WindowsMxcSession", platforms=("win32",), seccomp=False),
        _builtin(SandboxBackend.WSL2_BUBBLEWRAP, "wsl2_bubblewrap", "Wsl2BubblewrapSession", platforms=("win32",)),
    )
}
