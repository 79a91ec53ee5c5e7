"""Ruby."""

from __future__ import annotations

import logging
import re

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.language_handlers.base import AbstractLanguageHandler, LanguageConfig

_REGEX = r"(?:^|[=(,;!&|?{}\[\n]|\b(?:if|unless|when|and|or|not|return)\b)[ \t]*/(?:[^/\\\n]|\\.)+/|\?#"


class RubyHandler(AbstractLanguageHandler):
    """How Ruby is run and read."""

    literals = r'"(?:[^"\\]|\\[\s\S])*"|' r"'(?:[^'\\]|\\[\s\S])*'|`(?:[^`\\]|\\[\s\S])*`|" + _REGEX

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(logger)
        self.config = LanguageConfig(
            name=SupportedLanguage.RUBY, file_extension="rb", execution_commands=["ruby {file}"], package_manager="gem install"
        )

    def get_import_patterns(self, module: str) -> str:
        """Match require, require_relative, load and autoload of a library or a file of it."""
        call = r"(?:\b(?:require|require_relative|load)\b|\bautoload\s*\(?\s*:\w+\s*,)"
        return rf"{call}\s*\(?\s*['\"]{re.escape(module)}(?:\.rb)?(?:/[^'\"\n]*)?['\"]"

    @staticmethod
    def get_multiline_comment_patterns() -> str:
        """Match from a line =begin to a line =end."""
        return r"^=begin\b[\s\S]*?(?:^=end\b[^\n]*|\Z)"

    @staticmethod
    def get_inline_comment_patterns() -> str:
        """Match from # to the end of the line."""
        return r"#[^\n]*"
