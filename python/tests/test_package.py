"""The package as a whole: its names, what it imports and how it is written."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import llmsandbox

PYTHON = Path(__file__).parents[1]


def test_names() -> None:
    names: dict[str, object] = {}
    exec("from llmsandbox import *", names)
    del names["__builtins__"]
    assert {"Sandbox", "AsyncSandbox", "run", "run_async", "Error"} <= set(names) <= set(dir(llmsandbox))
    assert all(getattr(value, "__name__", None) == name for name, value in names.items())
    with pytest.raises(AttributeError, match="no_such_name"):
        llmsandbox.no_such_name  # type: ignore[attr-defined]  # pyright: ignore


@pytest.mark.parametrize("name", ["Sandbox", "Client", "Kernel", "Files", "Process", "Terminal", "Volumes"])
def test_asyncio_has_the_same(name: str) -> None:
    def members(kind: type) -> dict[str, str]:
        shown = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
        return {name: str(inspect.signature(value)) for name, value in shown.items() if inspect.isfunction(value)}

    def plain(members: dict[str, str]) -> dict[str, str]:
        return {
            name: text.replace("Async", "").replace("Generator[Event, None]", "Generator[Event, None, None]")
            for name, text in members.items()
        }

    assert plain(members(getattr(llmsandbox, f"Async{name}"))) == members(getattr(llmsandbox, name))


def test_blocking_client_is_written_from_the_asyncio_client() -> None:
    subprocess.run([sys.executable, str(PYTHON / "unasync.py"), "--check"], check=True)


def isolated(code: str) -> str:
    """Return what code prints in an interpreter that has this package and no other."""
    code = f"import sys; sys.path.insert(0, {str(PYTHON / 'src')!r}); {code}"
    return subprocess.run([sys.executable, "-S", "-c", code], text=True, stdout=subprocess.PIPE, check=True).stdout


def test_import_loads_little() -> None:
    loaded = isolated("import llmsandbox; print(*sys.modules)").split()
    assert "llmsandbox" in loaded
    assert not {"asyncio", "dataclasses", "inspect", "json", "socket", "ssl", "subprocess", "tempfile", "urllib.parse"} & set(loaded)


def test_use_needs_no_other_package() -> None:
    uses = "import llmsandbox; llmsandbox.Sandbox; llmsandbox.AsyncSandbox"
    loaded = isolated(f"{uses}; print(*(m for m in sys.modules if m.partition('.')[0] not in sys.stdlib_module_names))").split()
    assert {name.partition(".")[0] for name in loaded} == {"__main__", "llmsandbox"}
