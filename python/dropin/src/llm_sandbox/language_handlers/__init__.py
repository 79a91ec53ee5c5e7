"""How each language is run, and how its code is read."""

from llm_sandbox.language_handlers.base import AbstractLanguageHandler, LanguageConfig, PlotDetectionConfig, PlotLibrary
from llm_sandbox.language_handlers.cpp_handler import CppHandler
from llm_sandbox.language_handlers.go_handler import GoHandler
from llm_sandbox.language_handlers.java_handler import JavaHandler
from llm_sandbox.language_handlers.javascript_handler import JavaScriptHandler
from llm_sandbox.language_handlers.python_handler import PythonHandler
from llm_sandbox.language_handlers.r_handler import RHandler
from llm_sandbox.language_handlers.ruby_handler import RubyHandler

__all__ = [
    "AbstractLanguageHandler",
    "CppHandler",
    "GoHandler",
    "JavaHandler",
    "JavaScriptHandler",
    "LanguageConfig",
    "PlotDetectionConfig",
    "PlotLibrary",
    "PythonHandler",
    "RHandler",
    "RubyHandler",
]
