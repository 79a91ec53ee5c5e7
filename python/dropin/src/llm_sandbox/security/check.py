"""Compares code and libraries with a policy."""

from __future__ import annotations

import re

from llm_sandbox.exceptions import SecurityViolationError
from llm_sandbox.language_handlers.base import AbstractLanguageHandler
from llm_sandbox.security.policy import SecurityIssueSeverity, SecurityPattern, SecurityPolicy


def check_code(code: str, policy: SecurityPolicy | None, handler: AbstractLanguageHandler) -> tuple[bool, list[SecurityPattern]]:
    """Return whether the policy lets code pass, and what was found in it.

    The patterns come first, in their order, and then the restricted modules. The first finding that reaches the threshold ends the
    check. Comments are not read; strings are.
    """
    if policy is None:
        return True, []
    modules = [
        SecurityPattern(pattern=handler.get_import_patterns(module.name), description=module.description, severity=module.severity)
        for module in policy.restricted_modules or ()
    ]
    text = handler.filter_comments(code)
    found: list[SecurityPattern] = []
    for pattern in [*(policy.patterns or ()), *modules]:
        if re.search(pattern.pattern, text):
            found.append(pattern)
            if SecurityIssueSeverity.SAFE < policy.severity_threshold <= pattern.severity:
                return False, found
    return True, found


def check_library(library: str, policy: SecurityPolicy | None) -> None:
    """Raise SecurityViolationError if the policy restricts the module that has the name of the library, whichever version it is."""
    name = _plain(re.split(r"[\[=!~<>:]|(?<=.)@", library.strip(), maxsplit=1)[0])
    if policy is not None and any(name == _plain(module.name) for module in policy.restricted_modules or ()):
        raise SecurityViolationError(f"Library {library} is not allowed to be installed")


def _plain(name: str) -> str:
    """Return a name as package managers compare them: Scikit_Learn is scikit-learn."""
    return re.sub(r"[-_.]+", "-", name).lower()
