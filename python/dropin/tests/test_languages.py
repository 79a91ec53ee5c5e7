"""Language handlers: commands, comments and plots."""

from __future__ import annotations

import base64
import io
import logging
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

from llm_sandbox.core.config import SessionConfig
from llm_sandbox.data import ConsoleOutput, ExecutionResult, FileType, PlotOutput
from llm_sandbox.exceptions import CommandFailedError, LanguageNotSupportedError, PackageManagerError, ValidationError
from llm_sandbox.language_handlers import AbstractLanguageHandler, LanguageConfig, PlotDetectionConfig, PlotLibrary
from llm_sandbox.language_handlers.factory import LanguageHandlerFactory
from llm_sandbox.language_handlers.runtime_context import RuntimeContext

CONTEXT = RuntimeContext("/srv/code", "/venv/bin/python", "/venv/bin/pip", "/cache")


class Lisp(AbstractLanguageHandler):
    """A language that this package does not know."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(logger)
        plots = PlotDetectionConfig([PlotLibrary.GRUFF], setup_code="(setup)", cleanup_code="")
        self.config = LanguageConfig("lisp", "lisp", ["sbcl --script {file}"], "ql install", plot_detection=plots)

    def get_import_patterns(self, module: str) -> str:
        return rf"\(require {module}\)"

    @staticmethod
    def get_multiline_comment_patterns() -> str:
        return r"#\|[\s\S]*?\|#"

    @staticmethod
    def get_inline_comment_patterns() -> str:
        return r";.*$"


@pytest.fixture
def lisp(monkeypatch: pytest.MonkeyPatch) -> Iterator[AbstractLanguageHandler]:
    monkeypatch.setattr(LanguageHandlerFactory, "_handlers", dict(LanguageHandlerFactory._handlers))
    LanguageHandlerFactory.register_handler("Lisp", Lisp)
    yield LanguageHandlerFactory.create_handler("LISP")


@pytest.mark.parametrize(
    ("language", "extension", "plain", "in_context"),
    [
        ("python", "py", ["python F"], ["/venv/bin/python F"]),
        ("java", "java", ["java F"], ["java F"]),
        ("javascript", "js", ["node F"], ["node F"]),
        ("cpp", "cpp", ["g++ -std=c++17 -o /tmp/a.out F", "/tmp/a.out"], ["g++ -std=c++17 -o /srv/code/a.out F", "/srv/code/a.out"]),
        ("go", "go", ["go run F"], ["go run F"]),
        ("ruby", "rb", ["ruby F"], ["ruby F"]),
        ("r", "R", ["Rscript F"], ["Rscript F"]),
    ],
)
def test_commands(language: str, extension: str, plain: list[str], in_context: list[str]) -> None:
    handler = LanguageHandlerFactory.create_handler(language.upper())
    assert (handler.name, handler.file_extension) == (language, extension)
    assert handler.get_execution_commands("F") == plain
    assert handler.get_execution_commands("F", CONTEXT) == in_context


@pytest.mark.parametrize(
    ("language", "library", "plain", "in_context"),
    [
        ("python", "numpy", "pip install numpy", "/venv/bin/pip install numpy --cache-dir /cache"),
        ("python", "a>=1,<2", "pip install 'a>=1,<2'", "/venv/bin/pip install 'a>=1,<2' --cache-dir /cache"),
        ("java", "g:a:1", "mvn g:a:1", "mvn g:a:1"),
        ("javascript", "@s/a@1", "npm install @s/a@1", "npm install @s/a@1"),
        ("cpp", "g++", "apt-get install g++", "apt-get install g++ -o Dir::Cache=/srv/code/apt-cache"),
        ("go", "example.com/a@v1", "go get example.com/a@v1", "go get example.com/a@v1"),
        ("ruby", "rack", "gem install rack", "gem install rack"),
    ],
)
def test_installation_commands(language: str, library: str, plain: str, in_context: str) -> None:
    handler = LanguageHandlerFactory.create_handler(language)
    assert handler.get_library_installation_command(library) == plain
    assert handler.get_library_installation_command(library, CONTEXT) == in_context
    assert handler.is_support_library_installation == (language != "java")
    with pytest.raises(ValidationError):
        handler.get_library_installation_command("a; id")


def test_mirror_of_r(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = LanguageHandlerFactory.create_handler("r")
    monkeypatch.delenv("R_REPO", raising=False)
    assert handler.get_library_installation_command("zoo") == "R -e \"install.packages('zoo', repos='https://cran.rstudio.com/')\""
    monkeypatch.setenv("R_REPO", "https://mirror.example.org/cran")
    assert "repos='https://mirror.example.org/cran'" in handler.get_library_installation_command("zoo")
    monkeypatch.setenv("R_REPO", "x'); system('id")
    with pytest.raises(ValueError, match="set it to the URL of a CRAN mirror"):
        handler.get_library_installation_command("zoo")


def test_plot_libraries() -> None:
    libraries = {
        name: [library.value for library in LanguageHandlerFactory.create_handler(name).supported_plot_libraries]
        for name in LanguageHandlerFactory.get_supported_languages()
    }
    assert libraries == {
        **{"python": ["matplotlib", "plotly", "seaborn"], "javascript": [], "java": [], "cpp": [], "go": [], "ruby": []},
        "r": ["root", "plotly"],
    }
    assert LanguageHandlerFactory.create_handler("python").inject_plot_detection_code("x = 1") == "x = 1"


def test_unknown_language() -> None:
    with pytest.raises(LanguageNotSupportedError, match="^Language Lisp is not supported$"):
        LanguageHandlerFactory.create_handler("Lisp")


def test_registered_language(lisp: AbstractLanguageHandler) -> None:
    assert isinstance(lisp, Lisp) and lisp.get_execution_commands("F", CONTEXT) == ["sbcl --script F"]
    assert "lisp" in LanguageHandlerFactory.get_supported_languages() and SessionConfig(lang="Lisp").lang == "lisp"
    assert lisp.filter_comments('(a) ; b\n#| c\nd |#(e)\n"f ; g"') == '(a) \n\n(e)\n"f '
    assert lisp.inject_plot_detection_code("(plot)") == "(setup)\n\n(plot)"
    assert lisp.get_library_installation_command("cl-ppcre") == "ql install cl-ppcre"


def test_handlers_that_lack_something(lisp: AbstractLanguageHandler) -> None:
    lisp.config = LanguageConfig("lisp", "lisp", [], None)
    with pytest.raises(CommandFailedError, match="Command lisp failed with exit code 1:\nNo execution commands found"):
        lisp.get_execution_commands("F")
    with pytest.raises(PackageManagerError, match="Package manager lisp not found"):
        lisp.get_library_installation_command("a")
    LanguageHandlerFactory.register_handler("none", str)  # type: ignore[arg-type]  # pyright: ignore
    with pytest.raises(TypeError, match="is not a subclass of AbstractLanguageHandler"):
        LanguageHandlerFactory.create_handler("none")


class Container:
    """A container with the files that it is given, as a backend of somebody else has one."""

    def __init__(self, files: dict[str, bytes], result: ConsoleOutput | None = None) -> None:
        self.files, self.result = files, result or ConsoleOutput(stdout="ran")
        self.ran: list[tuple[str, Any, Any, dict[str, Any]]] = []

    def execute_command(self, command: str, workdir: str | None = None) -> ConsoleOutput:
        assert command == "find '/tmp/my plots' -type f"
        return ConsoleOutput(stdout="".join(f"{path}\n" for path in self.files)) if self.files else ConsoleOutput(exit_code=1)

    def get_archive(self, path: str) -> tuple[bytes, dict[str, Any]]:
        return self.files[path], {}

    def run(self, code: str, libraries: list[str] | None = None, timeout: float | None = 30, **kwargs: Any) -> ConsoleOutput:
        self.ran.append((code, libraries, timeout, kwargs))
        return self.result


def archive(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.size, member.linkname = kind, len(content), "/etc/passwd" if kind != tarfile.REGTYPE else ""
        tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def test_plots_of_containers_of_others(lisp: AbstractLanguageHandler) -> None:
    container = Container({"/p/2.SVG": archive("2.SVG", b"<svg/>"), "/p/1.png": archive("1.png", b"png"), "/p/note.txt": b""})
    result, plots = lisp.run_with_artifacts(container, "(plot)", ["a"], output_dir="/tmp/my plots", timeout=5, on_stdout=print)
    assert result.stdout == "ran" and container.ran == [("(setup)\n\n(plot)", ["a"], 5, {"on_stdout": print})]
    assert plots == [PlotOutput(FileType.PNG, base64.b64encode(b"png").decode()), PlotOutput(FileType.SVG, "PHN2Zy8+")]


def test_plots_that_a_result_has_are_taken_from_it(lisp: AbstractLanguageHandler) -> None:
    plot = PlotOutput(FileType.PNG, "")
    container = Container({"/p/1.png": archive("1.png", b"png")}, ExecutionResult(plots=[plot]))
    assert lisp.run_with_artifacts(container, "(plot)")[1] == [plot]
    assert lisp.run_with_artifacts(container, "(plot)", enable_plotting=False)[1] == []
    assert [code for code, *_ in container.ran] == ["(setup)\n\n(plot)", "(plot)"]


@pytest.mark.parametrize("content", [archive("1.png", kind=tarfile.SYMTYPE), archive("1.png", kind=tarfile.FIFOTYPE), b"", b"x" * 2000])
def test_archives_without_a_file(lisp: AbstractLanguageHandler, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assert lisp.extract_plots(Container({"/p/1.png": content}), "/tmp/my plots") == []
    assert "The plot /p/1.png is no file of at most" in caplog.text
    assert lisp.extract_plots(Container({}), "/tmp/my plots") == []
