"""The names of llm-sandbox, on LLM Sandbox."""

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
from llm_sandbox.interactive import InteractiveSettings, KernelType
from llm_sandbox.security import RestrictedModule, SecurityIssueSeverity, SecurityPattern, SecurityPolicy

__all__ = [
    "ConsoleOutput",
    "ContainerError",
    "DefaultImage",
    "ExecutionResult",
    "FileType",
    "InteractiveSettings",
    "KernelType",
    "NotOpenSessionError",
    "PlotOutput",
    "ResourceError",
    "RestrictedModule",
    "SandboxBackend",
    "SandboxError",
    "SandboxTimeoutError",
    "SecurityError",
    "SecurityIssueSeverity",
    "SecurityPattern",
    "SecurityPolicy",
    "SecurityPolicyViolation",
    "SessionConfig",
    "StreamCallback",
    "SupportedLanguage",
    "ValidationError",
]
