"""Pools of containers that are ready before they are needed."""

from llm_sandbox.pool.base import ContainerPoolManager, ContainerState, PooledContainer
from llm_sandbox.pool.config import ExhaustionStrategy, PoolConfig
from llm_sandbox.pool.exceptions import PoolClosedError, PoolExhaustedError, PoolHealthCheckError
from llm_sandbox.pool.factory import create_pool_manager
from llm_sandbox.pool.session import ArtifactPooledSandboxSession, PooledSandboxSession

__all__ = [
    "ArtifactPooledSandboxSession",
    "ContainerPoolManager",
    "ContainerState",
    "ExhaustionStrategy",
    "PoolClosedError",
    "PoolConfig",
    "PoolExhaustedError",
    "PoolHealthCheckError",
    "PooledContainer",
    "PooledSandboxSession",
    "create_pool_manager",
]
