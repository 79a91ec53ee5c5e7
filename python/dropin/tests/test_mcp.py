"""The MCP server, as clients start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from llm_sandbox.const import SupportedLanguage
from llm_sandbox.mcp_server.const import LANGUAGE_RESOURCES
from llm_sandbox.mcp_server.server import environment


def call(*requests: dict[str, Any], **variables: str) -> list[dict[str, Any]]:
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    }
    lines = [hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *requests]
    command = [sys.executable, "-m", "llm_sandbox.mcp_server.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}) as process:
        assert process.stdin and process.stdout
        process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        process.stdin.flush()
        answers: dict[Any, dict[str, Any]] = {}
        while len(answers) < len(requests) + 1:
            line = process.stdout.readline()
            assert line, "the server has ended"
            answer = json.loads(line)
            if "id" in answer and "method" not in answer:
                answers[answer["id"]] = answer
        process.stdin.close()
    return [answers[request["id"]] for request in (hello, *requests)]


def test_tools() -> None:
    run = {"name": "execute_code", "arguments": {"code": "print(6 * 7)", "language": "python"}}
    _, tools, result = call(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": run}, BACKEND="bubblewrap"
    )
    names = [tool["name"] for tool in tools["result"]["tools"]]
    assert {"execute_code", "get_supported_languages", "get_language_details"} <= set(names)
    assert "42" in result["result"]["content"][0]["text"]


def test_variables() -> None:
    assert environment({"BACKEND": "Podman", "DOCKER_HOST": "unix:///p.sock"})["CONTAINER_HOST"] == "unix:///p.sock"
    assert environment({"BACKEND": "podman", "DOCKER_HOST": "a", "CONTAINER_HOST": "b"})["CONTAINER_HOST"] == "b"
    assert environment({"BACKEND": "docker", "DOCKER_HOST": "a"}) == {"BACKEND": "docker", "DOCKER_HOST": "a"}
    assert environment({"BACKEND": "nsjail"})["BACKEND"] == "local"


def test_languages() -> None:
    assert set(LANGUAGE_RESOURCES) == {language.value for language in SupportedLanguage}
