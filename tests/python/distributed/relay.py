"""A TCP relay between a server and its clients, which a test cuts: with an end, or in silence."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Relay:
    """Listens on port and passes on to target, a port of this machine."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._flows = threading.Event()
        self._flows.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def silence(self) -> None:
        """From now on nothing arrives and nobody is told, as where packets are lost."""
        self._flows.clear()

    def close(self) -> None:
        """Ends every connection."""
        self._flows.clear()
        for each in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            self._sockets += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (data := source.recv(1 << 16)) and self._flows.is_set():
                sink.sendall(data)
            if self._flows.is_set():
                sink.shutdown(socket.SHUT_WR)
