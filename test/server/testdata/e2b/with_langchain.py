"""LangChain's adapter of E2B (langchain-e2b), which gives Deep Agents their shell and files, against the server that the environment names."""

import asyncio
import os

import e2b
from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_e2b import AsyncE2BSandbox, E2BSandbox


class Scripted(GenericFakeChatModel):
    """A model that asks for what it was told to."""

    def bind_tools(self, tools, **_):
        return self


def agent(backend):
    calls = [("execute", {"command": "echo $((6 * 7)) >/home/user/answer"}), ("read_file", {"file_path": "/home/user/answer"})]
    said = [AIMessage("", tool_calls=[{"name": name, "args": args, "id": name}]) for name, args in calls]
    answer = create_deep_agent(Scripted(messages=iter([*said, AIMessage("done")])), backend=backend).invoke({"messages": [("user", "6 * 7?")]})
    assert [("42" in m.content, m.status) for m in answer["messages"] if m.type == "tool"] == [(False, "success"), (True, "success")], answer


def whole(backend):
    done = backend.execute("pwd; id -un >&2; exit 3")
    assert done.output.startswith("/home/user\n") and done.exit_code == 3 and not done.truncated, done
    assert backend.execute("sleep 60", timeout=1).exit_code == 124
    assert backend.write("/home/user/notes/a.md", "one\ntwo ä\n").error is None
    assert "already exists" in backend.write("/home/user/notes/a.md", "").error
    assert backend.read("/home/user/notes/a.md", offset=1).file_data["content"] == "two ä"
    assert backend.edit("/home/user/notes/a.md", "two", "three").occurrences == 1
    assert backend.edit("/home/user/notes/a.md", "one", "1" * 60_000).occurrences == 1  # too long for a command: by files
    assert [(m["line"], m["text"]) for m in backend.grep("three", "/home/user").matches] == [(2, "three ä")]
    assert [m["path"] for m in backend.glob("**/*.md", "/home/user").matches] == ["notes/a.md"]
    assert {"path": "/home/user/notes", "is_dir": True} in backend.ls("/home/user").entries
    data = bytes(range(256)) * 4000
    sent = backend.upload_files([("/home/user/data/b", data), ("relative", b""), ("/home/user/notes", b"")])
    assert [f.error for f in sent] == [None, "invalid_path", "is_directory"], sent
    got = backend.download_files(["/home/user/data/b", "/home/user/none", "/home/user/notes"])
    assert [f.error for f in got] == [None, "file_not_found", "is_directory"] and got[0].content == data, got


async def asynchronous():
    sandbox = await e2b.AsyncSandbox.create()
    try:
        backend = AsyncE2BSandbox(sandbox=sandbox)
        assert (await backend.aexecute("echo $HOME")).output == "/home/user\n"
        assert (await backend.awrite("/home/user/a", "one")).error is None
        assert (await backend.aedit("/home/user/a", "one", "two")).occurrences == 1
        assert (await backend.aread("/home/user/a")).file_data["content"] == "two"
        assert [m["path"] for m in (await backend.aglob("*", "/home/user")).matches] == ["a"]
        assert (await backend.agrep("two", "/home/user")).matches[0]["line"] == 1
        assert (await backend.als("/home/user")).entries
        assert (await backend.adownload_files(["/home/user/a"]))[0].content == b"two"
    finally:
        await sandbox.kill()


if __name__ == "__main__":
    with e2b.Sandbox.create() as sandbox:
        whole(E2BSandbox(sandbox=sandbox))
        agent(E2BSandbox(sandbox=sandbox))
    asyncio.run(asynchronous())
    os._exit(0)  # as sdk.py does
