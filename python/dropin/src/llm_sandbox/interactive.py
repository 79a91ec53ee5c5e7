"""Sessions that keep variables from one run to the next."""

from __future__ import annotations

from dataclasses import dataclass

from llm_sandbox.const import StrEnum


class KernelType(StrEnum):
    """The kernels of interactive sessions."""

    IPYTHON = "ipython"


@dataclass(slots=True)
class InteractiveSettings:
    """Settings of an interactive session.

    `timeout` is how many seconds a cell may take, or None for any number. `poll_interval` is accepted for compatibility: results
    are not polled for.
    """

    kernel_type: KernelType = KernelType.IPYTHON
    max_memory: str | None = None
    history_size: int = 1000
    timeout: float | None = 300.0
    poll_interval: float = 0.1

    def __post_init__(self) -> None:
        if self.history_size < 0:
            raise ValueError("history_size must be non-negative")
        if self.poll_interval <= 0:
            raise ValueError("poll_interval must be positive")
