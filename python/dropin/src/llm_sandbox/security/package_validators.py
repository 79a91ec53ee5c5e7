"""Which names of libraries are passed to package managers.

A name that is an option, a path or an address of another registry is not a name of a package, and shell characters are in none.
"""

from __future__ import annotations

import re
from typing import Final

from llm_sandbox.exceptions import ValidationError

_VERSION = r"[A-Za-z0-9][A-Za-z0-9._+-]*"
_SPECIFIER = r"(?:===?|[!~<>]=|[<>])[0-9][A-Za-z0-9._+!*-]*"
_NPM = rf"(?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*(?:@{_VERSION})?"
_DEBIAN = r"[a-z0-9][a-z0-9.+-]+"
_MAVEN = r"[A-Za-z0-9][A-Za-z0-9._-]*"


def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\A(?:{pattern})\Z")


PACKAGE_NAME_PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "python": _whole(rf"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?(?:{_SPECIFIER}(?:,{_SPECIFIER})*)?"),
    "javascript": _whole(_NPM),
    "node": _whole(_NPM),
    "go": _whole(rf"[A-Za-z0-9][A-Za-z0-9._/-]*(?:@{_VERSION})?"),
    "ruby": _whole(rf"[A-Za-z0-9][A-Za-z0-9._-]*(?::{_VERSION})?"),
    "r": _whole(r"[A-Za-z][A-Za-z0-9.]*"),
    "cpp": _whole(_DEBIAN),
    "c": _whole(_DEBIAN),
    "java": _whole(rf"{_MAVEN}(?::{_MAVEN}){{0,2}}"),
}
"""The names that are accepted, by language."""

_UNKNOWN_LANGUAGE = _whole(r"[A-Za-z0-9][A-Za-z0-9._/+:@-]*")


def validate_package_name(library: str, language: str) -> str:
    """Return the name without blanks around it, or raise ValidationError if it is not one of a package of the language."""
    if not isinstance(library, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValidationError(f"Library identifier must be a non-empty string, got {type(library).__name__}")
    name = library.strip()
    if not name:
        raise ValidationError("Library identifier must be a non-empty string")
    if not PACKAGE_NAME_PATTERNS.get(language.lower(), _UNKNOWN_LANGUAGE).match(name):
        raise ValidationError(
            f"Library {library!r} is not a valid {language} package identifier: "
            "use the name of a package and, if you need one, its version, without options, paths, URLs or blanks"
        )
    return name
