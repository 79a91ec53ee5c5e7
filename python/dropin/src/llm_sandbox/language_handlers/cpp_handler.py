"""C++."""

from __future__ import annotations

import logging
import re
import shlex

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.language_handlers.base import AbstractLanguageHandler, LanguageConfig
from llm_sandbox.language_handlers.runtime_context import RuntimeContext


class CppHandler(AbstractLanguageHandler):
    """How C++ is compiled, run and read."""

    literals = r'R"(?P<delimiter>[^()\\\s]{0,16})\([\s\S]*?(?:\)(?P=delimiter)"|\Z)|"(?:[^"\\\n]|\\.)*"|' r"'(?:[^'\\\n]|\\.)*'"

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(logger)
        self.config = LanguageConfig(
            name=SupportedLanguage.CPP,
            file_extension="cpp",
            execution_commands=["g++ -std=c++17 -o /tmp/a.out {file}", "/tmp/a.out"],
            package_manager="apt-get install",
        )

    def get_execution_commands(self, code_file: str, runtime_context: RuntimeContext | None = None) -> list[str]:
        """Return the commands that compile the file and run the program, which is in the working directory if there is one."""
        if runtime_context and runtime_context.workdir:
            program = f"{runtime_context.workdir}/a.out"
            return [f"g++ -std=c++17 -o {program} {code_file}", program]
        return super().get_execution_commands(code_file)

    def get_library_installation_command(self, library: str, runtime_context: RuntimeContext | None = None) -> str:
        """Return the command, with a cache in the working directory if there is one."""
        command = super().get_library_installation_command(library)
        if runtime_context and runtime_context.workdir:
            return f"{command} -o {shlex.quote(f'Dir::Cache={runtime_context.workdir}/apt-cache')}"
        return command

    def get_import_patterns(self, module: str) -> str:
        """Match #include of a header, and import of a header or module."""
        name = re.escape(module)
        return rf"(?:^|\n)[ \t]*(?:(?:#|%:)[ \t]*include(?:_next)?|(?:export[ \t]+)?import)[ \t]*(?:<{name}>|\"{name}\"|(?<=[ \t]){name}[ \t]*;)"

    @staticmethod
    def get_multiline_comment_patterns() -> str:
        """Match /* */, or from /* to the end."""
        return r"/\*[\s\S]*?(?:\*/|\Z)"

    @staticmethod
    def get_inline_comment_patterns() -> str:
        """Match from // to the end of the line."""
        return r"//[^\n]*"
