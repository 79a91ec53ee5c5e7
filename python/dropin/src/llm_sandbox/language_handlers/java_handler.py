"""Java."""

from __future__ import annotations

import logging
import re

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.language_handlers.base import AbstractLanguageHandler, LanguageConfig


class JavaHandler(AbstractLanguageHandler):
    """How Java is run and read."""

    literals = r'"""(?:[^\\]|\\[\s\S])*?(?:"""|\Z)|"(?:[^"\\\n]|\\.)*"|' r"'(?:[^'\\\n]|\\.)*'"

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(logger)
        self.config = LanguageConfig(
            name=SupportedLanguage.JAVA,
            file_extension="java",
            execution_commands=["java {file}"],
            package_manager="mvn",
            is_support_library_installation=False,
        )

    def get_import_patterns(self, module: str) -> str:
        """Match imports of a package or class, and uses by its full name."""
        name = r"\s*\.\s*".join(re.escape(part) for part in module.split("."))
        imported = rf"\bimport\s+(?:static\s+)?{name}\s*[.;]"
        return rf"(?:{imported}|(?<![\w.]){name}\s*\.\s*\w)" if "." in module else imported

    @staticmethod
    def get_multiline_comment_patterns() -> str:
        """Match /* */, or from /* to the end."""
        return r"/\*[\s\S]*?(?:\*/|\Z)"

    @staticmethod
    def get_inline_comment_patterns() -> str:
        """Match from // to the end of the line."""
        return r"//[^\n]*"
