"""Python."""

from __future__ import annotations

import io
import logging
import re
import shlex
import tokenize

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.language_handlers.base import AbstractLanguageHandler, LanguageConfig, PlotDetectionConfig, PlotLibrary
from llm_sandbox.language_handlers.runtime_context import RuntimeContext

_BLANK = r"(?:[ \t\f]|\\\n)"


class PythonHandler(AbstractLanguageHandler):
    """How Python is run and read."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(logger)
        self.config = LanguageConfig(
            name=SupportedLanguage.PYTHON,
            file_extension="py",
            execution_commands=["python {file}"],
            package_manager="pip install",
            plot_detection=PlotDetectionConfig(
                libraries=[PlotLibrary.MATPLOTLIB, PlotLibrary.PLOTLY, PlotLibrary.SEABORN], setup_code="", cleanup_code=""
            ),
        )

    def get_execution_commands(self, code_file: str, runtime_context: RuntimeContext | None = None) -> list[str]:
        """Return the command, with the session's interpreter if it names one."""
        if runtime_context and runtime_context.python_executable_path:
            return [f"{runtime_context.python_executable_path} {code_file}"]
        return super().get_execution_commands(code_file)

    def get_library_installation_command(self, library: str, runtime_context: RuntimeContext | None = None) -> str:
        """Return the command, with the session's pip and its cache if it names them."""
        context = runtime_context
        if context and context.pip_executable_path and context.pip_cache_dir:
            return f"{context.pip_executable_path} install {self._quoted(library)} --cache-dir {shlex.quote(context.pip_cache_dir)}"
        return super().get_library_installation_command(library)

    def get_import_patterns(self, module: str) -> str:
        """Match import statements, also of submodules and in lists, and the functions that import a module by name."""
        name = re.escape(module)
        statement = (
            rf"import{_BLANK}+(?:[\w.]+{_BLANK}*(?:as{_BLANK}+\w+{_BLANK}*)?,{_BLANK}*)*{name}(?!\w)"
            rf"|from{_BLANK}+{name}(?:\.[\w.]+)?{_BLANK}+import\b"
        )
        parent, _, last = module.rpartition(".")
        if parent:
            statement += rf"|from{_BLANK}+{re.escape(parent)}{_BLANK}+import\b[^\n;]*\b{re.escape(last)}\b"
        call = rf"\b(?:__import__|import_module)\s*\(\s*(?:name\s*=\s*)?[bru]*['\"]{name}(?!\w)"
        return rf"(?:(?:^|(?<!\\)\n|[;:]){_BLANK}*(?:{statement})|{call})"

    @staticmethod
    def get_multiline_comment_patterns() -> str:
        """Return nothing: strings that stand alone are strings."""
        return ""

    @staticmethod
    def get_inline_comment_patterns() -> str:
        """Match from # to the end of the line."""
        return r"#[^\n]*"

    def filter_comments(self, code: str) -> str:
        """Return the code without comments, as the tokenizer of Python finds them. After something that it cannot read, all stays.

        Lines end with \\n, whatever they ended with.
        """
        lines = io.StringIO(code, newline=None).readlines()
        comments: list[tokenize.TokenInfo] = []
        try:
            comments.extend(token for token in tokenize.generate_tokens(iter([*lines, ""]).__next__) if token.type == tokenize.COMMENT)
        except (tokenize.TokenError, SyntaxError):
            pass
        for token in comments:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column] + lines[row - 1][column + len(token.string) :]
        return "".join(lines)
