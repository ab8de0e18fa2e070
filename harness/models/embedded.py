"""`embedded/...`: weights in llama.cpp, a child process of this one. It only starts a server and hands its address on.

In a child a native crash kills the child, not the run; the path that a request takes is the one that real providers take.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from importlib import metadata

from harness.errors import SetupError
from harness.models import weights
from harness.records import ModelSpec

CONTEXT_TOKENS = 4096
START_SECONDS = 120.0


def identity(spec: ModelSpec) -> dict[str, str | int]:
    """What the model is, besides its sampling settings: weights, runtime and the settings that it is loaded with."""
    name = spec.name.removeprefix("embedded/")
    return {
        "weights_sha256": weights.known(name).sha256,
        "runtime": f"xllamacpp {metadata.version('xllamacpp')}",
        "context_tokens": spec.context_tokens or CONTEXT_TOKENS,
        "slots": 1,
    }


class Server:
    """One child process for one set of weights and context size; started at the first call, again after a crash."""

    def __init__(self, name: str, context_tokens: int) -> None:
        self.name, self.context_tokens = name, context_tokens
        self.process: subprocess.Popen[bytes] | None = None
        self._address = ""
        self._starting = asyncio.Lock()

    async def address(self) -> str:
        """Where it listens; starts it where it does not run.

        Raises:
            SetupError: no weights, or the child does not come up.
        """
        async with self._starting:
            if self.process is None or self.process.poll() is not None:
                await asyncio.to_thread(self._start)
            return self._address

    def _start(self) -> None:
        file = weights.path(self.name)
        if file is None:
            raise SetupError(
                f"embedded/{self.name}: its weights are not in {weights.cache()}; `fairtrial fetch {self.name}`"
            )
        command = [sys.executable, "-m", "harness.models.embedded_server", "--weights", str(file), "--name", self.name]
        command += ["--context", str(self.context_tokens)]
        # The child reads our end of a pipe as its standard input: it closes when this process is gone, however it went.
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            start_new_session=True,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        try:
            self._address = str(json.loads(line)["address"]) + "/v1"
        except (ValueError, KeyError):
            self.stop()
            raise SetupError(
                f"embedded/{self.name}: the model server did not come up; is {file} readable and memory free?"
            ) from None

    def stop(self) -> None:
        """End the child."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self.process = None
