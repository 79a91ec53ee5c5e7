"""The sandboxes of the OpenAI Agents SDK at E2B, against the server that the environment names."""

import asyncio
import io
import os
from pathlib import Path

from agents.extensions.sandbox.e2b import E2BSandboxClient, E2BSandboxClientOptions, E2BSandboxType
from agents.sandbox import Manifest
from agents.sandbox.entries import File


async def use(sandbox_type, persistence):
    client = E2BSandboxClient()
    options = E2BSandboxClientOptions(sandbox_type, workspace_persistence=persistence, envs={"BASE": "base"})
    manifest = Manifest(entries={"docs/a.md": File(content=b"one\n")}, environment={"value": {"SET": "set"}})
    session = await client.create(manifest=manifest, options=options)
    async with session:
        assert await session.running()
        done = await session.exec("cat docs/a.md; pwd; echo $BASE $SET; echo err >&2; exit 3")
        assert (done.stdout, done.stderr, done.exit_code) == (b"one\n/workspace\nbase set\n", b"err\n", 3), done
        await session.write(Path("data/b"), io.BytesIO(bytes(range(256))))
        assert (await session.read(Path("data/b"))).read() == bytes(range(256))
        await session.mkdir("made/deep", parents=True)
        assert {Path(e.path).name for e in await session.ls(".")} >= {"docs", "data", "made"}
        terminal = await session.pty_exec_start("cat", shell=False, tty=True, yield_time_s=0.25)
        shown, chars = terminal.output, "typed\n"
        while shown.count(b"typed") < 2:  # as it is typed, and from the program
            shown += (await session.pty_write_stdin(session_id=terminal.process_id, chars=chars)).output
            chars = ""
        await session.pty_terminate_all()
        kept = (await session.persist_workspace()).read()

        state = client.deserialize_session_state(client.serialize_session_state(session.state))
        again = await client.resume(state)
        assert again.state.sandbox_id == session.state.sandbox_id
        assert (await again.exec("cat docs/a.md")).stdout == b"one\n"
    assert not await session.running()

    session = await client.create(manifest=Manifest(), options=options)
    async with session:
        await session.hydrate_workspace(io.BytesIO(kept))
        assert (await session.read(Path("data/b"))).read() == bytes(range(256))
        assert (await session.exec("cat docs/a.md")).stdout == b"one\n"


async def main():
    await use(E2BSandboxType.E2B, "tar")
    await use(E2BSandboxType.CODE_INTERPRETER, "snapshot")


if __name__ == "__main__":
    asyncio.run(main())
    os._exit(0)  # as sdk.py does
