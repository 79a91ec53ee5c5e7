"""What is told of a language."""

from __future__ import annotations

from typing import TypedDict


class LanguageExample(TypedDict):
    """A program that shows something."""

    title: str
    description: str
    code: str


class LanguageDetails(TypedDict):
    """A language, and what its sandboxes have."""

    version: str
    package_manager: str
    preinstalled_libraries: list[str]
    use_cases: list[str]
    visualization_support: bool
    examples: list[LanguageExample]
