"""Sessions that return plots."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_sandbox import ArtifactSandboxSession, BackendCapabilities, ConsoleOutput, FileType, SandboxTimeoutError, SessionConfig, register_backend
from llm_sandbox.core.session_base import BaseSession
from llm_sandbox.exceptions import LanguageNotSupportPlotError

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"


@pytest.fixture(scope="module")
def session() -> Iterator[ArtifactSandboxSession]:
    with ArtifactSandboxSession() as opened:
        yield opened


def test_plots(session: ArtifactSandboxSession) -> None:
    result = session.run(PLOT + "print('done')", clear_plots=True)
    assert (result.stdout, result.stderr, result.exit_code) == ("done\n", "", 0)
    (plot,) = result.plots
    assert plot.format is FileType.PNG and base64.b64decode(plot.content_base64).startswith(b"\x89PNG")
    assert plot.width and plot.height and plot.dpi == 100


def test_libraries_that_plot(session: ArtifactSandboxSession) -> None:
    code = """
import matplotlib.pyplot as plt, pandas, plotly.express, seaborn
frame = pandas.DataFrame({"a": [1, 2], "b": [2, 1]})
seaborn.scatterplot(data=frame, x="a", y="b"); plt.savefig("plot.svg"); plt.close()
frame.plot(); plt.savefig("plot.pdf"); plt.close()
plotly.express.line(frame).show()
"""
    result = session.run(code, clear_plots=True)
    assert [plot.format for plot in result.plots] == [FileType.SVG, FileType.PDF, FileType.HTML], result.stderr


def test_plots_accumulate_until_cleared(session: ArtifactSandboxSession) -> None:
    assert len(session.run(PLOT, clear_plots=True).plots) == 1
    assert len(session.run(PLOT).plots) == 2
    assert len(session.run("print(1)").plots) == 2  # also in runs without plots
    session.clear_plots()
    assert session.run("print(1)").plots == []


def test_files_are_no_plots(session: ArtifactSandboxSession) -> None:
    result = session.run("open('artifacts/x.html', 'w').write('<p>x</p>')", clear_plots=True)
    assert result.plots == []


def test_errors_and_timeouts(session: ArtifactSandboxSession) -> None:
    result = session.run(PLOT + "1 / 0", clear_plots=True)
    assert result.exit_code == 1 and len(result.plots) == 1
    assert "line 4, in <module>" in result.stderr  # of the code as it was passed
    with pytest.raises(SandboxTimeoutError):
        session.run("while True: pass", timeout=0.5)


def test_future_imports(session: ArtifactSandboxSession) -> None:
    assert session.run("from __future__ import annotations\nprint(1)").stdout == "1\n"


def test_callbacks_and_attributes(session: ArtifactSandboxSession) -> None:
    pieces: list[str] = []
    session.run("print('shown')", on_stdout=pieces.append)
    assert "".join(pieces) == "shown\n"
    assert session.is_open and session.container.id and session.execute_command("pwd").stdout == "/sandbox\n"


def test_r() -> None:
    with ArtifactSandboxSession(lang="r") as session:
        result = session.run("plot(1:3)\nhist(c(1, 2, 2))")
    assert [plot.format for plot in result.plots] == [FileType.PNG, FileType.PNG], result.stderr


def test_languages_without_plots() -> None:
    with ArtifactSandboxSession(lang="javascript") as session, pytest.raises(LanguageNotSupportPlotError):
        session.run("console.log(1)")
    with ArtifactSandboxSession(lang="javascript", enable_plotting=False) as session:
        assert session.run("console.log(1)").stdout == "1\n"


def test_a_backend_of_ones_own(own_backends: None) -> None:
    given: list[dict[str, Any]] = []

    class Own(BaseSession):
        def __init__(self, **kwargs: Any) -> None:
            given.append(kwargs)
            super().__init__(SessionConfig(lang=kwargs["lang"]))

        def open(self) -> None:
            self.container = "own"
            super().open()

        def close(self) -> None:
            super().close()

        def run(self, code: str, *args: Any, **kwargs: Any) -> ConsoleOutput:
            return ConsoleOutput(stdout=f"own {code}")

        def execute_command(self, command: str, *args: Any, **kwargs: Any) -> ConsoleOutput:
            return ConsoleOutput(exit_code=1)

        def _handle_timeout(self) -> None: ...

        def _connect_to_existing_container(self, container_id: str) -> None: ...

        def _ensure_directory_exists(self, path: str) -> None: ...

        def _ensure_ownership(self, paths: list[str]) -> None: ...

        def _process_non_stream_output(self, output: Any) -> tuple[str, str]:
            return "", ""

        def _process_stream_output(self, output: Any, on_stdout: Any = None, on_stderr: Any = None) -> tuple[str, str]:
            return "", ""

    register_backend("artifact-test", Own, capabilities=BackendCapabilities(platforms=("linux",)))
    with ArtifactSandboxSession(backend="artifact-test") as session:
        result = session.run("code")
    assert (result.stdout, result.plots) == ("own code", [])
    assert given == [
        {
            "image": None,
            "dockerfile": None,
            "lang": "python",
            "keep_template": False,
            "commit_container": False,
            "verbose": False,
            "runtime_configs": None,
            "workdir": "/sandbox",
            "security_policy": None,
            "container_id": None,
        }
    ]


def test_saving_as_the_documentation_shows(session: ArtifactSandboxSession, tmp_path: Path) -> None:
    for number, plot in enumerate(session.run(PLOT, clear_plots=True).plots):
        (tmp_path / f"{number:06d}.{plot.format.value}").write_bytes(base64.b64decode(plot.content_base64))
    assert [path.name for path in tmp_path.iterdir()] == ["000000.png"]
