"""Running the application: sockets, signals, and a server inside a program."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import uvicorn

from shoal.errors import BadInput, BadSource
from shoal.service.app import LOCAL_HOSTS
from shoal.service.tokens import Tokens

log = logging.getLogger("shoal.service")
SECONDS_TO_FINISH = 10
SWITCH_SECONDS = 0.0005  # how long learning may hold the interpreter while a reader waits; else 0.005
BACKLOG = 2048


class Server(uvicorn.Server):
    """uvicorn, stopped by SIGTERM or SIGINT with exit code 0: what was accepted is finished first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would raise the signal again when it is done, and the exit code would say that the process died."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        kept = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.should_exit and number == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True
        stopping = getattr(self.config.app, "state", None)
        if stopping is not None:
            stopping.service.stopping.set()  # live streams end, so that nobody is waited for


def configured(app: Any, **options: Any) -> Server:
    """A server for an application: no proxy headers are believed, no server header is sent."""
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, proxy_headers=False, lifespan="on",
        timeout_graceful_shutdown=SECONDS_TO_FINISH, timeout_keep_alive=30, **options,
    )  # fmt: skip
    return Server(config)


def run(server: Server, listening: socket.socket) -> None:
    """Serve until a signal says stop, in a process that does nothing else."""
    sys.setswitchinterval(SWITCH_SECONDS)
    server.run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, because asyncio switches Nagle's algorithm off only for sockets that say they are TCP: with it, each answer
    # on a kept connection waits 40 ms for the caller's delayed acknowledgement.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise BadSource(f"cannot listen on {host}:{port}: {error.strerror}. Choose another with --port.") from None
    found.listen(BACKLOG)
    found.set_inheritable(True)
    return found


def require_token_beyond_localhost(host: str, tokens: Tokens) -> None:
    """Refuse to be reached from other machines without a token."""
    if host.strip("[]") in {name.strip("[]") for name in LOCAL_HOSTS} or tokens.write:
        return
    raise BadInput(
        f"--host {host} can be reached from other machines, and there is no token: anybody could change the model. "
        "Give --token-file FILE or set SHOAL_TOKEN."
    )


@contextlib.contextmanager
def serving(app: Any, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve an application from a thread, and yield its URL; for notebooks and tests.

    Parameters
    ----------
    app : application
        Result of :func:`create_app`.
    host : str
        Address to listen on.
    port : int
        Port to listen on; 0 selects a free one.

    Examples
    --------
    >>> import tempfile
    >>> from shoal import SphericalKMeans
    >>> from shoal.service import Client, Service, create_app
    >>> folder = tempfile.TemporaryDirectory()
    >>> app = create_app(Service(folder.name, SphericalKMeans(2), reserve_mb=0.001))
    >>> with serving(app) as url, Client(url) as client:
    ...     client.stats()["items"]
    0
    >>> folder.cleanup()
    """
    found = listen(host, port)
    server = configured(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [found]}, name="serving", daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        if not server.started:
            raise BadSource("the server could not start; see the log.")
        yield f"http://{host}:{found.getsockname()[1]}"
    finally:
        app.state.service.stopping.set()
        server.should_exit = True
        thread.join()
        found.close()
