"""Where a session has the programs that a language's commands need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RuntimeContext:
    """The directory and the programs of one session."""

    workdir: str
    python_executable_path: str | None = None
    pip_executable_path: str | None = None
    pip_cache_dir: str | None = None
