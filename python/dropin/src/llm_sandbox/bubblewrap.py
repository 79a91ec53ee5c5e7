"""The backend bubblewrap."""

from __future__ import annotations

from typing import Any

from llm_sandbox.local.session import LocalProcessSession


class BubblewrapSession(LocalProcessSession):
    """A session on this machine. `bwrap_path` is accepted for compatibility: the sandbox does not need the program."""

    def __init__(self, *, bwrap_path: str = "bwrap", **kwargs: Any) -> None:
        super().__init__(**kwargs)
