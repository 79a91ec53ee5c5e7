"""LlamaIndex.

    agent = FunctionAgent(tools=[CodeFunctionTool(llmsandbox.AsyncCodeTool())], llm=llm)
"""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ContentBlock, ImageBlock, TextBlock
from llama_index.core.tools import AsyncBaseTool, ToolMetadata, ToolOutput
from pydantic import BaseModel, Field, create_model

from llmsandbox._async.tool import AsyncCodeTool


class CodeFunctionTool(AsyncBaseTool):
    """The tool of one agent, whose calls have the sandbox of a conversation."""

    def __init__(self, code: AsyncCodeTool, *, conversation: str = "") -> None:
        self._code = code
        self._conversation = conversation
        fields: dict[str, Any] = {"code": (str, Field(description="The code to run"))}
        if code.takes_libraries:
            fields["libraries"] = (list[str], Field(default=[], description="Libraries to install before the code runs"))
        schema: type[BaseModel] = create_model(code.name, **fields)
        self._metadata = ToolMetadata(code.description, code.name, schema)

    @property
    def metadata(self) -> ToolMetadata:
        """What a model is told of the tool."""
        return self._metadata

    def call(self, input: Any) -> ToolOutput:
        """LlamaIndex calls tools of agents by `acall`."""
        raise NotImplementedError("run_code is for agents, which call it by acall")

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Run the code of a call."""
        output = await self._code.call(kwargs, conversation=self._conversation)
        blocks: list[ContentBlock] = [TextBlock(text=output.text)]
        blocks += [ImageBlock(image=image.data, image_mimetype=image.mime) for image in output.images]
        return ToolOutput(blocks=blocks, tool_name=self._code.name, raw_input=kwargs, raw_output=output, is_error=output.is_error)
