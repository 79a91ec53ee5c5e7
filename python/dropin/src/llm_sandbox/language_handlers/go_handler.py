"""Go."""

from __future__ import annotations

import logging
import re

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.language_handlers.base import AbstractLanguageHandler, LanguageConfig


class GoHandler(AbstractLanguageHandler):
    """How Go is run and read."""

    literals = r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|' r"'(?:[^'\\\n]|\\.)*'"

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(logger)
        self.config = LanguageConfig(
            name=SupportedLanguage.GO, file_extension="go", execution_commands=["go run {file}"], package_manager="go get"
        )

    def get_import_patterns(self, module: str) -> str:
        """Match imports of a package, one below it, or one whose path ends with it, alone or in a list."""
        path = rf"[\"`](?:[^\"`\n]*/)?{re.escape(module)}(?:/[^\"`\n]*)?[\"`]"
        return rf"\bimport\s*(?:\([^()]*?|(?:[\w.]+\s+)?){path}"

    @staticmethod
    def get_multiline_comment_patterns() -> str:
        """Match /* */, or from /* to the end."""
        return r"/\*[\s\S]*?(?:\*/|\Z)"

    @staticmethod
    def get_inline_comment_patterns() -> str:
        """Match from // to the end of the line."""
        return r"//[^\n]*"
