"""Settings of sandboxes on this machine, for the backends bubblewrap and nsjail."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from llm_sandbox.security.seccomp import SeccompPolicy

DEFAULT_READ_ONLY_PATHS = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
"""What code may read by default. Sandboxes have the programs of this machine without naming them here."""

_VIRTUAL = {"proc", "sys", "dev", "tmp"}


class LocalSandboxConfig(BaseModel):
    """What code of a session on this machine may see and use."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: Literal["none", "host"] = "none"
    read_only_paths: tuple[str, ...] = DEFAULT_READ_ONLY_PATHS
    seccomp: SeccompPolicy | None = Field(default_factory=SeccompPolicy)
    python_executable: str = "/usr/bin/python3"
    env: dict[str, str] = Field(default_factory=dict[str, str])
    max_output_bytes: int = Field(default=8 << 20, gt=0, strict=True)
    max_artifact_bytes: int = Field(default=8 << 20, gt=0, strict=True)
    memory_limit_bytes: int | None = Field(default=None, gt=0, strict=True)
    cpu_time_limit: int | None = Field(default=None, gt=0, strict=True)
    file_size_limit: int | None = Field(default=None, gt=0, strict=True)
    open_files_limit: int | None = Field(default=None, ge=16, strict=True)

    @field_validator("read_only_paths")
    @classmethod
    def _check_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            parts = PurePosixPath(path).parts
            if not path.startswith("/") or path.startswith("//") or ".." in parts or "\0" in path:
                raise ValueError(f"Read-only mounts require absolute paths without traversal: {path!r}")
            if len(parts) == 1 or parts[1] in _VIRTUAL:
                raise ValueError(f"Host root and virtual/temporary filesystems cannot be exposed: {path!r}")
        return tuple(dict.fromkeys(str(PurePosixPath(path)) for path in value))

    @field_validator("python_executable")
    @classmethod
    def _check_executable(cls, value: str) -> str:
        if not value.startswith("/") or ".." in PurePosixPath(value).parts or "\0" in value:
            raise ValueError("python_executable must be an absolute sandbox path without traversal")
        return value

    @field_validator("env")
    @classmethod
    def _check_environment(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or "=" in name or "\0" in name + text:
                raise ValueError("Environment keys must be nonempty and cannot contain '=' or NUL; values cannot contain NUL")
        return dict(value)
