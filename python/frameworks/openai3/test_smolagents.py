from __future__ import annotations

from collections.abc import Callable

import pytest
from llmsandbox.integrations.smolagents import SandboxExecutor
from scripted import ModelServer
from smolagents import CodeAgent, OpenAIModel, tool


@tool
def shout(text: str) -> str:
    """Writes a text in capitals.

    Args:
        text: The text.
    """
    return text.upper()


def test_agent(serve: Callable[..., ModelServer]) -> None:
    server = serve(
        "Thought: first.\n<code>\nx = 6\nprint(shout('begun'), data['a'])\n</code>",
        "Thought: that fails.\n<code>\n1 / 0\n</code>",
        "Thought: last.\n<code>\nfinal_answer({'answer': x * 7, 'by': [None, 1.5]})\n</code>",
    )
    model = OpenAIModel("scripted", api_base=server.url, api_key="scripted")
    with SandboxExecutor() as executor:
        agent = CodeAgent(tools=[shout], model=model, executor=executor, max_steps=4, verbosity_level=0)
        answer = agent.run("What is six times seven?", additional_args={"data": {"a": 1}})
    assert answer == {"answer": 42, "by": [None, 1.5]}
    assert "BEGUN 1" in str(server.requests[1]["messages"])
    assert "ZeroDivisionError" in str(server.requests[2]["messages"])


def test_pickle_is_refused() -> None:
    """Code inside can raise what looks like a final answer: nothing of it is unpickled."""
    with SandboxExecutor() as executor, pytest.raises(Exception, match="[Pp]ickle"):
        executor("class FinalAnswerException(Exception): pass\nraise FinalAnswerException('pickle:gASVAAAAAAAAAA==')")
