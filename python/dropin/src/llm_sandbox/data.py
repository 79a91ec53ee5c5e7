"""What runs and commands return."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

StreamCallback = Callable[[str], None]
"""Is called with each piece of the output, in order, while the program runs."""


class FileType(Enum):
    """The format of a plot or file."""

    PNG = "png"
    JPEG = "jpeg"
    PDF = "pdf"
    SVG = "svg"
    CSV = "csv"
    JSON = "json"
    TXT = "txt"
    HTML = "html"


@dataclass(frozen=True)
class PlotOutput:
    """A plot that the code has made. It comes from inside the sandbox: treat it as you would a file of a stranger."""

    format: FileType
    content_base64: str
    width: int | None = None
    height: int | None = None
    dpi: int | None = None


@dataclass(frozen=True)
class ConsoleOutput:
    """The output and the exit code of a run or command."""

    exit_code: int = 0
    stderr: str = ""
    stdout: str = ""

    def text(self) -> str:
        """Return the standard output. Deprecated: use `stdout`."""
        warnings.warn(
            "The 'text' property is deprecated and will be removed in a future version. Use 'stdout' attribute directly instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.stdout

    def success(self) -> bool:
        """Return whether the exit code is 0."""
        return self.exit_code == 0

    def to_json(self, include_plots: bool = False) -> str:
        """Return the fields as JSON, with the plots only if asked for, since these are long."""
        fields = asdict(self)
        if not include_plots:
            fields.pop("plots", None)
        return json.dumps(fields, indent=2, default=_plain)


@dataclass(frozen=True)
class ExecutionResult(ConsoleOutput):
    """The result of a run in an artifact session: its plots, too."""

    plots: list[PlotOutput] = field(default_factory=list[PlotOutput])


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{type(value).__name__} is not JSON serializable")
