"""Names, results, configuration and exceptions."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import pydantic
import pytest

import llm_sandbox
from llm_sandbox.const import StrEnum
from llm_sandbox.core.config import SessionConfig
from llm_sandbox.data import ConsoleOutput, ExecutionResult, FileType, PlotOutput
from llm_sandbox.exceptions import SandboxTimeoutError, SecurityPolicyViolation, SecurityViolationError
from llm_sandbox.interactive import InteractiveSettings
from llm_sandbox.local.config import LocalSandboxConfig
from llm_sandbox.pool import PoolConfig
from llm_sandbox.pool.exceptions import DuplicateClientError, PoolExhaustedError, PoolHealthCheckError
from llm_sandbox.security import SecurityIssueSeverity, SecurityPattern, SecurityPolicy
from llm_sandbox.security.seccomp import SeccompPolicy, seccomp_available
from llm_sandbox.windows.config import WindowsMxcConfig


def test_backends_are_strings_in_any_case() -> None:
    backend = llm_sandbox.SandboxBackend("Docker")
    assert backend is llm_sandbox.SandboxBackend.DOCKER
    assert [backend] == ["docker"] and str(backend) == "docker" and f"{backend}" == "docker" and "%s" % backend == "docker"
    assert json.dumps([backend]) == '["docker"]'
    with pytest.raises(ValueError, match="^'rkt' is not a valid SandboxBackend$"):
        llm_sandbox.SandboxBackend("rkt")
    with pytest.raises(ValueError, match="^7 is not a valid SandboxBackend$"):
        llm_sandbox.SandboxBackend(7)  # type: ignore[arg-type]


def test_members_must_be_strings() -> None:
    with pytest.raises(TypeError, match="StrEnum values must be strings, got int"):

        class Numbers(StrEnum):  # pyright: ignore[reportUnusedClass]
            ONE = 1  # pyright: ignore[reportArgumentType]


def test_console_output() -> None:
    output = ConsoleOutput(exit_code=3, stdout="out")
    assert not output.success() and ConsoleOutput().success()
    assert repr(output) == "ConsoleOutput(exit_code=3, stderr='', stdout='out')"
    assert output.to_json() == json.dumps({"exit_code": 3, "stderr": "", "stdout": "out"}, indent=2)
    with pytest.warns(DeprecationWarning, match="Use 'stdout' attribute directly instead."):
        assert output.text() == "out"


def test_plots_are_json_if_asked_for() -> None:
    result = ExecutionResult(plots=[PlotOutput(FileType.PNG, "aGk=")])
    assert "plots" not in json.loads(result.to_json())
    plot = {"format": "png", "content_base64": "aGk=", "width": None, "height": None, "dpi": None}
    assert json.loads(result.to_json(include_plots=True))["plots"] == [plot]


def test_session_config() -> None:
    config = SessionConfig(lang="PYTHON", execution_timeout=5)
    assert config.lang is llm_sandbox.SupportedLanguage.PYTHON
    assert config.get_execution_timeout() == 5 and SessionConfig().get_execution_timeout() == 60
    assert SessionConfig(container_id="c").is_using_existing_container() and not config.is_using_existing_container()
    assert SessionConfig.model_validate(config.model_dump()) == config
    with pytest.raises(pydantic.ValidationError, match="Only one of 'image' or 'dockerfile' can be provided, not both"):
        SessionConfig(image="i", dockerfile="d")
    with pytest.raises(pydantic.ValidationError, match="Cannot use 'dockerfile' with existing 'container_id'"):
        SessionConfig(dockerfile="d", container_id="c")
    with pytest.raises(pydantic.ValidationError, match="'COBOL' is not a valid SupportedLanguage"):
        SessionConfig(lang="COBOL")
    with pytest.raises(pydantic.ValidationError, match="encoding_errors"):
        SessionConfig.model_validate({"encoding_errors": "guess"})


def test_pool_config() -> None:
    assert PoolConfig.model_validate({"exhaustion_strategy": "fail_fast"}).exhaustion_strategy.value == "fail_fast"
    with pytest.raises(ValueError, match=r"min_pool_size \(5\) cannot be greater than max_pool_size \(2\)"):
        PoolConfig(min_pool_size=5, max_pool_size=2)
    for wrong in (
        {"max_pool_size": 0},
        {"min_pool_size": -1},
        {"idle_timeout": 0},
        {"max_container_uses": 0},
        {"health_check_interval": 0},
    ):
        with pytest.raises(pydantic.ValidationError):
            PoolConfig.model_validate(wrong)


def test_exceptions_keep_their_arguments() -> None:
    assert SandboxTimeoutError("late", timeout_duration=1.5).timeout_duration == 1.5
    exhausted = PoolExhaustedError(3, 2.0)
    assert (exhausted.pool_size, exhausted.timeout) == (3, 2.0)
    assert str(exhausted) == "All 3 containers in pool are busy and timeout of 2.0s exceeded"
    check = PoolHealthCheckError("abc", "gone")
    assert (check.container_id, check.reason) == ("abc", "gone")
    assert isinstance(DuplicateClientError(), ValueError)
    found = SecurityPattern(pattern="x", description="finds x", severity=SecurityIssueSeverity.HIGH)
    violation = SecurityPolicyViolation([found], SecurityIssueSeverity.LOW)
    assert isinstance(violation, SecurityViolationError) and violation.violations == [found]
    assert str(violation) == "Code violates the security policy (threshold LOW): finds x"


def test_policies_are_models() -> None:
    policy = SecurityPolicy.model_validate(
        {"severity_threshold": 2, "patterns": [{"pattern": "x", "description": "d", "severity": 3}]},
    )
    assert policy.severity_threshold is SecurityIssueSeverity.MEDIUM
    assert policy.patterns == [SecurityPattern(pattern="x", description="d", severity=SecurityIssueSeverity.HIGH)]
    assert SecurityPolicy.model_validate(policy.model_dump()) == policy
    with pytest.raises(llm_sandbox.SandboxError, match=r"^Invalid regex pattern: \($"):
        SecurityPattern(pattern="(", description="d", severity=SecurityIssueSeverity.LOW)
    with pytest.raises(pydantic.ValidationError):
        SecurityPattern.model_validate({"pattern": "x", "description": "d", "severity": 9})


def test_interactive_settings() -> None:
    with pytest.raises(ValueError, match="history_size must be non-negative"):
        InteractiveSettings(history_size=-1)
    with pytest.raises(ValueError, match="poll_interval must be positive"):
        InteractiveSettings(poll_interval=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"network": "bridge"}, "network"),
        ({"read_only_paths": ("usr",)}, "absolute paths without traversal: 'usr'"),
        ({"read_only_paths": ("/usr/../etc",)}, "without traversal"),
        ({"read_only_paths": ("/",)}, "cannot be exposed: '/'"),
        ({"read_only_paths": ("/proc/1",)}, "cannot be exposed"),
        ({"python_executable": "python3"}, "python_executable must be an absolute"),
        ({"env": {"A=B": "c"}}, "cannot contain '='"),
        ({"env": {"A": "\0"}}, "NUL"),
        ({"max_output_bytes": 0}, "max_output_bytes"),
        ({"max_output_bytes": 1.0}, "max_output_bytes"),
        ({"open_files_limit": 15}, "open_files_limit"),
        ({"memory": 1}, "memory"),
    ],
)
def test_local_config_refuses(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        LocalSandboxConfig.model_validate(wrong)


def test_local_config_is_frozen() -> None:
    config = LocalSandboxConfig(read_only_paths=("/usr/", "/usr"))
    assert config.read_only_paths == ("/usr",)
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        config.network = "host"


def test_seccomp_policy() -> None:
    assert SeccompPolicy().unenforced() == [] and seccomp_available()
    assert SeccompPolicy(blocked_syscalls=("ptrace", "read", "read")).unenforced() == ["read"]
    for wrong in ((), ("",), ("Read",), ("read\0",), ("read;",)):
        with pytest.raises(pydantic.ValidationError):
            SeccompPolicy(blocked_syscalls=wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"read_only_paths": ("C:\\",)},
        {"read_only_paths": ("data",)},
        {"read_only_paths": ("\\\\server\\share\\data",)},
        {"read_only_paths": ("\\\\.\\C:\\data",)},
        {"deny_paths": ("C:\\data\\..\\x",)},
        {"deny_paths": ("C:\\data\\aux.txt",)},
        {"deny_paths": ("C:\\data\\file:stream",)},
        {"deny_paths": ("C:\\data\\dot.",)},
        {"python_executable": "C:\\python\\python.bat"},
        {"env": {"Path": "a", "PATH": "b"}},
        {"env": {"SystemRoot": "a"}},
    ],
)
def test_windows_config_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        WindowsMxcConfig.model_validate(wrong)


def test_windows_config() -> None:
    config = WindowsMxcConfig(read_only_paths=("C:\\Data", "c:/data"), python_executable="C:\\Python\\python.exe")
    assert config.read_only_paths == ("C:\\Data",)


def test_enumerations_of_data_are_no_strings() -> None:
    assert not issubclass(FileType, str) and issubclass(FileType, Enum)
