from __future__ import annotations

from collections.abc import Callable

from deepagents import create_deep_agent
from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI
from llmsandbox import Sandbox
from llmsandbox.integrations.deepagents import SandboxBackend
from scripted import Call, ModelServer


def test_agent(serve: Callable[..., ModelServer]) -> None:
    server = serve(
        Call("write_file", {"file_path": "/sandbox/a.txt", "content": "six\nseven\n"}),
        Call("execute", {"command": "wc -l < a.txt; echo é >&2; exit 3"}),
        Call("edit_file", {"file_path": "/sandbox/a.txt", "old_string": "six", "new_string": "five"}),
        Call("grep", {"pattern": "five", "path": "/sandbox", "output_mode": "content"}),
        Call("read_file", {"file_path": "/sandbox/none.txt"}),
        "Done.",
    )
    with Sandbox() as sandbox:
        agent = create_deep_agent(model=ChatOpenAI(model="scripted", base_url=server.url), backend=SandboxBackend(sandbox))
        state = agent.invoke({"messages": [{"role": "user", "content": "Begin."}]})
        assert sandbox.files.read_text("a.txt") == "five\nseven\n"
    said = [str(message.content) for message in state["messages"] if isinstance(message, ToolMessage)]
    assert "2" in said[1] and "é" in said[1] and "3" in said[1]
    assert "five" in said[3]
    assert "not found" in said[4].lower() or "not_found" in said[4]


def test_backend() -> None:
    with Sandbox() as sandbox:
        backend = SandboxBackend(sandbox, timeout=1)
        assert backend.id == sandbox.id
        late = backend.execute("echo begun; sleep 600")
        assert late.exit_code != 0 and "begun" in late.output
        written = backend.upload_files([("a", b"\xff\x00"), ("/etc/x", b"")])
        assert [w.error is None for w in written] == [True, False]
        read = backend.download_files(["a", "b"])
        assert (read[0].content, read[1].error) == (b"\xff\x00", "file_not_found")
