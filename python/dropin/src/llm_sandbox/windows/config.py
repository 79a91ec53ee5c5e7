"""Settings of the backend windows-mxc."""

from __future__ import annotations

import re
from pathlib import PureWindowsPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|conin\$|conout\$|clock\$|com[1-9¹²³]|lpt[1-9¹²³])[ ]*(?:\..*)?")
_OF_WINDOWS = {"systemroot", "windir", "systemdrive", "localappdata"}


class WindowsMxcConfig(BaseModel):
    """What code of a session on Windows may see and use. The names exist so that programs load: the backend itself does not."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: Literal["none", "host"] = "none"
    read_only_paths: tuple[str, ...] = ()
    deny_paths: tuple[str, ...] = ()
    python_executable: str | None = None
    javascript_executable: str | None = None
    env: dict[str, str] = Field(default_factory=dict[str, str])
    max_output_bytes: int = Field(default=8 << 20, gt=0, strict=True)
    max_artifact_bytes: int = Field(default=16 << 20, gt=0, strict=True)

    @field_validator("read_only_paths", "deny_paths")
    @classmethod
    def _check_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        paths: dict[str, str] = {}
        for path in map(windows_policy_path, value):
            if not PureWindowsPath(path).name:
                raise ValueError("MXC policy paths cannot be a whole volume root")
            paths.setdefault(path.casefold(), path)
        return tuple(paths.values())

    @field_validator("python_executable", "javascript_executable")
    @classmethod
    def _check_executable(cls, value: str | None) -> str | None:
        if value is None:
            return None
        path = windows_policy_path(value)
        if PureWindowsPath(path).suffix.casefold() != ".exe":
            raise ValueError("Windows runtime paths must identify an .exe executable")
        return path

    @field_validator("env")
    @classmethod
    def _check_environment(cls, value: dict[str, str]) -> dict[str, str]:
        return explicit_environment(value)


def windows_policy_path(value: str) -> str:
    """Return an absolute path of a local drive, or raise ValueError."""
    path = PureWindowsPath(value)
    if "\0" in value or not path.is_absolute() or not re.fullmatch("[A-Za-z]:", path.drive) or {".", ".."} & set(re.split(r"[\\/]", value)):
        raise ValueError("MXC paths must be absolute local drive paths without traversal or device namespaces")
    for part in path.parts[1:]:
        if re.search(r"[\x00-\x1f<>:\"|?*]|[. ]$", part) or _RESERVED.fullmatch(part):
            raise ValueError("MXC paths cannot contain alternate data streams, reserved names, or trailing dots/spaces")
    return str(path)


def explicit_environment(environment: dict[str, str]) -> dict[str, str]:
    """Return a copy of the variables, or raise ValueError if one cannot be set. Names are the same in any case."""
    seen: set[str] = set()
    for name, text in environment.items():
        if not name or "=" in name or "\0" in name:
            raise ValueError("Environment keys must be nonempty strings without '=' or NUL")
        if "\0" in text:
            raise ValueError("Environment values must be strings without NUL")
        if name.casefold() in seen | _OF_WINDOWS:
            raise ValueError(f"Environment key is duplicated or reserved for trusted Windows bootstrap: {name}")
        seen.add(name.casefold())
    return dict(environment)
