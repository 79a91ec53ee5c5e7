"""JavaScript."""

from __future__ import annotations

import logging
import re

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.language_handlers.base import AbstractLanguageHandler, LanguageConfig

_REGEX = r"(?:^|[=(,:;!&|?{}\[\n]|\breturn\b)[ \t]*/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*(?:\]|$))*(?:/|\\?$)"


class JavaScriptHandler(AbstractLanguageHandler):
    """How JavaScript is run and read."""

    literals = r'"(?:[^"\\\n]|\\[\s\S])*"|' r"'(?:[^'\\\n]|\\[\s\S])*'|`(?:[^`\\]|\\[\s\S])*`|" + _REGEX

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(logger)
        self.config = LanguageConfig(
            name=SupportedLanguage.JAVASCRIPT, file_extension="js", execution_commands=["node {file}"], package_manager="npm install"
        )

    def get_import_patterns(self, module: str) -> str:
        """Match import and export declarations and calls of import and require, also of files of the module."""
        name = re.escape(module.removeprefix("node:"))
        call = r"\b(?:import|require|getBuiltinModule|binding)\b\s*\("
        return rf"(?:\bfrom\b|\bimport\b|{call})\s*['\"`](?:node:)?{name}(?:/[^'\"`\n]*)?['\"`]"

    @staticmethod
    def get_multiline_comment_patterns() -> str:
        """Match /* */, or from /* to the end."""
        return r"/\*[\s\S]*?(?:\*/|\Z)"

    @staticmethod
    def get_inline_comment_patterns() -> str:
        """Match from // to the end of the line."""
        return r"//[^\n]*"
