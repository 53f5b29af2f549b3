"""A side whose process runs the Graft that another tree has built, with the cases of this tree."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from record import Side

HERE = Path(__file__).resolve().parent


class OtherTree(Side):
    """Like Side, in a process of tree/.venv.

    Raises FileNotFoundError if tree has no virtual environment, and from call() what the function
    raised, or ChildProcessError if the process ended.
    """

    def __init__(self, tree: Path, device: str, environment: dict[str, str] | None = None) -> None:
        python = tree / ".venv/bin/python"
        if not python.exists():
            raise FileNotFoundError(
                f"expected a built tree with {python}; build it: make setup .venv/graft.stamp"
            )
        self.tree, self.device = tree, device
        self._pipe, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [python, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()],
                env=os.environ | (environment or {}) | {"PYTHONPATH": str(HERE.parent / "examples")},
            )  # fmt: skip
        self.process = self._process.pid
        self._threads = ThreadPoolExecutor(1)

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        self._pipe.close()
        self._process.wait()

    def _ask(self, *request: Any) -> Any:
        try:
            self._pipe.send(request)
            found, error = self._pipe.recv()
        except (EOFError, ConnectionError) as gone:  # which, depends on what it had read
            code = self._process.wait()
            raise ChildProcessError(f"the process of {self.tree} ended with {code}") from gone
        if error is not None:
            raise error
        return found

    def begin(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._threads.submit(self._ask, function, self.device, *arguments)


def serve(pipe: Connection) -> None:
    """Computes what comes from the pipe until its other end closes."""
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
    serve(Connection(int(sys.argv[1])))
