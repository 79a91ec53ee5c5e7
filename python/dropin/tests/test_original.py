"""Names, signatures, defaults and texts are those of the release that original.json describes, but for the differences that are meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import describe_original
import pytest

ORIGINAL: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("original.json").read_text())["modules"]

MEANT = {
    "*: parameter *backend=<SandboxBackend.DOCKER: 'docker'>": "without a backend, code runs on this machine where it can",
    "core.session_base.GO_*: AttributeError": "the engine sets languages up",
    "core.session_base.PYTHON_*: AttributeError": "the engine sets languages up",
    "core.mixins.CLEANUP_THREAD_TIMEOUT: *": "the engine ends what takes too long",
    "*.*ContainerAPI: AttributeError": "no session uses the client library of an engine",
    "docker.EXPECTED_DEMUX_OUTPUT_LENGTH: *": "no session uses the client library of an engine",
    "kubernetes.KUBERNETES_*: *": "no session uses the client library of an engine",
    "kubernetes.POD_STARTUP_TIMEOUT: *": "the engine waits for pods",
    "kubernetes.SH_SHELL: *": "commands have a shell anyway",
    "interactive.RESULT_POLL_INTERVAL: *": "results are not polled for",
    "interactive.RUNTIME_START_TIMEOUT: *": "the engine starts kernels",
    "language_handlers.*_PLOT_DETECTION_CODE: *": "the engine captures plots, without code in front of the user's",
    "pool.base.resolve_default_image: *": "the engine knows its images",
    "pool.kubernetes_pool.NOT_FOUND_ERROR_CODE: *": "no session uses the client library of an engine",
    "mcp_server.const.LANGUAGE_RESOURCES: *": "versions are those of this machine or image",
    "mcp_server.server.*: AttributeError": "the command is the server",
    "security.seccomp.compile_seccomp: *": "the engine has its own filter of system calls",
    "windows_mxc.*": "the backend exists by name only",
    "wsl2_bubblewrap.*": "the backend exists by name only",
}
"""Where this package differs, as differences() names it, and why."""


@pytest.mark.parametrize("module", ORIGINAL)
def test_module(module: str) -> None:
    found = [line for line in differences(module) if not any(fnmatchcase(line, pattern) for pattern in MEANT)]
    assert not found, "\n".join(found)


def test_meant_differences_exist() -> None:
    found = [line for module in ORIGINAL for line in differences(module)]
    assert not [pattern for pattern in MEANT if not any(fnmatchcase(line, pattern) for line in found)]


def differences(module: str) -> Iterator[str]:
    """Name what the original has in a module and this package has not, or otherwise. What it has besides is no difference."""
    here: dict[str, dict[str, Any]] = {}
    for name, there in ORIGINAL[module].items():
        where = f"{module}.{name}".lstrip(".")
        try:
            value = getattr(describe_original.module_named(module), name)
        except (AttributeError, ImportError) as error:
            yield f"{where}: {type(error).__name__}"
            continue
        if "from" not in there:
            here[name] = describe_original.describe(value, value.__module__ if hasattr(value, "__module__") else "")
            yield from differ(where, there, here[name])


def differ(where: str, there: dict[str, Any], here: dict[str, Any]) -> Iterator[str]:
    for key, value in there.items():
        mine = here.get(key)
        if key == "call":
            yield from differ_in_call(where, value, mine)
        elif key == "methods":
            theirs: dict[str, list[str]] = value
            ours: dict[str, list[str]] = mine or {}
            for name, call in theirs.items():
                yield from differ_in_call(f"{where}.{name}", call, ours.get(name))
        elif key in ("bases", "properties"):
            yield from (f"{where}: {key} without {name}" for name in value if name not in (mine or ()))
        elif key in ("fields", "members"):
            those: dict[str, Any] = value
            these: dict[str, Any] = mine or {}
            yield from (f"{where}.{name}: {those[name]} is {these.get(name)}" for name in those if those[name] != these.get(name))
        elif mine != value:
            yield f"{where}: {key} {value} is {mine}"


def differ_in_call(where: str, there: list[str], here: list[str] | None) -> Iterator[str]:
    if here is None:
        yield f"{where}: not there"
        return
    positional = [text for text in here if not text.startswith("*")]
    for index, text in enumerate(there):
        if text.startswith("*args ") or text.startswith("**"):
            fits = any(mine.startswith(text[:2]) for mine in here)
        elif text.startswith("*"):
            fits = text in here or text[1:] in here
        else:
            fits = index < len(positional) and positional[index] == text
        if not fits:
            yield f"{where}: parameter {text}"
    names = {text.lstrip("*").partition("=")[0] for text in there}
    for text in here:
        if "=" not in text and not text.startswith(("*args ", "**")) and text.lstrip("*") not in names:
            yield f"{where}: needs {text}"
