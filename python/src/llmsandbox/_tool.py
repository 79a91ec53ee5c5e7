"""What a model is told of a tool that runs code, and of what its code did."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from llmsandbox._errors import InvalidError
from llmsandbox._results import RASTER_TYPES, Artifact, Cell, Chart, Outcome

MAX_CHART_TEXT = 8 << 10
MAX_LISTED = 50

_TITLES = {"python": "Python", "javascript": "JavaScript", "java": "Java", "cpp": "C++", "go": "Go", "r": "R", "ruby": "Ruby", "bash": "Bash"}


@dataclass(frozen=True)
class ToolLimits:
    """The most that a model gets of one call: characters of text, and images with their bytes in all."""

    text: int = 32 << 10
    images: int = 4
    image_bytes: int = 4 << 20


@dataclass(frozen=True)
class ToolOutput:
    """What a model is to get of a call: a text and images. `outcome` is what the code did; None if it did not run.

    All of it comes from code that nobody has checked: it can say anything.
    """

    text: str
    images: list[Artifact] = field(default_factory=list[Artifact])
    is_error: bool = False
    outcome: Outcome | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ToolCall:
    """The arguments that a model has given."""

    code: str
    libraries: list[str]


def title(language: str) -> str:
    """Return a language's name as people write it."""
    return _TITLES.get(language, language)


def description(language: str, stateful: bool, libraries: bool) -> str:
    """Return what a model is told of the tool."""
    kept = "Variables, imports and files stay for the next call" if stateful else "Files stay for the next call, and variables do not"
    text = f"Run {title(language)} code in a sandbox and get what it prints. {kept}."
    if stateful:
        text += " The value of the last expression is part of the output."
    if language in ("python", "r"):
        text += " Plots that the code shows come back as images with their data."
    if libraries:
        text += " Libraries that are missing can be named, and are installed first."
    return text


def parameters(language: str, libraries: bool) -> dict[str, object]:
    """Return the JSON schema of the tool's arguments."""
    properties: dict[str, object] = {"code": {"type": "string", "description": f"{title(language)} code"}}
    if libraries:
        about = "Libraries to install before the code runs, as their registry names them"
        properties["libraries"] = {"type": "array", "items": {"type": "string"}, "description": about}
    return {"type": "object", "properties": properties, "required": ["code"], "additionalProperties": False}


def parse_call(arguments: str | Mapping[str, object], libraries: bool) -> ToolCall:
    """Return a model's arguments. Fails with an InvalidError that says what is wrong with them."""
    given: object = arguments
    if isinstance(arguments, str):
        try:
            given = json.loads(arguments)
        except (ValueError, RecursionError) as e:
            raise InvalidError(f"the arguments are not JSON: {e}") from None
    if not isinstance(given, Mapping):
        raise InvalidError("the arguments are no JSON object")
    fields = cast("Mapping[str, object]", given)
    code, names = fields.get("code"), fields.get("libraries")
    if not isinstance(code, str):
        raise InvalidError('the arguments have no text "code"')
    wanted = cast("list[object]", [] if names is None else names)
    if not isinstance(names, list | None) or not all(isinstance(name, str) for name in wanted):
        raise InvalidError('"libraries" is not a list of names')
    if wanted and not libraries:
        raise InvalidError("libraries cannot be installed here: use those that are there")
    return ToolCall(code, cast("list[str]", wanted))


def refusal(error: Exception) -> ToolOutput:
    """Return what a model gets when its code was not run."""
    return ToolOutput(f"The code was not run: {error}", is_error=True)


def output_of(outcome: Outcome, limits: ToolLimits, note: str = "") -> ToolOutput:
    """Return what a model gets of code that was run."""
    parts = [note] if note else []
    if outcome.stdout:
        parts.append(_cut(outcome.stdout, limits.text // 2) + (" …" if outcome.stdout_truncated else ""))
    errors = outcome.stderr
    if isinstance(outcome, Cell):
        if outcome.text is not None:
            parts.append(_cut(outcome.text, limits.text // 2))
        if outcome.error is not None:
            errors += outcome.error.traceback or f"{outcome.error.name}: {outcome.error.message}"
    if errors:
        parts.append("stderr:\n" + _cut(errors, limits.text // 2))
    if not outcome.ok:
        code = f", exit code {outcome.exit_code}" if outcome.exit_code else ""
        parts.append(f"The code ended with status {outcome.status}{code}.{' ' + outcome.reason if outcome.reason else ''}")
    if isinstance(outcome, Cell) and outcome.state_lost:
        parts.append("The interpreter has ended: variables and imports are gone, and files are there.")
    images, listed = _made(outcome.artifacts, limits)
    parts += listed + [f"Left out: {reason}" for reason in outcome.artifacts_dropped[:MAX_LISTED]]
    text = "\n".join(part.rstrip("\n") for part in parts) or "The code has printed nothing."
    return ToolOutput(_cut(text, limits.text), images, not outcome.ok, outcome)


def _made(artifacts: list[Artifact], limits: ToolLimits) -> tuple[list[Artifact], list[str]]:
    """Return the images that the model gets, and lines about all that the code has made."""
    images: list[Artifact] = []
    lines: list[str] = []
    room, chart_room = limits.image_bytes, 4 * MAX_CHART_TEXT
    for artifact in artifacts[:MAX_LISTED]:
        line = f"{json.dumps(artifact.name, ensure_ascii=False)} ({artifact.mime}, {len(artifact.data)} bytes)"
        if artifact.mime in RASTER_TYPES:
            if len(images) < limits.images and len(artifact.data) <= room:
                images.append(artifact)
                room -= len(artifact.data)
                line += f", image {len(images)}"
            else:
                line += ", not shown: there are too many images, or they are too large"
        lines.append(line)
        if artifact.chart is not None:
            data = _chart_text(artifact.chart)
            if len(data) <= min(MAX_CHART_TEXT, chart_room):
                chart_room -= len(data)
                lines.append(f"its data: {data}")
            else:
                lines.append("its data is too long: print the values that you need")
    if len(artifacts) > MAX_LISTED:
        lines.append(f"{len(artifacts) - MAX_LISTED} more files or images are not listed")
    return images, lines


def _chart_text(chart: Chart) -> str:
    def full(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return {name: value for name, value in pairs if value not in ("", [], {}, False)}

    return json.dumps(dataclasses.asdict(chart, dict_factory=full), ensure_ascii=False, separators=(",", ":"), default=str)


def _cut(text: str, most: int) -> str:
    """Return the begin and the end of a text that is too long."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
