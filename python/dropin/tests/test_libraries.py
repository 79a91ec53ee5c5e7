"""Libraries of languages whose handlers have no command for them."""

from __future__ import annotations

from typing import Any

import pytest

from llm_sandbox import SandboxSession, ValidationError
from llm_sandbox.exceptions import CommandFailedError, LibraryInstallationNotSupportedError


def java(**kwargs: Any) -> Any:
    return SandboxSession(lang="java", **kwargs)


def test_java_has_libraries_of_maven() -> None:
    with java() as session:
        with pytest.raises(CommandFailedError, match="no.such.group.of.anybody:nothing:1.0"):
            session.install(["no.such.group.of.anybody:nothing:1.0"])
        with pytest.raises(ValidationError, match="is not a valid java package"):
            session.install(["a b"])


def test_no_libraries_without_setup() -> None:
    with java(skip_environment_setup=True) as session, pytest.raises(LibraryInstallationNotSupportedError):
        session.install(["a:b:1"])
