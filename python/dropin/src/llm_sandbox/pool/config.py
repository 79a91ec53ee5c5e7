"""The configuration of a pool."""

from __future__ import annotations

from enum import Enum

from pydantic import BaseModel, Field, model_validator


class ExhaustionStrategy(str, Enum):
    """What `acquire` does when all containers of the pool are busy."""

    FAIL_FAST = "fail_fast"
    WAIT = "wait"
    TEMPORARY = "temporary"


class PoolConfig(BaseModel):
    """How many containers a pool has, and for how long."""

    max_pool_size: int = Field(default=10, ge=1, description="How many containers there are at most.")
    min_pool_size: int = Field(default=0, ge=0, description="How many containers are kept ready.")
    idle_timeout: float | None = Field(default=300.0, gt=0, description="Seconds after which an unused container is replaced.")
    acquisition_timeout: float | None = Field(default=30.0, gt=0, description="Seconds that `acquire` waits, with the strategy `wait`.")
    health_check_interval: float = Field(default=60.0, gt=0, description="Seconds between checks of unused containers.")
    max_container_lifetime: float | None = Field(default=3600.0, gt=0, description="Seconds after which a container is replaced.")
    max_container_uses: int | None = Field(default=None, ge=1, description="Uses after which a container is replaced.")
    exhaustion_strategy: ExhaustionStrategy = Field(
        default=ExhaustionStrategy.WAIT, description="What `acquire` does when all containers are busy."
    )
    enable_prewarming: bool = Field(default=True, description="Open `min_pool_size` containers when the pool is made.")

    @model_validator(mode="after")
    def _check_sizes(self) -> PoolConfig:
        if self.min_pool_size > self.max_pool_size:
            raise ValueError(f"min_pool_size ({self.min_pool_size}) cannot be greater than max_pool_size ({self.max_pool_size})")
        return self
