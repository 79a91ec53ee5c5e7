"""Sessions on this machine, without a container engine."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from llm_sandbox._engine import Engine
from llm_sandbox._session import EngineSession
from llm_sandbox.const import EncodingErrorsType, SupportedLanguage
from llm_sandbox.exceptions import ValidationError
from llm_sandbox.local.config import DEFAULT_READ_ONLY_PATHS, LocalSandboxConfig
from llm_sandbox.security import SecurityPolicy
from llm_sandbox.security.seccomp import SeccompPolicy


class LocalSession(EngineSession):
    """The session that there is without naming a backend: a sandbox of this machine, or of the server of LLMSANDBOX_URL."""

    def __init__(self, *, keep_template: bool = False, commit_container: bool = False, **kwargs: Any) -> None:
        if commit_container:
            raise ValidationError("commit_container needs an image: use backend='docker' or backend='podman'")
        super().__init__(engine=Engine(), **kwargs)


class LocalProcessSession(EngineSession):
    """A session of the backends bubblewrap and nsjail, which are the same sandbox here. Neither program has to be installed."""

    def __init__(
        self,
        *,
        sandbox_config: LocalSandboxConfig | None = None,
        lang: str = SupportedLanguage.PYTHON,
        workdir: str | None = "/sandbox",
        verbose: bool = False,
        stream: bool = False,
        image: str | None = None,
        dockerfile: str | None = None,
        keep_template: bool = False,
        commit_container: bool = False,
        container_id: str | None = None,
        runtime_configs: Mapping[str, Any] | None = None,
        env_vars: Mapping[str, str] | None = None,
        libraries: list[str] | None = None,
        default_timeout: float | None = 60,
        execution_timeout: float | None = None,
        session_timeout: float | None = None,
        skip_environment_setup: bool = False,
        encoding_errors: EncodingErrorsType = "strict",
        security_policy: SecurityPolicy | None = None,
        **kwargs: Any,
    ) -> None:
        if sys.platform == "win32":
            raise ValidationError("this backend needs Linux")
        others = {
            "image": image,
            "dockerfile": dockerfile,
            "keep_template": keep_template,
            "commit_container": commit_container,
            "container_id": container_id,
            "runtime_configs": runtime_configs,
        }
        if active := [name for name, value in others.items() if value]:
            raise ValueError(f"Native sandboxes do not support: {', '.join(active)}; use sandbox_config instead")
        if kwargs.keys() - {"network"}:
            raise TypeError(f"Unknown native sandbox options: {', '.join(sorted(kwargs))}")
        for name, value in (("default_timeout", default_timeout), ("execution_timeout", execution_timeout), ("session_timeout", session_timeout)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be finite and positive, or None")
        self.sandbox_config = sandbox_config or LocalSandboxConfig()
        super().__init__(
            engine=_engine_of(self.sandbox_config),
            lang=lang,
            workdir=workdir,
            verbose=verbose,
            stream=stream,
            env_vars={**self.sandbox_config.env, **(env_vars or {})},
            libraries=libraries,
            default_timeout=default_timeout,
            execution_timeout=execution_timeout,
            session_timeout=session_timeout,
            skip_environment_setup=skip_environment_setup,
            encoding_errors=encoding_errors,
            security_policy=security_policy,
            network=kwargs.get("network", "full" if self.sandbox_config.network == "host" else "none"),
        )
        self._output = self.sandbox_config.max_output_bytes
        self._most_copied = self.sandbox_config.max_artifact_bytes


def _engine_of(config: LocalSandboxConfig) -> Engine:
    """Return an engine that keeps a configuration, or raise ValidationError."""
    fixed = {
        "seccomp": (config.seccomp == SeccompPolicy(), "system calls are filtered by a list of the sandbox's own"),
        "python_executable": (config.python_executable == "/usr/bin/python3", "the sandbox has a Python of its own"),
        "cpu_time_limit": (config.cpu_time_limit is None, "use execution_timeout, which counts the time on the clock"),
        "file_size_limit": (config.file_size_limit is None, "the sandbox bounds all files together"),
        "open_files_limit": (config.open_files_limit is None, "the sandbox bounds processes and memory instead"),
    }
    for name, (kept, why) in fixed.items():
        if not kept:
            raise ValidationError(f"sandbox_config.{name} cannot be kept: {why}. Leave it out")
    engine = Engine()
    if config.memory_limit_bytes is not None:
        engine = engine.with_flags("--memory", str(config.memory_limit_bytes))
    for path in config.read_only_paths:
        if path not in DEFAULT_READ_ONLY_PATHS:
            engine = engine.with_flags("--mount", f"{path}:{path}")
    return engine
