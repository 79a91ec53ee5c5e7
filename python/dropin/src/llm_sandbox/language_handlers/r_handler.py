"""R."""

from __future__ import annotations

import logging
import os
import re

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.language_handlers.base import AbstractLanguageHandler, LanguageConfig, PlotDetectionConfig, PlotLibrary
from llm_sandbox.language_handlers.runtime_context import RuntimeContext
from llm_sandbox.security.package_validators import validate_package_name

_CRAN = "https://cran.rstudio.com/"


class RHandler(AbstractLanguageHandler):
    """How R is run and read."""

    literals = (
        r'[rR]"-*\([\s\S]*?(?:\)-*"|\Z)|' r"[rR]'-*\([\s\S]*?(?:\)-*'|\Z)|" r'"(?:[^"\\]|\\[\s\S])*"|' r"'(?:[^'\\]|\\[\s\S])*'|`[^`\n]*`"
    )

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(logger)
        self.config = LanguageConfig(
            name=SupportedLanguage.R,
            file_extension="R",
            execution_commands=["Rscript {file}"],
            package_manager="install.packages",
            plot_detection=PlotDetectionConfig(libraries=[PlotLibrary.ROOT, PlotLibrary.PLOTLY], setup_code="", cleanup_code=""),
        )

    def get_library_installation_command(self, library: str, runtime_context: RuntimeContext | None = None) -> str:
        """Return the command, which installs from the mirror that the variable R_REPO names."""
        name = validate_package_name(library, self.config.name)
        mirror = os.environ.get("R_REPO", _CRAN)
        if not re.fullmatch(r"[A-Za-z0-9.:/_~%@+-]+", mirror):
            raise ValueError(f"R_REPO is {mirror!r}: set it to the URL of a CRAN mirror")
        return f"R -e \"install.packages('{name}', repos='{mirror}')\""

    def get_import_patterns(self, module: str) -> str:
        """Match the functions that load a package, and names with the package in front."""
        name = re.escape(module)
        call = r"(?<![\w.])(?:library|require|requireNamespace|loadNamespace|attachNamespace)\s*\(\s*(?:package\s*=\s*)?"
        return rf"(?:{call}['\"`]?{name}['\"`]?\s*[,)]|(?<![\w.]){name}\s*:::?)"

    @staticmethod
    def get_multiline_comment_patterns() -> str:
        """Return nothing: R has none."""
        return ""

    @staticmethod
    def get_inline_comment_patterns() -> str:
        """Match from # to the end of the line."""
        return r"#[^\n]*"
