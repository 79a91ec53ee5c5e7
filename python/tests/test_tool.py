"""The tool by which models run code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from llmsandbox import AsyncCodeTool, ClosedError, CodeTool, InvalidError, Sandbox, ToolLimits

PICTURE = (
    "import base64\n"
    "png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=='\n"
    "for n in range({n}): open(f'artifacts/plot{{n}}.png', 'wb').write(base64.b64decode(png))\n"
)


@pytest.fixture(scope="module")
def tool() -> Iterator[CodeTool]:
    with CodeTool() as made:
        yield made


def test_conversations(tool: CodeTool) -> None:
    assert tool.run("x = 6\nx", conversation="a").text == "6"
    assert tool.call('{"code": "print(x * 7)"}', conversation="a").text == "42"
    failed = tool.call({"code": "x"}, conversation="b")
    assert failed.is_error and "NameError" in failed.text and "status error" in failed.text
    tool.end("a")
    assert tool.run("x", conversation="a").is_error
    tool.end("never begun")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{", "not JSON"),
        ("[" * 100000, "not JSON"),
        ("[]", "no JSON object"),
        ({}, '"code"'),
        ({"code": 1}, '"code"'),
        ({"code": "1", "libraries": "numpy"}, "list of names"),
        ({"code": "1", "libraries": ["numpy"]}, "cannot be installed"),
    ],
)
def test_arguments_of_models(tool: CodeTool, arguments: str | dict[str, object], said: str) -> None:
    output = tool.call(arguments)
    assert output.is_error and output.outcome is None
    assert output.text.startswith("The code was not run: ") and said in output.text


def test_images(tool: CodeTool) -> None:
    output = tool.run(PICTURE.format(n=6) + "print('drawn')", conversation="images")
    assert [image.mime for image in output.images] == ["image/png"] * 4
    assert output.text.startswith('drawn\n"plot0.png" (image/png, 70 bytes), image 1\n')
    assert output.text.count("not shown") == 2


def test_limits() -> None:
    with CodeTool(limits=ToolLimits(text=1000, images=0), stateful=False) as tool:
        output = tool.run("print('a' * 5000 + 'z')\nimport sys\nprint('b' * 5000, file=sys.stderr)\n" + PICTURE.format(n=1))
        assert not output.images and len(output.text) < 1100
        assert "characters left out" in output.text and "image" in output.text
        assert tool.run("open('f', 'w').write('kept')").text == "The code has printed nothing."
        assert tool.run("print(open('f').read(), 'output' in globals())").text == "kept False"


def test_sandbox_that_has_ended() -> None:
    opened: list[Sandbox] = []

    def sandbox() -> Sandbox:
        opened.append(Sandbox())
        return opened[-1]

    with CodeTool(sandbox) as tool:
        tool.run("x = 1")
        Sandbox.attach(opened[0].id).destroy()
        output = tool.run("print('x' in globals())")
        assert output.text == "The sandbox of the calls before had ended: their variables and files are gone.\nFalse"
    assert len(opened) == 2


def test_most_conversations() -> None:
    with CodeTool(max_conversations=2) as tool:
        for name in "a", "b", "a", "c":  # which ends b
            tool.run("x = 1", conversation=name)
        assert [tool.run("print('x' in globals())", conversation=name).text for name in ("a", "c", "b")] == ["True", "True", "False"]
    with pytest.raises(ClosedError):
        tool.run("1")
    with pytest.raises(InvalidError):
        CodeTool(max_conversations=0)


def test_threads(tool: CodeTool) -> None:
    """Calls of one conversation run in turn."""
    tool.run("n = 0", conversation="threads")
    add = "import time\nbefore = n\ntime.sleep(0.01)\nn = before + 1"
    threads = [threading.Thread(target=tool.run, args=(add,), kwargs={"conversation": "threads"}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tool.run("n", conversation="threads").text == "8"


def test_other_language() -> None:
    with CodeTool(lambda: Sandbox("bash"), language="bash") as tool:
        assert tool.name == "run_bash" and "Bash" in tool.description
        tool.run("x=6")
        assert tool.run("echo $((x * 7))").text == "42"


def test_asyncio() -> None:
    async def use() -> list[str]:
        async with AsyncCodeTool(timeout=1) as tool:
            late = await tool.run("import time\nwhile True: time.sleep(60)")
            assert late.is_error and "timeout" in late.text
        async with AsyncCodeTool(timeout=None) as tool:
            outputs = await asyncio.gather(*(tool.run(f"x = {n}\nx", conversation=str(n)) for n in range(3)))
            waiting = asyncio.ensure_future(tool.run("import time\ntime.sleep(60)", conversation="1"))
            await tool.run("1", conversation="2")
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return [output.text for output in outputs] + [(await tool.run("x", conversation="1")).text]

    assert asyncio.run(use()) == ["0", "1", "2", "1"]
