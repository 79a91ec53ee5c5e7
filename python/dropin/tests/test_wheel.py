"""The wheel: what `pip install` gives to a user."""

from __future__ import annotations

import email
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel() -> Path:
    return ROOT / subprocess.run([str(ROOT / "scripts/wheels"), "dropin"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def test_has_the_package_and_what_installers_need(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (metadata,) = (email.message_from_bytes(packed.read(name)) for name in names if name.endswith(".dist-info/METADATA"))
    source = ROOT / "python/dropin/src"
    assert {str(path.relative_to(source)) for path in source.glob("llm_sandbox/**/*.py")} | {"llm_sandbox/py.typed"} <= set(names)
    assert f"llmsandbox-dropin=={metadata['Version']}\n" in (ROOT / "docs/from-llm-sandbox.md").read_text()
    assert metadata["Requires-Dist"] == f"llmsandbox=={metadata['Version']}"
    assert metadata.get_all("Provides-Extra") == ["docker", "podman", "k8s", "mcp-docker", "mcp-podman", "mcp-k8s"]


def test_metadata_is_accepted_by_indexes(wheel: Path) -> None:
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel)], check=True)


def test_old_install_lines_work(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True)
    pip = [str(tmp_path / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, f"{wheel}[docker,podman,k8s,mcp-docker,mcp-podman,mcp-k8s]"], check=True)
