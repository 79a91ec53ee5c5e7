"""Serves code by Jupyter Kernel Gateway, the HTTP server of Jupyter's kernels, a command a line: see reference.py.

A run is a kernel that is started, runs one cell, and is removed; a cell is one more in a kernel that is kept.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
import uuid

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
command = [sys.executable, "-m", "kernel_gateway", "--KernelGatewayApp.ip=127.0.0.1", f"--KernelGatewayApp.port={port}", "--KernelGatewayApp.port_retries=0"]
server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
address = f"http://127.0.0.1:{port}"
next(line for line in server.stderr if address in line)
client = AsyncHTTPClient()


async def start():
    made = await client.fetch(HTTPRequest(address + "/api/kernels", method="POST", body=json.dumps({"name": "python3"}), request_timeout=60))
    kernel = json.loads(made.body)["id"]
    return kernel, await websocket_connect(f"{address.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels")


async def execute(channels, code):
    asked = uuid.uuid4().hex
    header = {"msg_id": asked, "msg_type": "execute_request", "username": "", "session": "", "version": "5.3", "date": ""}
    await channels.write_message(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": {"code": code, "silent": False}}))
    text = ""
    while True:
        m = json.loads(await channels.read_message())
        if m["parent_header"].get("msg_id") != asked:
            continue
        if m["msg_type"] == "stream":
            text += m["content"]["text"]
        if m["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
            return text


async def run(code):
    kernel, channels = await start()
    text = await execute(channels, code)
    channels.close()
    await client.fetch(HTTPRequest(f"{address}/api/kernels/{kernel}", method="DELETE", request_timeout=60))
    return text


async def main():
    kept = None
    lines = asyncio.get_running_loop()
    while line := await lines.run_in_executor(None, sys.stdin.readline):
        operation, code = json.loads(line)
        begin = time.perf_counter()
        if operation == "run":
            text = await run(code)
        else:
            kept = kept or await start()
            text = await execute(kept[1], code)
        answer = {"ms": (time.perf_counter() - begin) * 1000}
        if text != "1\n":
            answer["error"] = text
        print(json.dumps(answer), flush=True)


asyncio.run(main())
server.kill()  # its kernels end with it
server.wait()
