"""CrewAI.

    with llmsandbox.CodeTool() as code:
        analyst = Agent(role="analyst", goal="...", backstory="...", tools=[code_tool(code)], llm=llm)
"""

from __future__ import annotations

from typing import Any

from crewai.tools import BaseTool
from pydantic import BaseModel, Field, PrivateAttr, create_model

from llmsandbox._sync.tool import CodeTool


class _SandboxTool(BaseTool):
    _code: CodeTool = PrivateAttr()
    _conversation: str = PrivateAttr()

    def _run(self, **arguments: object) -> str:
        return self._code.call(arguments, conversation=self._conversation).text


def code_tool(code: CodeTool, *, conversation: str = "") -> BaseTool:
    """Return the tool, whose calls have the sandbox of a conversation. Tools of CrewAI return text only: the model sees no images."""
    fields: dict[str, Any] = {"code": (str, Field(description="The code to run"))}
    if code.takes_libraries:
        fields["libraries"] = (list[str], Field(default=[], description="Libraries to install before the code runs"))
    schema: type[BaseModel] = create_model(code.name, **fields)
    tool = _SandboxTool(name=code.name, description=code.description, args_schema=schema, cache_function=_never)
    tool._code, tool._conversation = code, conversation
    return tool


def _never(arguments: object = None, result: object = None) -> bool:
    """The same code may do something else the second time."""
    return False
