"""Gives artifact sessions the plots that the sandbox captures, in place of those that code in front of the user's would."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from llm_sandbox import ConsoleOutput, FileType, PlotOutput

import llmsandbox

if TYPE_CHECKING:
    from llmsandbox_backend._session import LlmsandboxSession

FORMATS = {
    "image/png": FileType.PNG,
    "image/jpeg": FileType.JPEG,
    "image/svg+xml": FileType.SVG,
    "application/pdf": FileType.PDF,
    "text/html": FileType.HTML,
}
MARK = "/tmp/sandbox_plots/mark"  # `clear_plots` of artifact sessions removes all that is in this directory


def capture_plots(session: LlmsandboxSession) -> None:
    """Have the language handler of a session return the plots of its results, and those of earlier ones until they are cleared."""
    plots: list[PlotOutput] = []

    def run_with_artifacts(
        container: LlmsandboxSession,
        code: str,
        libraries: list[str] | None = None,
        enable_plotting: bool = True,
        output_dir: str = "",
        timeout: float | None = None,
        **kwargs: Any,
    ) -> tuple[ConsoleOutput, list[PlotOutput]]:
        if plots and not is_marked(container):
            plots.clear()
        result = container.run(code, libraries, timeout, **kwargs)
        if not enable_plotting:
            return result, []
        found = [plot for plot in map(plot_of, container.artifacts) if plot is not None]
        if found:
            container.container.files.write(MARK, "")
            plots.extend(found)
        return result, list(plots)

    setattr(session.language_handler, "run_with_artifacts", run_with_artifacts)


def is_marked(session: LlmsandboxSession) -> bool:
    try:
        session.container.files.stat(MARK)
    except llmsandbox.SandboxFileNotFoundError:
        return False
    return True


def plot_of(artifact: llmsandbox.Artifact) -> PlotOutput | None:
    """Return the plot that an artifact is, or None if it is a table, or a file that code wrote itself."""
    kind = FORMATS.get(artifact.mime)
    if kind is None or artifact.source == "file":
        return None
    content = base64.b64encode(artifact.data).decode("ascii")
    return PlotOutput(kind, content, artifact.width or None, artifact.height or None, round(artifact.dpi) or None)
