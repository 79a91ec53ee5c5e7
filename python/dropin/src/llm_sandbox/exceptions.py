"""Exceptions of the package. The classes, their arguments and their texts are those of llm-sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_sandbox.security.policy import SecurityIssueSeverity, SecurityPattern


class SandboxError(Exception):
    """The base class of the exceptions that sandboxes raise."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class ContainerError(SandboxError):
    """A container or sandbox could not be opened, reached or used."""


class SecurityError(SandboxError):
    """Something was refused for the safety of this machine, such as a path or an archive that leads elsewhere."""


class ResourceError(SandboxError):
    """A limit on resources was exceeded."""


class ValidationError(SandboxError):
    """An argument is wrong."""


class ExtraArgumentsError(SandboxError):
    """An argument was passed that is not accepted."""


class LanguageNotSupportedError(SandboxError):
    """There is no such language, or not for this kind of session."""

    def __init__(self, lang: str) -> None:
        super().__init__(f"Language {lang} is not supported")


class ImageNotFoundError(SandboxError):
    """The container engine does not have the image."""

    def __init__(self, image: str) -> None:
        super().__init__(f"Image {image} not found")


class NotOpenSessionError(SandboxError):
    """The session was not opened yet, or is closed."""

    def __init__(self) -> None:
        super().__init__("Session is not open. Please call open() method before running code.")


class LibraryInstallationNotSupportedError(SandboxError):
    """Libraries cannot be installed for this language or in this session."""

    def __init__(self, lang: str) -> None:
        super().__init__(f"Library installation is not supported for {lang}")


class CommandEmptyError(SandboxError):
    """A command is empty."""

    def __init__(self) -> None:
        super().__init__("Command cannot be empty")


class CommandFailedError(SandboxError):
    """A command that the session itself needed has failed."""

    def __init__(self, command: str, exit_code: int, output: str) -> None:
        super().__init__(f"Command {command} failed with exit code {exit_code}:\n{output}")


class PackageManagerError(SandboxError):
    """The language has no package manager."""

    def __init__(self, package_manager: str) -> None:
        super().__init__(f"Package manager {package_manager} not found")


class ImagePullError(SandboxError):
    """The container engine could not pull the image."""

    def __init__(self, image: str, error: str) -> None:
        super().__init__(f"Failed to pull image {image}: {error}")


class UnsupportedBackendError(SandboxError):
    """There is no such backend, or it cannot do what was asked for."""

    def __init__(self, backend: str) -> None:
        super().__init__(f"Unsupported backend: {backend}")


class MissingDependencyError(SandboxError):
    """Something that the backend needs is not installed."""


class LanguageNotSupportPlotError(SandboxError):
    """Plots of this language are not captured."""

    def __init__(self, lang: str) -> None:
        super().__init__(f"Language {lang} does not support plot detection")


class InvalidRegexPatternError(SandboxError):
    """A security pattern is no regular expression."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"Invalid regex pattern: {pattern}")


class LanguageHandlerNotInitializedError(SandboxError):
    """The session has no language handler yet."""

    def __init__(self, language: str) -> None:
        super().__init__(f"Language handler for {language} is not initialized.")


class SecurityViolationError(SandboxError):
    """The security policy forbids it."""


class SecurityPolicyViolation(SecurityViolationError):
    """Code was not run, since the security policy forbids it. `violations` has what was found."""

    def __init__(self, violations: Sequence[SecurityPattern], severity_threshold: SecurityIssueSeverity) -> None:
        found = ", ".join(violation.description for violation in violations)
        super().__init__(f"Code violates the security policy (threshold {severity_threshold.name}): {found}")
        self.violations = list(violations)
        self.severity_threshold = severity_threshold


class SandboxTimeoutError(SandboxError):
    """An operation took longer than it may. `timeout_duration` is its limit in seconds."""

    def __init__(self, message: str, timeout_duration: float | None = None) -> None:
        super().__init__(message)
        self.timeout_duration = timeout_duration
