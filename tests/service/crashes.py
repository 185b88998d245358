"""Kills a service at random moments while several writers send items, and checks what is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np

from service.samples import items
from shoal.service.learner import Learner
from shoal.service.model_description import make_repeatable, new_model
from shoal.service.snapshots import SnapshotFolder
from shoal.service.state import State
from shoal.store.journal import Journal

KILL, TERM = signal.SIGKILL, signal.SIGTERM
N_WRITERS = 4


def plain_client() -> httpx.Client:
    """A client without certificates: loading them costs more than many requests."""
    return httpx.Client(timeout=20, verify=False)


class Starter:
    """Starts services fast: a process that has loaded everything, and forks.

    A fresh interpreter spends seconds on imports and compiled kernels; what is killed is the same service either way.
    """

    SCRIPT = """
import json, os, sys
from service.samples import KINDS, new_model
from shoal.cli.main import run
from shoal.service import server
from shoal.service.state import State
from shoal.service.warming import warm
for kind in KINDS:
    warm(State(new_model(kind)), learns=True)
print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    if "wait" in order:
        print(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]), flush=True)
        continue
    child = os.fork()
    if child == 0:
        os.dup2(os.open(order["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.argv = ["shoal", *order["arguments"]]
        os._exit(run() or 0)
    print(child, flush=True)
"""

    def __init__(self) -> None:
        paths = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def order(self, **facts: object) -> int:
        self.process.stdin.write(json.dumps(facts) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


class Process:
    """A service in a process of its own."""

    def __init__(self, folder: Path, kind: str, *options: str, model: Path | None = None,
                 starter: Starter | None = None) -> None:  # fmt: skip
        start = [str(model)] if model is not None else ["--new", "--model", kind]
        arguments = ["serve", *start, "--dir", str(folder), "--port", "0", "--publish-seconds", "0.05",
                     "--reserve-mb", "0.1", *options]  # fmt: skip
        self.errors, self.starter = folder.with_name(folder.name + ".stderr"), starter
        self.errors.write_text("")  # the service before may have written there
        if starter is not None:
            self.pid = starter.order(arguments=arguments, errors=str(self.errors))
        else:
            with open(self.errors, "w") as errors:
                self.process = subprocess.Popen([sys.executable, "-m", "shoal", *arguments], stderr=errors)
            self.pid = self.process.pid
        self.url = self._wait_for_url()
        self.wait_until_alive()

    @property
    def log(self) -> str:
        return self.errors.read_text()

    def _wait_for_url(self, seconds: float = 120) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lines = [line for line in self.log.splitlines(keepends=True) if " at http://" in line]
            if lines and lines[0].endswith("\n"):
                return lines[0].split(" at ")[1].strip()
            assert self.starter is not None or self.process.poll() is None, self.log
            time.sleep(0.005)
        raise AssertionError(self.log)

    def wait_until_alive(self, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        with plain_client() as http:
            while time.monotonic() < end:
                with contextlib.suppress(httpx.HTTPError):
                    if http.get(self.url + "/healthz").is_success:
                        return
                time.sleep(0.02)
        raise AssertionError(self.log)

    def end(self, how: signal.Signals) -> int:
        os.kill(self.pid, how)
        return self.process.wait(60) if self.starter is None else self.starter.order(wait=self.pid)


class Writers:
    """Threads that send items with ids of their own, again and again until they are acknowledged."""

    def __init__(self, n_writers: int = N_WRITERS, seed: int = 0) -> None:
        self.url = ""
        self.acknowledged: set[str] = set()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(at, seed)) for at in range(n_writers)]
        for thread in self._threads:
            thread.start()

    def _send(self, writer: int, seed: int) -> None:
        rng = np.random.default_rng([seed, writer])
        start = writer * 10_000_000
        with plain_client() as http:
            while not self._stop.is_set():
                batch = items(int(rng.integers(1, 12)), start, seed)
                start += len(batch)
                self._send_until_acknowledged(http, batch)

    def _send_until_acknowledged(self, http: httpx.Client, batch: list[dict]) -> None:
        while not self._stop.is_set():
            try:
                answer = http.post(self.url + "/learn", json={"items": batch})
            except (httpx.HTTPError, httpx.InvalidURL, ValueError):
                time.sleep(0.02)
                continue
            if answer.status_code == 202:
                self.acknowledged.update(item["id"] for item in batch)
                return
            time.sleep(0.02)

    def wait_for(self, n_items: int, seconds: float = 120) -> None:
        """Wait until so many more items are acknowledged."""
        end, goal = time.monotonic() + seconds, len(self.acknowledged) + n_items
        while len(self.acknowledged) < goal:
            assert time.monotonic() < end, "no progress"
            time.sleep(0.002)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def crash(
    folder: Path, kind: str, n_kills: int, starter: Starter, seed: int = 0, most: int = 200
) -> dict[str, int]:  # fmt: skip
    """Kill the service ``n_kills`` times, stop it properly, and check that nothing is lost, doubled or different."""
    rng = np.random.default_rng(seed)
    options = ["-k", "4"] if kind != "stream" else []
    options += ["--keep-journal", "--snapshot-seconds", "0.3"]
    writers = Writers(seed=seed)
    try:
        for _ in range(n_kills):
            service = Process(folder, kind, *options, starter=starter)
            writers.url = service.url
            writers.wait_for(int(rng.integers(1, most)))
            time.sleep(rng.uniform(0.0, 0.1))
            assert service.end(KILL) == -KILL
        service = Process(folder, kind, *options, starter=starter)
        writers.url = service.url
        writers.wait_for(max(most, 200 - len(writers.acknowledged)))
    finally:
        writers.stop()
    assert service.end(TERM) == 0, service.log
    return check_folder(folder, writers.acknowledged) | {"kills": n_kills}


def check_folder(folder: Path, acknowledged: set[str]) -> dict[str, int]:
    """Every acknowledged item is in the journal once and in the model once; a replay gives the same bits."""
    journal = Journal(folder / "journal.sqlite")
    assert not journal.repair, str(journal.repair)
    entries = [entry for entry in journal.entries(0) if entry.kind == "learn"]
    written = [item["id"] for entry in entries for item in entry.body]
    lost, doubled = acknowledged - set(written), len(written) - len(set(written))
    assert not doubled, f"{doubled} items are in the journal twice"
    assert not lost, f"{len(lost)} acknowledged items are lost"
    recovered = recover(folder, journal)
    assert recovered.record.position == journal.last_position
    assert recovered.record.n_items + recovered.record.n_refused == len(written)
    assert recovered.record.n_refused == 0
    check_counts(recovered.model, written)
    replayed = replay(journal)
    assert replayed.record.to_state().keys() == recovered.record.to_state().keys()
    differences = difference(recovered, replayed)
    assert not differences, f"the recovered model is not what the journal gives: {differences}"
    facts = {"acknowledged": len(acknowledged), "written": len(written), "entries": len(entries)}
    journal.close()
    return facts | {"lost": len(lost), "doubled": doubled, "arrays_that_differ": len(differences)}


def check_counts(model, written: list[str]) -> None:
    """The model's own count of every item's own word is 1."""
    if type(model).__name__ != "BernoulliMixture":
        return
    own = [f"own-{id_.removeprefix('item-')}" for id_ in written]
    seen = np.asarray(model.profiles_.seen)[model.vocabulary_.find(own)]
    assert (seen == 1).all(), "an item was learned twice, or not at all"


def recover(folder: Path, journal: Journal) -> State:
    """What a restart gives: the newest snapshot, and what the journal holds behind it."""
    snapshots = SnapshotFolder(folder / "snapshots")
    newest, troubles = snapshots.newest()
    assert not troubles
    assert newest is not None
    assert newest.record.position > 0
    learner = Learner(newest.copy(), journal, snapshots)
    while learner.step():
        pass
    return learner.state


def replay(journal: Journal) -> State:
    """The state that the whole journal gives, from nothing."""
    model = new_model(json.loads(journal.fact("model")))
    make_repeatable(model)
    learner = Learner(State(model), journal, SnapshotFolder(journal.path.parent / "none"))
    while learner.step():
        pass
    return learner.state


def difference(a: State, b: State) -> list[str]:
    """Names of what is not the same, bit for bit."""
    from shoal.store.encode import Encoder

    parts = []
    for state in (a, b):
        encoder = Encoder()
        fitted = {name: value for name, value in state.model.fitted_state().items() if name != "provenance_"}
        encoded = encoder.model(state.model, {**fitted, "service_": state.record.to_state()})
        parts.append((json.dumps(encoded, sort_keys=True), encoder.arrays))
    (text_a, arrays_a), (text_b, arrays_b) = parts
    names = sorted(arrays_a.keys() ^ arrays_b.keys())
    names += ["plain values"] if text_a != text_b else []
    return names + [
        name
        for name in arrays_a.keys() & arrays_b.keys()
        if arrays_a[name].shape != arrays_b[name].shape or arrays_a[name].tobytes() != arrays_b[name].tobytes()
    ]
