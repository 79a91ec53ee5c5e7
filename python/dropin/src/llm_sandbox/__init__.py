"""The names of llm-sandbox, on LLM Sandbox."""

from pathlib import Path

from llm_sandbox._alone import check_alone
from llm_sandbox.backends import BackendCapabilities, BackendDefinition, get_backend, list_backends, register_backend
from llm_sandbox.const import DefaultImage, SandboxBackend, SupportedLanguage
from llm_sandbox.core.config import SessionConfig
from llm_sandbox.data import ConsoleOutput, ExecutionResult, FileType, PlotOutput, StreamCallback
from llm_sandbox.exceptions import (
    ContainerError,
    NotOpenSessionError,
    ResourceError,
    SandboxError,
    SandboxTimeoutError,
    SecurityError,
    SecurityPolicyViolation,
    ValidationError,
)
from llm_sandbox.interactive import InteractiveSandboxSession, InteractiveSettings, KernelType
from llm_sandbox.local.config import LocalSandboxConfig
from llm_sandbox.security import RestrictedModule, SecurityIssueSeverity, SecurityPattern, SecurityPolicy
from llm_sandbox.security.presets import get_security_policy
from llm_sandbox.security.seccomp import SeccompPolicy
from llm_sandbox.session import ArtifactSandboxSession, SandboxSession, create_session
from llm_sandbox.windows.config import WindowsMxcConfig

check_alone(Path(__file__).parent)

__all__ = [
    "ArtifactSandboxSession",
    "BackendCapabilities",
    "BackendDefinition",
    "ConsoleOutput",
    "ContainerError",
    "DefaultImage",
    "ExecutionResult",
    "FileType",
    "InteractiveSandboxSession",
    "InteractiveSettings",
    "KernelType",
    "LocalSandboxConfig",
    "NotOpenSessionError",
    "PlotOutput",
    "ResourceError",
    "RestrictedModule",
    "SandboxBackend",
    "SandboxError",
    "SandboxSession",
    "SandboxTimeoutError",
    "SeccompPolicy",
    "SecurityError",
    "SecurityIssueSeverity",
    "SecurityPattern",
    "SecurityPolicy",
    "SecurityPolicyViolation",
    "SessionConfig",
    "StreamCallback",
    "SupportedLanguage",
    "ValidationError",
    "WindowsMxcConfig",
    "create_session",
    "get_backend",
    "get_security_policy",
    "list_backends",
    "register_backend",
]
