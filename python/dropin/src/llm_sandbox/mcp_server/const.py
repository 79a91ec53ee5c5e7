"""The languages, for programs that list them."""

from __future__ import annotations

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.mcp_server.types import LanguageDetails

_DATA_SCIENCE = ["numpy", "pandas", "scipy", "scikit-learn", "matplotlib", "seaborn", "plotly", "requests", "openpyxl", "pillow", "sympy"]


def _details(manager: str, code: str, *uses: str, libraries: list[str] | None = None, plots: bool = False) -> LanguageDetails:
    return {
        "version": "that of this machine or of the image",
        "package_manager": manager,
        "preinstalled_libraries": libraries or [],
        "use_cases": list(uses),
        "visualization_support": plots,
        "examples": [{"title": "Hello", "description": "Prints a line", "code": code}],
    }


LANGUAGE_RESOURCES: dict[str, LanguageDetails] = {
    SupportedLanguage.PYTHON.value: _details(
        "pip", "print('Hello')", "Data analysis", "Machine learning", "Scripts", libraries=_DATA_SCIENCE, plots=True
    ),
    SupportedLanguage.JAVASCRIPT.value: _details("npm", "console.log('Hello')", "Web development", "Scripts"),
    SupportedLanguage.JAVA.value: _details(
        "mvn",
        'public class Main {\n    public static void main(String[] args) {\n        System.out.println("Hello");\n    }\n}',
        "Applications",
    ),
    SupportedLanguage.CPP.value: _details(
        "apt", '#include <iostream>\nint main() { std::cout << "Hello" << std::endl; }', "Algorithms", "Systems programming"
    ),
    SupportedLanguage.GO.value: _details("go", 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("Hello") }', "Services", "Tools"),
    SupportedLanguage.RUBY.value: _details("gem", "puts 'Hello'", "Scripts", "Text processing"),
    SupportedLanguage.R.value: _details("install.packages", "cat('Hello\\n')", "Statistics", "Plots", plots=True),
}
