"""Which handler a language has."""

from __future__ import annotations

import logging
from typing import ClassVar

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.exceptions import LanguageNotSupportedError
from llm_sandbox.language_handlers.base import AbstractLanguageHandler
from llm_sandbox.language_handlers.cpp_handler import CppHandler
from llm_sandbox.language_handlers.go_handler import GoHandler
from llm_sandbox.language_handlers.java_handler import JavaHandler
from llm_sandbox.language_handlers.javascript_handler import JavaScriptHandler
from llm_sandbox.language_handlers.python_handler import PythonHandler
from llm_sandbox.language_handlers.r_handler import RHandler
from llm_sandbox.language_handlers.ruby_handler import RubyHandler


class LanguageHandlerFactory:
    """Makes handlers, of languages in any case."""

    _handlers: ClassVar[dict[str, type[AbstractLanguageHandler]]] = {
        str(SupportedLanguage.PYTHON): PythonHandler,
        str(SupportedLanguage.JAVASCRIPT): JavaScriptHandler,
        str(SupportedLanguage.JAVA): JavaHandler,
        str(SupportedLanguage.CPP): CppHandler,
        str(SupportedLanguage.GO): GoHandler,
        str(SupportedLanguage.RUBY): RubyHandler,
        str(SupportedLanguage.R): RHandler,
    }

    @classmethod
    def create_handler(cls, language: str, logger: logging.Logger | None = None) -> AbstractLanguageHandler:
        """Return a handler for the language, or raise LanguageNotSupportedError."""
        handler = cls._handlers.get(language.lower())
        if handler is None:
            raise LanguageNotSupportedError(language)
        if not issubclass(handler, AbstractLanguageHandler):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Handler class {handler} is not a subclass of AbstractLanguageHandler")
        return handler(logger=logger)

    @classmethod
    def get_supported_languages(cls) -> list[str]:
        """Return the languages that have a handler."""
        return list(cls._handlers)

    @classmethod
    def register_handler(cls, language: str, handler_class: type[AbstractLanguageHandler]) -> None:
        """Use a handler for a language. Sessions take the language as `lang` from then on."""
        cls._handlers[language.lower()] = handler_class
