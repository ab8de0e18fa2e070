"""A small OpenAI-compatible server on loopback that shows faults on schedule, so that the path to real providers is tested for real."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def body(text: str | None = "Answer: 4", finish: str = "stop", **changes: Any) -> dict[str, Any]:
    """A chat completion; a change of None removes its key."""
    message = {"role": "assistant", "content": text, **changes.pop("message", {})}
    whole: dict[str, Any] = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": USAGE,
    }
    return {key: value for key, value in (whole | changes).items() if value != "absent"}


Answer = tuple[int, Any, dict[str, str]]
FAULTS: dict[str, Answer] = {
    "good": (200, body(), {}),
    "rate_limited": (429, {"error": {"message": "slow down", "type": "requests"}}, {"Retry-After": "3"}),
    "billing": (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, {}),
    "server_error": (500, {"error": {"message": "oops"}}, {}),
    "unavailable": (503, {"error": {"message": "busy"}}, {}),
    "unauthorised": (401, {"error": {"message": "bad key sk-loopback-secret"}}, {}),
    "not_found": (404, {"error": {"message": "no such model"}}, {}),
    "bad_request": (400, {"error": {"message": "a bad schema"}}, {}),
    "overflow": (
        400,
        {"error": {"message": "This model's maximum context length is 8 tokens", "code": "context_length_exceeded"}},
        {},
    ),
    "null_usage": (200, body(usage=None), {}),
    "no_usage": (200, body(usage="absent"), {}),
    "zero_usage": (200, body(usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}), {}),
    "odd_usage": (
        200,
        body(usage={"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 9}}),
        {},
    ),
    "details": (
        200,
        body(
            usage={
                **USAGE,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 5},
            }
        ),
        {},
    ),
    "no_choices": (200, body(choices=[]), {}),
    "no_content": (200, body(None), {}),
    "empty_content": (200, body(""), {}),
    "spent": (200, body(None, "length"), {}),
    "cut": (200, body("Answ", "length"), {}),
    "content_filter": (200, body("", "content_filter"), {}),
    "refusal": (200, body(None, message={"refusal": "I will not"}), {}),
    "reasoning": (200, body(message={"reasoning_content": "let me think"}), {}),
    "wrong_model": (200, body(model="another-model"), {}),
    "dated_model": (200, body(model="test-model-2025-08-07"), {}),
    "garbage": (200, "<html>not JSON</html>", {}),
}
"""Name -> status, body, headers."""


class FaultServer:
    """Answers with what `answers` holds, in turn, the last one for ever; counts and keeps the requests."""

    def __init__(self, *answers: str, delay: float = 0.0, reset: bool = False) -> None:
        self.answers, self.delay, self.reset = list(answers) or ["good"], delay, reset
        self.requests: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base(self) -> str:
        """The address for `api_base`."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> FaultServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append(json.loads(data))
                number = len(outer.requests) - 1
                time.sleep(outer.delay)
                if outer.reset:
                    self.connection.close()
                    return
                status, content, headers = FAULTS[outer.answers[min(number, len(outer.answers) - 1)]]
                sent = content.encode() if isinstance(content, str) else json.dumps(content).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(sent)))
                    self.end_headers()
                    self.wfile.write(sent)
                except OSError:
                    pass  # the client has gone: that is what some tests are about

            def log_message(self, *_: object) -> None: ...

        return Handler
