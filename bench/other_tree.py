"""A side whose process runs the Graft that another tree has built, with the cases of this tree."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

from record import Side

KEY = "GRAFT_BENCH_KEY"


class OtherTree(Side):
    """Like Side, in a process of tree/.venv.

    Raises FileNotFoundError if tree has no virtual environment, and from call() what the function
    raised, or EOFError if the process ended.
    """

    def __init__(self, tree: Path, device: str, environment: dict[str, str] | None = None) -> None:
        python = tree / ".venv/bin/python"
        if not python.exists():
            raise FileNotFoundError(
                f"expected a built tree with {python}; build it: make setup .venv/graft.stamp"
            )
        self.device, self._folder = device, tempfile.TemporaryDirectory()
        key = secrets.token_hex()
        with Listener(f"{self._folder.name}/socket", authkey=key.encode()) as door:
            self._process = subprocess.Popen(
                [python, __file__, door.address], cwd=self._folder.name,
                env=os.environ | (environment or {}) | {KEY: key, "PYTHONPATH": ":".join(sys.path[:2])},
            )  # fmt: skip
            self._pipe = door.accept()
        self.process = self._process.pid

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.wait()
        self._folder.cleanup()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self._pipe.send((function, self.device, *arguments))
        found, error = self._pipe.recv()
        if error is not None:
            raise error
        return found


def serve(address: str) -> None:
    """Computes what comes from address until the other end closes."""
    with Client(address, authkey=os.environ.pop(KEY).encode()) as pipe:
        while True:
            try:
                function, *arguments = pipe.recv()
            except EOFError:
                return
            try:
                pipe.send((function(*arguments), None))
            except Exception as error:
                pipe.send((None, error))


if __name__ == "__main__":
    serve(sys.argv[1])
