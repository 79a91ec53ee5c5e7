"""Exceptions of pools. As in llm-sandbox, none of them is a `SandboxError`."""

from __future__ import annotations


class PoolExhaustedError(Exception):
    """All containers of the pool are busy."""

    def __init__(self, pool_size: int, timeout: float | None = None) -> None:
        waited = "" if timeout is None else f" and timeout of {timeout}s exceeded"
        super().__init__(f"All {pool_size} containers in pool are busy{waited}")
        self.pool_size = pool_size
        self.timeout = timeout


class PoolClosedError(Exception):
    """The pool is closed."""

    def __init__(self) -> None:
        super().__init__("Container pool has been closed")


class PoolHealthCheckError(Exception):
    """A container of the pool does not work any more."""

    def __init__(self, container_id: str, reason: str) -> None:
        super().__init__(f"Health check failed for container {container_id}: {reason}")
        self.container_id = container_id
        self.reason = reason


class SessionNotOpenError(RuntimeError):
    """The pooled session was not opened yet, or is closed."""

    def __init__(self) -> None:
        super().__init__("Session not open - call open() first or use context manager")


class DuplicateClientError(ValueError):
    """A pooled session was given a client, but the pool has one."""

    def __init__(self) -> None:
        super().__init__(
            "Cannot specify 'client' parameter when using pooling mode. The client is managed by the pool manager. "
            "Please configure the client in the pool manager instead."
        )
