"""The wheel: what `pip install` gives to a user."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine())

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or ARCHITECTURE is None, reason="sandboxes of this machine need Linux on x86-64 or ARM64"
)


def build() -> Path:
    command = [str(ROOT / "scripts/wheels"), f"linux/{ARCHITECTURE}"]
    return ROOT / subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@pytest.fixture(scope="module")
def wheel() -> Path:
    return build()


def test_is_reproducible(wheel: Path) -> None:
    before = wheel.read_bytes()
    assert build() == wheel
    assert wheel.read_bytes() == before


def test_record_lists_all_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (record,) = (name for name in packed.namelist() if name.endswith(".dist-info/RECORD"))
        listed = {name: (digest, size) for name, digest, size in csv.reader(packed.read(record).decode().splitlines())}
        assert sorted(listed) == sorted(packed.namelist())
        del listed[record]
        for name, (digest, size) in listed.items():
            data = packed.read(name)
            want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={want}", str(len(data))), name


def test_licenses_of_what_is_linked(wheel: Path) -> None:
    """Each module of the binary has its license in the wheel, which the metadata lists."""
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (info,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        metadata = packed.read(f"{info}/METADATA").decode()
        listed = re.findall("^License-File: (.+)$", metadata, re.MULTILINE)
        licenses = {name.partition("/licenses/")[2]: packed.read(name) for name in names if name.startswith(f"{info}/licenses/")}
        with tempfile.NamedTemporaryFile() as binary:
            binary.write(packed.read("llmsandbox/_bin/llmsandbox"))
            binary.flush()
            modules = subprocess.run(["go", "version", "-m", binary.name], check=True, stdout=subprocess.PIPE, text=True).stdout
    linked = re.findall(r"^\tdep\t(\S+)\t(\S+)", modules, re.MULTILINE)
    assert len(linked) > 20 and sorted(licenses) == sorted(listed)
    for path, version in linked:
        of_module = [name for name in licenses if name.startswith(f"linked/{path}@{version}/")]
        assert any(re.search(r"(?i)/(licen[cs]e|copying)[^/]*$", name) for name in of_module), path
    assert b"The Go Authors" in licenses["linked/go/LICENSE"]
    assert b"Apache License" in licenses["LICENSE"]
    assert all(text.strip() for text in licenses.values())


def test_module_without_a_license_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "example.org" / "!free@v1.0.0" / "testdata").mkdir(parents=True)
    module = tmp_path / "example.org" / "!free@v1.0.0"
    for name in ("NOTICE", "license.go", "testdata/LICENSE"):
        (module / name).write_text("x")
    code = "import runpy; print(runpy.run_path('scripts/wheels', run_name='test')['linked_licenses']([('example.org/Free', 'v1.0.0')]))"

    def found() -> subprocess.CompletedProcess[str]:
        env = os.environ | {"GOMODCACHE": str(tmp_path)}
        return subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, text=True, capture_output=True)

    assert "example.org/Free@v1.0.0: no license was found" in found().stderr
    (module / "LICENSE").write_text("free")
    assert "'linked/example.org/Free@v1.0.0/LICENSE': b'free'" in found().stdout


def test_metadata_is_accepted_by_indexes(wheel: Path) -> None:
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel)], check=True)


def test_works_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True)
    pip = [str(tmp_path / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links", str(wheel.parent)]
    subprocess.run([*pip, "--only-binary", ":all:", "--pre", "llmsandbox"], check=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LLMSANDBOX_"))}
    env["PATH"] = "/usr/bin:/bin"  # without another llmsandbox

    def run(*command: str) -> str:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=env).stdout

    assert run(str(tmp_path / "bin/llmsandbox"), "version").startswith("llmsandbox ")
    page = (ROOT / "docs/python.md").read_text()
    first = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert run(str(tmp_path / "bin/python"), "-c", first[1]).startswith("42\n")
