"""The child process of an embedded model: llama.cpp serving OpenAI-style requests on loopback.

It ends when its parent does, also after SIGKILL in mid-generation: a thread watches a pipe whose write end no other process
holds, and leaves by `os._exit`, since a native generation cannot be asked to stop.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import threading


def _leave_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    """Load the model, say where it listens as one line of JSON, and serve until standard input closes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--context", type=int, required=True)
    options = parser.parse_args()
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    # Spinning workers starve a busy two-core machine: 13 tokens a second fall to under 1.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = options.weights
    parameters.model_alias = {options.name}
    parameters.n_ctx = options.context
    parameters.n_parallel = 1  # two slots change texts with the order of clients and bring no speed here
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = free_port()
    parameters.n_threads_http = 2
    parameters.verbosity = 0
    server = xllamacpp.Server(parameters)
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
