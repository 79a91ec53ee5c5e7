"""What a language handler knows: how a language is run, installs libraries, and writes imports and comments."""

from __future__ import annotations

import base64
import io
import logging
import re
import shlex
import tarfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, Protocol

from llm_sandbox.data import ConsoleOutput, FileType, PlotOutput
from llm_sandbox.exceptions import CommandFailedError, PackageManagerError
from llm_sandbox.language_handlers.runtime_context import RuntimeContext
from llm_sandbox.security.package_validators import validate_package_name

_PLOT_SUFFIXES = {".png": FileType.PNG, ".svg": FileType.SVG, ".pdf": FileType.PDF, ".html": FileType.HTML}
_MAX_PLOTS = 1000
_MAX_PLOT_BYTES = 64 << 20


class PlotLibrary(Enum):
    """Libraries that draw plots."""

    MATPLOTLIB = "matplotlib"
    PLOTLY = "plotly"
    SEABORN = "seaborn"
    CHARTJS = "chartjs"
    D3JS = "d3js"
    JFREECHART = "jfreechart"
    XCHART = "xchart"
    ROOT = "root"
    GONUM_PLOT = "gonum_plot"
    GRUFF = "gruff"


@dataclass
class PlotDetectionConfig:
    """How plots of a language are captured. The code runs before and after the user's."""

    libraries: list[PlotLibrary]
    setup_code: str
    cleanup_code: str


@dataclass
class LanguageConfig:
    """A language. `{file}` in a command stands for the file with the code."""

    name: str
    file_extension: str
    execution_commands: list[str]
    package_manager: str | None
    is_support_library_installation: bool = True
    plot_detection: PlotDetectionConfig | None = None


class ContainerProtocol(Protocol):
    """What a handler needs of a session."""

    def execute_command(self, command: str, workdir: str | None = None) -> ConsoleOutput:
        """Run a command."""
        ...

    def get_archive(self, path: str) -> tuple[bytes, dict[str, Any]]:
        """Return a file or directory as a tar archive, and what it is."""
        ...

    def run(self, code: str, libraries: list[str] | None = None, timeout: float | None = 30, **kwargs: Any) -> ConsoleOutput:
        """Run code."""
        ...


class AbstractLanguageHandler(ABC):
    """The base class of language handlers: a subclass sets `config` and says how imports and comments are written."""

    config: LanguageConfig

    literals = r"(?!)"
    """A regular expression of the language's strings, in which nothing is a comment."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self.logger = logger or logging.getLogger(type(self).__module__)

    @property
    def name(self) -> str:
        """The name of the language."""
        return self.config.name

    @property
    def file_extension(self) -> str:
        """The extension of files with code, without a dot."""
        return self.config.file_extension

    @property
    def supported_plot_libraries(self) -> list[PlotLibrary]:
        """The libraries whose plots are captured."""
        return self.config.plot_detection.libraries if self.config.plot_detection else []

    @property
    def is_support_library_installation(self) -> bool:
        """Whether libraries can be installed."""
        return self.config.is_support_library_installation

    @property
    def is_support_plot_detection(self) -> bool:
        """Whether plots are captured."""
        return self.config.plot_detection is not None

    def get_execution_commands(self, code_file: str, runtime_context: RuntimeContext | None = None) -> list[str]:
        """Return the commands that run a file with code, in order."""
        if not self.config.execution_commands:
            raise CommandFailedError(self.config.name, 1, "No execution commands found")
        return [command.format(file=code_file) for command in self.config.execution_commands]

    def get_library_installation_command(self, library: str, runtime_context: RuntimeContext | None = None) -> str:
        """Return the command that installs a library."""
        if not self.config.package_manager:
            raise PackageManagerError(self.config.name)
        return f"{self.config.package_manager} {self._quoted(library)}"

    def _quoted(self, library: str) -> str:
        """Return the name for a shell, where `requests>=2` would write a file."""
        return shlex.quote(validate_package_name(library, self.config.name))

    @abstractmethod
    def get_import_patterns(self, module: str) -> str:
        """Return a regular expression of code that imports the module."""

    @staticmethod
    @abstractmethod
    def get_multiline_comment_patterns() -> str:
        """Return a regular expression of comments that may have several lines. Empty: there are none."""

    @staticmethod
    @abstractmethod
    def get_inline_comment_patterns() -> str:
        """Return a regular expression of comments that end with the line. Empty: there are none."""

    def filter_comments(self, code: str) -> str:
        """Return the code without comments. Strings and line numbers stay."""
        kinds = [
            re.compile(p, re.MULTILINE)
            for p in (self.literals, self.get_multiline_comment_patterns(), self.get_inline_comment_patterns())
            if p
        ]
        found = [kind.search(code) for kind in kinds]
        kept: list[str] = []
        position = 0
        while True:
            for index, kind in enumerate(kinds):
                match = found[index]
                while match and (match.start() < position or match.end() == match.start()):
                    match = kind.search(code, max(position, match.start() + 1))
                found[index] = match
            first = min((match for match in found if match), key=lambda match: match.start(), default=None)
            if first is None:
                return "".join(kept) + code[position:]
            kept.append(code[position : first.start()])
            kept.append(first.group() if first is found[0] else "\n" * first.group().count("\n"))
            position = first.end()

    def inject_plot_detection_code(self, code: str) -> str:
        """Return the code with what captures its plots: nothing in sandboxes of ours, which capture them without."""
        if self.config.plot_detection is None or not self.config.plot_detection.setup_code:
            return code
        return f"{self.config.plot_detection.setup_code}\n\n{code}"

    def extract_plots(self, container: ContainerProtocol, output_dir: str) -> list[PlotOutput]:
        """Return the pictures and pages in a directory of the container, by name."""
        found = container.execute_command(f"find {shlex.quote(output_dir)} -type f")
        if found.exit_code != 0:
            return []
        paths = sorted(path for path in found.stdout.splitlines() if PurePosixPath(path).suffix.lower() in _PLOT_SUFFIXES)
        if len(paths) > _MAX_PLOTS:
            self.logger.warning("There are %d plots in %s: only the first %d are returned", len(paths), output_dir, _MAX_PLOTS)
        plots: list[PlotOutput] = []
        for path in paths[:_MAX_PLOTS]:
            content = _read_file(container.get_archive(path)[0])
            if content is None:
                self.logger.warning("The plot %s is no file of at most %d bytes: it is not returned", path, _MAX_PLOT_BYTES)
                continue
            kind = _PLOT_SUFFIXES[PurePosixPath(path).suffix.lower()]
            plots.append(PlotOutput(format=kind, content_base64=base64.b64encode(content).decode("ascii")))
        return plots

    def run_with_artifacts(
        self,
        container: ContainerProtocol,
        code: str,
        libraries: list[str] | None = None,
        enable_plotting: bool = True,
        output_dir: str = "/tmp/sandbox_plots",
        timeout: float | None = 30,
        **kwargs: Any,
    ) -> tuple[ConsoleOutput, list[PlotOutput]]:
        """Run code, and return the result and the plots: those of the result, or else those in `output_dir`."""
        if not enable_plotting or not self.is_support_plot_detection:
            return container.run(code, libraries, timeout, **kwargs), []
        result = container.run(self.inject_plot_detection_code(code), libraries, timeout, **kwargs)
        plots: list[PlotOutput] | None = getattr(result, "plots", None)
        return result, self.extract_plots(container, output_dir) if plots is None else plots


def _read_file(archive: bytes) -> bytes | None:
    """Return the content of the one file in an archive that comes from a sandbox, or None if it has none that can be used."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            member = tar.next()
            if member is None or not member.isreg() or member.size > _MAX_PLOT_BYTES:
                return None
            file = tar.extractfile(member)
            return file.read() if file else None
    except tarfile.TarError:
        return None
