"""The package as a whole: its names, what it imports, and where it cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import llm_sandbox
from llm_sandbox._alone import check_alone

SUPERSET = {
    "InteractiveSettings",
    "NotOpenSessionError",
    "RestrictedModule",
    "SandboxTimeoutError",
    "SecurityPolicyViolation",
    "get_security_policy",
}


def test_names() -> None:
    names: dict[str, object] = {}
    exec("from llm_sandbox import *", names)
    assert set(llm_sandbox.__all__) <= set(names)
    assert set(llm_sandbox.__all__) >= SUPERSET
    assert sorted(llm_sandbox.__all__) == llm_sandbox.__all__


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, check=True).stdout


REFUSE_CLIENTS = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('docker', 'kubernetes', 'podman', 'mcp'):
            raise ImportError(f'{name} is broken')

sys.meta_path.insert(0, Refuse())
"""


def test_import_needs_no_client_of_an_engine() -> None:
    code = f"{REFUSE_CLIENTS}\nimport llm_sandbox, llm_sandbox.k8s_utils\nprint(len(llm_sandbox.list_backends()))"
    assert run(code) == "8\n"


def test_is_not_mixed_with_the_original(tmp_path: Path) -> None:
    package = tmp_path / "llm_sandbox"
    package.mkdir()
    (tmp_path / "llmsandbox_dropin-0.1.0.dist-info").mkdir()
    check_alone(package)
    (tmp_path / "llm_sandbox-0.3.46.dist-info").mkdir()
    with pytest.raises(ImportError, match="overwrite each other's files: run pip uninstall"):
        check_alone(package)
