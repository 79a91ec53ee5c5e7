"""What a policy looks for in code."""

from __future__ import annotations

import re
from enum import IntEnum

from pydantic import BaseModel, Field, field_validator

from llm_sandbox.exceptions import InvalidRegexPatternError


class SecurityIssueSeverity(IntEnum):
    """How severe a finding is."""

    SAFE = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3


class SecurityPattern(BaseModel):
    """A regular expression of Python that code must not match."""

    pattern: str = Field(description="The regular expression, as `re.search` takes it.")
    description: str = Field(description="What it finds.")
    severity: SecurityIssueSeverity = Field(description="How severe a match is.")

    @field_validator("pattern")
    @classmethod
    def _compile(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise InvalidRegexPatternError(value) from error
        return value


class RestrictedModule(BaseModel):
    """A module that code must not import and that is not installed."""

    name: str = Field(description="The name, as the code imports it.")
    description: str = Field(description="Why it is restricted.")
    severity: SecurityIssueSeverity = Field(description="How severe its import is.")


class SecurityPolicy(BaseModel):
    """What `is_safe` looks for in code.

    It reads code and does not run it, so it finds mistakes and the obvious; code can be written so that nothing is found.
    What code may do is up to the sandbox alone.
    """

    severity_threshold: SecurityIssueSeverity = Field(
        default=SecurityIssueSeverity.SAFE,
        description="The severity from which on code is unsafe. SAFE: all findings are listed, none counts.",
    )
    patterns: list[SecurityPattern] | None = Field(default=None, description="Patterns that code must not match.")
    restricted_modules: list[RestrictedModule] | None = Field(default=None, description="Modules that code must not import.")

    def add_pattern(self, pattern: SecurityPattern) -> None:
        """Add a pattern, after those that there are."""
        self.patterns = [*(self.patterns or []), pattern]

    def add_restricted_module(self, module: RestrictedModule) -> None:
        """Add a restricted module, after those that there are."""
        self.restricted_modules = [*(self.restricted_modules or []), module]
