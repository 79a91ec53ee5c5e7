"""LangChain and LangGraph.

    agent = create_agent(model, tools=[code_tool(llmsandbox.AsyncCodeTool())], checkpointer=InMemorySaver())
    await agent.ainvoke({"messages": [...]}, {"configurable": {"thread_id": "1"}})
"""

from __future__ import annotations

from collections.abc import Callable

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool, ToolException

from llmsandbox._async.tool import AsyncCodeTool
from llmsandbox._sync.tool import CodeTool
from llmsandbox._tool import ToolOutput
from llmsandbox.integrations._images import encoded

Content = str | list[str | dict[str, str]]


def thread(config: RunnableConfig) -> str:
    """Return the thread that a call belongs to."""
    return str(config.get("configurable", {}).get("thread_id", ""))


def code_tool(
    code: CodeTool | AsyncCodeTool, *, images: bool = True, conversation: Callable[[RunnableConfig], str] = thread
) -> StructuredTool:
    """Return the tool. With an AsyncCodeTool, agents are to be called by `ainvoke` or `astream`.

    images: the model gets the images of plots; leave them out if messages of its tools can only have text. The artifact of a message has
    the whole output in any case.
    conversation: tells whose sandbox a call has; by default, each thread has its own.
    """

    def content(output: ToolOutput) -> tuple[Content, ToolOutput]:
        if output.is_error:
            raise ToolException(output.text)  # LangChain makes a message of it that says so
        if not output.images or not images:
            return output.text, output
        blocks: list[str | dict[str, str]] = [{"type": "text", "text": output.text}]
        blocks += [{"type": "image", "base64": encoded(image), "mime_type": image.mime} for image in output.images]
        return blocks, output

    def run(config: RunnableConfig, **arguments: object) -> tuple[Content, ToolOutput]:
        assert isinstance(code, CodeTool)
        return content(code.call(arguments, conversation=conversation(config)))

    async def run_async(config: RunnableConfig, **arguments: object) -> tuple[Content, ToolOutput]:
        assert isinstance(code, AsyncCodeTool)
        return content(await code.call(arguments, conversation=conversation(config)))

    blocking = isinstance(code, CodeTool)
    return StructuredTool.from_function(
        func=run if blocking else None,
        coroutine=None if blocking else run_async,
        name=code.name,
        description=code.description,
        args_schema=code.parameters,
        infer_schema=False,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
