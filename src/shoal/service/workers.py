"""Several processes behind one address: readers that map the same snapshot, and the one writer."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.service.app import create_app
from shoal.service.forwarding import Forward
from shoal.service.limits import Limits
from shoal.service.logs import set_up_logs
from shoal.service.model_description import new_model
from shoal.service.server import configured, run
from shoal.service.service import Service
from shoal.service.snapshots import SnapshotFolder
from shoal.service.tokens import Tokens

log = logging.getLogger("shoal.service")


@dataclass
class ReaderPlan:
    """What a reader process must know."""

    folder: Path
    writer_socket: str
    limits: Limits
    tokens: Tokens
    hosts: tuple[str, ...] | None
    follow_seconds: float
    log_level: str
    new_model: dict[str, Any] | None  # a model that has not begun, of which there is no snapshot yet


def read_forever(plan: ReaderPlan, listening: socket.socket) -> None:
    """A reader process: asks the newest snapshot, passes the rest on."""
    set_up_logs(None, plan.log_level)
    parent = os.getppid()
    begun = bool(SnapshotFolder(plan.folder / "snapshots").positions())
    stand_in = None if begun or plan.new_model is None else new_model(plan.new_model)
    service = Service(
        plan.folder, stand_in, follow=True, limits=plan.limits, tokens=plan.tokens, follow_seconds=plan.follow_seconds
    )
    server = configured(
        create_app(service, hosts=plan.hosts, forward=lambda app: Forward(app, plan.writer_socket, service))
    )

    def leave_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        server.should_exit = True

    threading.Thread(target=leave_with_parent, daemon=True).start()
    run(server, listening)


def serve_with_readers(app: Any, plan: ReaderPlan, listening: socket.socket, n_readers: int) -> None:
    """Run the writer here, on a socket of its own, and readers on the address that callers know."""
    service: Service = app.state.service
    service.has_readers = True
    context = multiprocessing.get_context("spawn")
    own = socket.socket(socket.AF_UNIX)
    own.bind(plan.writer_socket)
    own.listen(512)
    server = configured(app)
    readers: list[Any] = []

    def start_readers() -> None:
        """As soon as there is a snapshot; one that dies is replaced."""
        while not service.stopping.is_set():
            if plan.new_model is None and not SnapshotFolder(plan.folder / "snapshots").positions():
                time.sleep(0.2)
                continue
            for at in range(n_readers):
                if at >= len(readers) or not readers[at].is_alive():
                    reader = context.Process(target=read_forever, args=(plan, listening), name=f"reader-{at}")
                    reader.start()
                    readers[at : at + 1] = [reader]
            time.sleep(0.5)

    supervisor = threading.Thread(target=start_readers, name="supervisor")
    supervisor.start()
    try:
        run(server, own)
    finally:
        service.stopping.set()
        supervisor.join()
        for reader in readers:
            if reader.is_alive():
                os.kill(reader.pid, signal.SIGTERM)
        for reader in readers:
            reader.join(20)
        own.close()
        Path(plan.writer_socket).unlink(missing_ok=True)


def socket_path(folder: Path) -> str:
    """A path for the writer's socket: in the folder, unless that is too long for a socket."""
    path = str((folder / "writer.sock").resolve())
    if len(path.encode()) < 100:
        Path(path).unlink(missing_ok=True)
        return path
    return str(Path(tempfile.mkdtemp(prefix="shoal-")) / "writer.sock")
