"""Policies for code, and checks of the names of libraries."""

from llm_sandbox.security.package_validators import PACKAGE_NAME_PATTERNS, validate_package_name
from llm_sandbox.security.policy import RestrictedModule, SecurityIssueSeverity, SecurityPattern, SecurityPolicy

__all__ = [
    "PACKAGE_NAME_PATTERNS",
    "RestrictedModule",
    "SecurityIssueSeverity",
    "SecurityPattern",
    "SecurityPolicy",
    "validate_package_name",
]
