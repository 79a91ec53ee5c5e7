"""A scripted model server: it speaks as OpenAI's and Anthropic's do, and says what a test has written. No model is behind it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Call:
    """The model calls the tool of a name."""

    name: str
    arguments: dict[str, object]


Turn = str | Call | list[Call]


class ModelServer:
    """Answers each request with the next turn of its script, and keeps the requests."""

    def __init__(self, *script: Turn) -> None:
        self.script: list[Turn] = list(script)
        self.requests: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(body)
                if not server.script:
                    return self._send(400, {"error": {"type": "invalid_request_error", "message": "the script has come to its end"}})
                answer = _ANSWERS[self.path.split("?")[0].rsplit("/v1", 1)[-1]]
                n = len(server.requests)
                turn = server.script.pop(0)
                if body.get("stream"):
                    return self._stream(answer.stream(n, turn))
                return self._send(200, answer.whole(n, turn))

            def _send(self, status: int, body: object) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, events: Iterator[tuple[str, object]]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                for name, data in events:
                    text = data if isinstance(data, str) else json.dumps(data)
                    self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode())
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.root = f"http://127.0.0.1:{self._http.server_port}"
        self.url = self.root + "/v1"

    def close(self) -> None:
        """End the server. All of the script must have been asked for."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        assert not self.script, f"turns that nobody has asked for: {self.script}"


def _calls(turn: Turn) -> list[Call]:
    return [] if isinstance(turn, str) else [turn] if isinstance(turn, Call) else turn


class Chat:
    """OpenAI's chat completions."""

    def whole(self, n: int, turn: Turn) -> object:
        message: dict[str, object] = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
        if calls := self._tool_calls(n, turn):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {"id": f"chat-{n}", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice], "usage": usage}

    def stream(self, n: int, turn: Turn) -> Iterator[tuple[str, object]]:
        delta: dict[str, object] = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
        calls = self._tool_calls(n, turn)
        if calls:
            delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(calls)]
        for d, reason in ((delta, None), ({}, "tool_calls" if calls else "stop")):
            choice = {"index": 0, "delta": d, "finish_reason": reason}
            yield "", {"id": f"chat-{n}", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": [choice]}
        yield "", "[DONE]"

    def _tool_calls(self, n: int, turn: Turn) -> list[dict[str, object]]:
        return [
            {"id": f"call-{n}-{i}", "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
            for i, call in enumerate(_calls(turn))
        ]


class Responses:
    """OpenAI's responses."""

    def whole(self, n: int, turn: Turn) -> dict[str, object]:
        output: list[dict[str, object]] = [
            {
                "type": "function_call",
                "id": f"fc-{n}-{i}",
                "call_id": f"call-{n}-{i}",
                "name": call.name,
                "arguments": json.dumps(call.arguments),
                "status": "completed",
            }
            for i, call in enumerate(_calls(turn))
        ]
        if isinstance(turn, str):
            content = [{"type": "output_text", "text": turn, "annotations": []}]
            output = [{"type": "message", "id": f"msg-{n}", "role": "assistant", "status": "completed", "content": content}]
        usage = {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        }
        return {
            "id": f"resp-{n}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": "scripted",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "temperature": 1.0,
            "top_p": 1.0,
        }

    def stream(self, n: int, turn: Turn) -> Iterator[tuple[str, object]]:
        whole = self.whole(n, turn)
        events: list[dict[str, object]] = [{"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}}]
        output = whole["output"]
        assert isinstance(output, list)
        for i, item in enumerate(list[Any](output)):
            events.append({"type": "response.output_item.added", "output_index": i, "item": {**item, "status": "in_progress"}})
            if item["type"] == "message":
                text = {"output_index": i, "content_index": 0, "item_id": item["id"], "logprobs": []}
                events.append({"type": "response.output_text.delta", "delta": turn, **text})
                events.append({"type": "response.output_text.done", "text": turn, **text})
            events.append({"type": "response.output_item.done", "output_index": i, "item": item})
        events.append({"type": "response.completed", "response": whole})
        for number, event in enumerate(events):
            yield str(event["type"]), {"sequence_number": number, **event}


class Messages:
    """Anthropic's messages."""

    def whole(self, n: int, turn: Turn) -> dict[str, object]:
        content: list[dict[str, object]] = [
            {"type": "tool_use", "id": f"toolu_{n}_{i}", "name": call.name, "input": call.arguments} for i, call in enumerate(_calls(turn))
        ]
        if isinstance(turn, str):
            content = [{"type": "text", "text": turn}]
        return {
            "id": f"msg_{n}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": content,
            "stop_reason": "end_turn" if isinstance(turn, str) else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def stream(self, n: int, turn: Turn) -> Iterator[tuple[str, object]]:
        whole = self.whole(n, turn)
        yield "message_start", {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
        content = whole["content"]
        assert isinstance(content, list)
        for i, block in enumerate(list[Any](content)):
            if block["type"] == "text":
                begin: dict[str, object] = {"type": "text", "text": ""}
                delta = {"type": "text_delta", "text": block["text"]}
            else:
                begin = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield "content_block_start", {"type": "content_block_start", "index": i, "content_block": begin}
            yield "content_block_delta", {"type": "content_block_delta", "index": i, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": i}
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}
        yield "message_stop", {"type": "message_stop"}


_ANSWERS: dict[str, Chat | Responses | Messages] = {"/chat/completions": Chat(), "/responses": Responses(), "/messages": Messages()}
