"""Backends, languages and default images by name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

EncodingErrorsType = Literal["strict", "replace", "ignore", "surrogateescape", "backslashreplace", "xmlcharrefreplace"]
"""How bytes of the output are decoded that are not UTF-8: the `errors` of `bytes.decode`."""


class StrEnum(str, Enum):
    """An enumeration whose members are strings, and are found by their value in any case.

    Python has one since 3.11, which takes only the exact value and has another repr.
    """

    def __new__(cls, value: str) -> StrEnum:
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"StrEnum values must be strings, got {type(value).__name__}")
        member = str.__new__(cls, value)
        member._value_ = value
        return member

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

    @classmethod
    def _missing_(cls, value: object) -> StrEnum | None:
        if not isinstance(value, str):
            return None
        return next((member for member in cls if member.value.lower() == value.lower()), None)


class SandboxBackend(StrEnum):
    """What runs the sandboxes."""

    DOCKER = "docker"
    KUBERNETES = "kubernetes"
    PODMAN = "podman"
    MICROMAMBA = "micromamba"
    BUBBLEWRAP = "bubblewrap"
    NSJAIL = "nsjail"
    WINDOWS_MXC = "windows-mxc"
    WSL2_BUBBLEWRAP = "wsl2-bubblewrap"


class SupportedLanguage(StrEnum):
    """The languages of code."""

    PYTHON = "python"
    JAVA = "java"
    JAVASCRIPT = "javascript"
    CPP = "cpp"
    GO = "go"
    RUBY = "ruby"
    R = "r"


@dataclass
class DefaultImage:
    """The images of llm-sandbox. Where an engine does not have one, its name stands for the default image of the language."""

    PYTHON = "ghcr.io/vndee/sandbox-python-311-bullseye"
    JAVA = "ghcr.io/vndee/sandbox-java-11-bullseye"
    JAVASCRIPT = "ghcr.io/vndee/sandbox-node-22-bullseye"
    CPP = "ghcr.io/vndee/sandbox-cpp-11-bullseye"
    GO = "ghcr.io/vndee/sandbox-go-123-bullseye"
    RUBY = "ghcr.io/vndee/sandbox-ruby-302-bullseye"
    R = "ghcr.io/vndee/sandbox-r-451-bullseye"
