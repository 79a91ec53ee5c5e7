"""Whether this package shares its directory with llm-sandbox, whose files have the same names."""

from __future__ import annotations

from pathlib import Path


def check_alone(package: Path) -> None:
    """Raise ImportError if llm-sandbox is installed into the same directory: the files are then a mixture of both."""
    if any(package.parent.glob("llm_sandbox-*.dist-info")):
        raise ImportError(
            f"llm-sandbox and llmsandbox-dropin are both installed in {package.parent}, and overwrite each other's files: "
            "run pip uninstall --yes llm-sandbox llmsandbox-dropin, and then install llmsandbox-dropin again"
        )
