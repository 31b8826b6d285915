"""An OpenAI-compatible endpoint on this machine, for tests: it says what it is told to, and misbehaves."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One reply: a text, or a whole body as bytes; sent after `delay` seconds, `cut` bytes short."""

    text: str | None = None
    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int = 0
    finish: str = "stop"


Script = Callable[[dict[str, Any], int], Answer | str]
"""From the body of a request and its number, from 0, to a reply."""


def error(status: int, message: str = "", code: str | None = None, **headers: str) -> Answer:
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=body, headers=sent)


class Endpoint:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.times: list[float] = []
        self.under_way = 0
        self.most_under_way = 0
        self.lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # headers and body in one packet

            def do_POST(self) -> None:
                endpoint.reply(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # a client that has gone away

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        request = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self.lock:
            number = len(self.requests)
            self.requests.append(request)
            self.times.append(time.monotonic())
            self.keys.add(handler.headers["authorization"])
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            made = self.script(request, number)
            answer = Answer(made) if isinstance(made, str) else made
            time.sleep(answer.delay)
        finally:
            with self.lock:
                self.under_way -= 1
        body = answer.body
        if body is None:
            body = json.dumps(
                {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": request["model"],
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": answer.finish,
                            "message": {"role": "assistant", "content": answer.text},
                        }
                    ],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
                }
            ).encode()
        body = body[: len(body) - answer.cut]
        handler.send_response(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


@contextmanager
def serving(script: Script) -> Iterator[Endpoint]:
    endpoint = Endpoint(script)
    thread = threading.Thread(target=endpoint.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.server.shutdown()
        endpoint.server.server_close()
        thread.join()
