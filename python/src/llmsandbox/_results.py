"""What became of code: results, cells and what they have produced.

Everything in them comes from inside a sandbox and may be hostile. No method runs, unpacks or renders any of it.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from llmsandbox._json import MalformedError, Object

if TYPE_CHECKING:
    from PIL.Image import Image

RASTER_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
SHOWN_TYPES = (*RASTER_TYPES, "image/svg+xml")  # as an image element, where an SVG has no scripts and loads nothing


@dataclass(frozen=True)
class Axis:
    """One direction of a coordinate system. `scale` is "linear", "log", "category" or "date", or empty."""

    label: str = ""
    scale: str = ""
    categories: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Series:
    """A line, set of bars, cloud of points, pie and so on.

    `x`, `y` and `z` have numbers, strings or None, one per point. A histogram's x are the edges of its bins, a pie's x its
    labels. `z` are a heatmap's rows. `low` and `high` are the ends of error bars.
    """

    type: str
    label: str = ""
    x: list[object] = field(default_factory=list[object])
    y: list[object] = field(default_factory=list[object])
    z: list[object] = field(default_factory=list[object])
    low: list[object] = field(default_factory=list[object])
    high: list[object] = field(default_factory=list[object])


@dataclass(frozen=True)
class Axes:
    """One coordinate system of a chart."""

    title: str
    x: Axis
    y: Axis
    series: list[Series]


@dataclass(frozen=True)
class Chart:
    """The data of a plot. If `truncated`, it has more points or series than are kept."""

    title: str
    axes: list[Axes]
    truncated: bool = False


@dataclass(frozen=True)
class Form:
    """Another form of an artifact, such as a table's data beside its HTML."""

    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Artifact:
    """A plot, table, page or file that code has produced.

    `source` is what made it, such as "matplotlib" or "file". `chart` is the data of a plot, if it is known.
    """

    name: str
    mime: str
    data: bytes = field(repr=False)
    source: str = ""
    title: str = ""
    figure: int = 0
    width: int = 0
    height: int = 0
    dpi: float = 0
    chart: Chart | None = field(default=None, repr=False)
    also: list[Form] = field(default_factory=list[Form], repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the content to a file of this machine."""
        Path(path).write_bytes(self.data)

    def to_pil(self) -> Image:
        """Return the picture as an image of Pillow, which must be installed."""
        import io

        if self.mime not in RASTER_TYPES:
            raise ValueError(f"{self.name} is {self.mime}, which Pillow does not read: use .data or .save()")
        try:
            from PIL import Image
        except ImportError:
            raise ImportError("Artifact.to_pil needs Pillow: pip install pillow") from None
        formats = [kind.removeprefix("image/").upper() for kind in RASTER_TYPES]
        return Image.open(io.BytesIO(self.data), formats=formats)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        bundle: dict[str, object] = {"text/plain": repr(self)}
        if self.mime in SHOWN_TYPES:
            bundle["text/html"] = _picture(self)
        return bundle


@dataclass(frozen=True)
class Hint:
    """What may help code that failed. Programs can invent hints: check a library before you install it."""

    kind: str
    subject: str = ""


@dataclass(frozen=True)
class Finding:
    """What the server's policy names in the code."""

    rule: str
    severity: str
    reason: str
    code: str = ""
    file: str = ""
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class NetworkAttempt:
    """An attempt of code to reach a host."""

    host: str
    port: int
    allowed: bool
    protocol: str = ""
    refused: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a result and a cell have in common.

    `status` is "ok", "error", "timeout", "out_of_memory", "output_limit", "killed", "refused" or "setup_failed". `exit_code` is
    None if none was observed, for example after a signal. `duration` is in seconds.
    """

    status: str
    exit_code: int | None
    stdout: str
    stderr: str
    signal: str
    reason: str
    stdout_truncated: bool
    stderr_truncated: bool
    duration: float
    artifacts: list[Artifact]
    artifacts_dropped: list[str]
    network: list[NetworkAttempt]
    findings: list[Finding]
    hints: list[Hint]

    @property
    def ok(self) -> bool:
        """Whether the code ended by itself and without an error."""
        return self.status == "ok"

    @property
    def plots(self) -> list[Artifact]:
        """The artifacts that are pictures or charts."""
        return [a for a in self.artifacts if a.mime.startswith("image/") or a.chart is not None]

    @property
    def charts(self) -> list[Chart]:
        """The data of the plots, as far as it is known."""
        return [a.chart for a in self.artifacts if a.chart is not None]

    @property
    def files(self) -> list[Artifact]:
        """The artifacts that the code wrote to the directory "artifacts"."""
        return [a for a in self.artifacts if a.source == "file"]

    def __repr__(self) -> str:
        names = ("signal", "reason", "value", "error", "artifacts", "hints")
        shown = [f"status={self.status!r}", f"exit_code={self.exit_code!r}", f"stdout={self.stdout!r}", f"stderr={self.stderr!r}"]
        shown += [f"{name}={value!r}" for name in names if (value := getattr(self, name, None))]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return _html(self)


@dataclass(frozen=True, repr=False)
class Result(Outcome):
    """What became of a program. `cpu_time` is in seconds, and `peak_memory` in bytes.

    `not_enforced` names the controls that the server does not enforce.
    """

    cpu_time: float
    peak_memory: int
    sandbox_id: str
    backend: str
    language: str
    not_enforced: list[str]


@dataclass(frozen=True)
class CellError:
    """The exception that ended a cell."""

    name: str
    message: str
    traceback: str = field(default="", repr=False)


@dataclass(frozen=True, repr=False)
class Cell(Outcome):
    """What became of a cell of a kernel.

    `value` is that of the last expression by media type, "text/plain" among them. Types that are not text are in base64. If
    `state_lost`, what cells have defined is gone. `restarted` tells that the kernel's process had ended before this cell.
    """

    count: int
    value: Mapping[str, str]
    error: CellError | None
    interrupted: bool
    state_lost: bool
    restarted: bool

    @property
    def text(self) -> str | None:
        """The value of the last expression as plain text; None if there is none."""
        return self.value.get("text/plain")


@dataclass(frozen=True)
class Event:
    """Output of code that runs, or its end.

    `kind` is "stdout" or "stderr", and `text` what was written; or "done" for the last event, which has the `result`.

    Of a `Process`, `id` is where its output can go on. With `missing`, so many bytes before the next event of that kind are no longer
    kept.
    """

    kind: str
    text: str = ""
    result: Result | Cell | None = None
    id: str = ""
    missing: int = 0


# What can be shown of a result in a notebook.
MAX_SHOWN_TEXT = 64 << 10
MAX_SHOWN_PICTURES = 16 << 20


def _escape(text: str) -> str:
    import html

    cut = text if len(text) <= MAX_SHOWN_TEXT else text[:MAX_SHOWN_TEXT] + "\n…"
    return html.escape(cut)


def _picture(artifact: Artifact) -> str:
    """Return an image element. What it shows is data: scripts of a picture do not run there."""
    data = base64.b64encode(artifact.data).decode("ascii")
    return f'<img alt="{_escape(artifact.name)}" src="data:{artifact.mime};base64,{data}">'


def _html(outcome: Outcome) -> str:
    parts: list[str] = []
    if outcome.stdout:
        parts.append(f"<pre>{_escape(outcome.stdout)}</pre>")
    if outcome.stderr:
        parts.append(f'<pre style="color: #b00020">{_escape(outcome.stderr)}</pre>')
    if isinstance(outcome, Cell):
        if outcome.text is not None:
            parts.append(f"<pre>{_escape(outcome.text)}</pre>")
        if outcome.error is not None:
            parts.append(f'<pre style="color: #b00020">{_escape(outcome.error.traceback or outcome.error.message)}</pre>')
    room = MAX_SHOWN_PICTURES
    for artifact in outcome.artifacts:
        if artifact.mime in SHOWN_TYPES and len(artifact.data) <= room:
            room -= len(artifact.data)
            parts.append(_picture(artifact))
        else:
            parts.append(f"<p>{_escape(artifact.name)} ({_escape(artifact.mime)}, {len(artifact.data)} bytes)</p>")
    if not outcome.ok:
        code = "" if outcome.exit_code is None else f", exit code {outcome.exit_code}"
        parts.append(f"<p><b>{_escape(outcome.status)}</b>{code} {_escape(outcome.reason)}</p>")
    return "\n".join(parts)


def parse_result(o: Object) -> Result:
    """Return a result of the API."""
    return Result(
        **vars(_outcome(o)),
        cpu_time=o.number("cpu_ms") / 1000,
        peak_memory=o.integer("peak_memory_bytes"),
        sandbox_id=o.text("sandbox_id"),
        backend=o.text("backend"),
        language=o.text("language"),
        not_enforced=o.texts("not_enforced"),
    )


def parse_cell(o: Object) -> Cell:
    """Return a cell of the API."""
    error = o.object("error")
    return Cell(
        **vars(_outcome(o)),
        count=o.integer("count"),
        value=o.text_map("value"),
        error=None if error is None else CellError(error.text("name"), error.text("message"), error.text("traceback")),
        interrupted=o.flag("interrupted"),
        state_lost=o.flag("state_lost"),
        restarted=o.flag("restarted"),
    )


def _outcome(o: Object) -> Outcome:
    status, code = o.text("status"), o.integer_or_none("exit_code")
    if not status or (status == "ok" and code not in (0, None)):
        raise MalformedError("the server's answer cannot be used: a result has no status that fits its exit code")
    return Outcome(
        status=status,
        exit_code=code,
        stdout=o.text("stdout"),
        stderr=o.text("stderr"),
        signal=o.text("signal"),
        reason=o.text("reason"),
        stdout_truncated=o.flag("stdout_truncated"),
        stderr_truncated=o.flag("stderr_truncated"),
        duration=o.number("duration_ms") / 1000,
        artifacts=[_artifact(a) for a in o.objects("artifacts")],
        artifacts_dropped=o.texts("artifacts_dropped"),
        network=[_attempt(a) for a in o.objects("network")],
        findings=[_finding(f) for f in o.objects("findings")],
        hints=[Hint(h.text("kind"), h.text("subject")) for h in o.objects("hints")],
    )


def _artifact(o: Object) -> Artifact:
    chart = o.object("chart")
    return Artifact(
        name=o.text("name"),
        mime=o.text("mime"),
        data=_content(o),
        source=o.text("source"),
        title=o.text("title"),
        figure=o.integer("figure"),
        width=o.integer("width"),
        height=o.integer("height"),
        dpi=o.number("dpi"),
        chart=None if chart is None else _chart(chart),
        also=[Form(form.text("mime"), _content(form)) for form in o.objects("also")],
    )


def _content(o: Object) -> bytes:
    try:
        return base64.b64decode(o.text("data"), validate=True)
    except ValueError:
        raise MalformedError("the server's answer cannot be used: the content of an artifact is not base64") from None


def _chart(o: Object) -> Chart:
    return Chart(o.text("title"), [_axes(axes) for axes in o.objects("axes")], o.flag("truncated"))


def _axes(o: Object) -> Axes:
    series = [
        Series(s.text("type"), s.text("label"), s.values("x"), s.values("y"), s.values("z"), s.values("low"), s.values("high"))
        for s in o.objects("series")
    ]
    return Axes(o.text("title"), _axis(o.object("x")), _axis(o.object("y")), series)


def _axis(o: Object | None) -> Axis:
    return Axis() if o is None else Axis(o.text("label"), o.text("scale"), o.texts("categories"))


def _attempt(o: Object) -> NetworkAttempt:
    return NetworkAttempt(o.text("name"), o.integer("port"), o.flag("allowed"), o.text("protocol"), o.text("refused"), o.text("reason"))


def _finding(o: Object) -> Finding:
    return Finding(
        o.text("rule"), o.text("severity"), o.text("reason"), o.text("code"), o.text("file"), o.integer("line"), o.integer("column")
    )
