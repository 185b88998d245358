"""Damages what a killed service left, in ways a disk or a second kill can, and checks what a restart makes of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np

from service.crashes import KILL, Process, Starter, Writers, difference, replay
from service.samples import items, learned, wait_until
from shoal.service.folder import check
from shoal.service.state import State
from shoal.service.writer import Writer
from shoal.store.journal import Journal


class Killed(NamedTuple):
    """A folder as a SIGKILL left it, and what was in it."""

    folder: Path
    acknowledged: set[str]
    written: list[str]  # ids of items, in the order of the journal
    recovered: State


def killed_service(place: Path, kind: str, starter: Starter, n_items: int = 400, seed: int = 0) -> Killed:
    """Let four writers fill a service, with two snapshots on disk and entries behind them, and kill it."""
    clusters = ["-k", "4"] if kind != "stream" else []
    service = Process(place / "killed", kind, *clusters, "--keep-journal", "--snapshot-seconds", "0.3", starter=starter)
    writers = Writers(seed=seed)
    writers.url = service.url
    try:
        writers.wait_for(n_items)
        saved = list((place / "killed" / "snapshots").glob("snapshot-*"))
        end = time.monotonic() + 60
        while len(saved) < 2 and time.monotonic() < end:
            time.sleep(0.05)
            saved = list((place / "killed" / "snapshots").glob("snapshot-*"))
    finally:
        service.end(KILL)
        writers.stop()
    assert len(saved) >= 2
    spare = copy_of(place / "killed", place / "spare")
    state, written, _ = restarted(spare)
    return Killed(place / "killed", set(writers.acknowledged), written, state)


def copy_of(folder: Path, to: Path) -> Path:
    """A fresh copy of a folder."""
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(folder, to))


def restarted(folder: Path) -> tuple[State, list[str], Writer]:
    """What a restart makes of a folder: the state, ids of items in its journal, and the writer (closed)."""
    writer = Writer(folder)
    state = writer.learner.state
    written = [item["id"] for entry in writer.journal.entries(0) if entry.kind == "learn" for item in entry.body]
    writer.close()
    return state, written, writer


# --- the tail of the journal, the newest snapshot ---------------------------------------------------------------------


def torn(folder: Path, rng: np.random.Generator) -> None:
    """Cut the write-ahead log off somewhere."""
    log = folder / "journal.sqlite-wal"
    os.truncate(log, int(rng.integers(33, log.stat().st_size)))


def zeroed(folder: Path, rng: np.random.Generator) -> None:
    """Fill the write-ahead log with zeros from somewhere on."""
    log = folder / "journal.sqlite-wal"
    whole = log.read_bytes()
    at = int(rng.integers(33, len(whole)))
    log.write_bytes(whole[:at] + bytes(len(whole) - at))


def flipped(folder: Path, rng: np.random.Generator) -> None:
    """Flip a bit of the newest snapshot."""
    newest = sorted((folder / "snapshots").glob("snapshot-*.shoal"))[-1]
    whole = bytearray(newest.read_bytes())
    whole[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
    newest.write_bytes(bytes(whole))


def damaged_tail(killed: Killed, place: Path, damage: Callable, n: int, seed: int = 0) -> dict[str, int]:
    """Damage the log ``n`` times: what is left is the beginning of what was written, and the model is its replay."""
    rng = np.random.default_rng(seed)
    facts = {"cases": n, "cut": 0, "pages_cut": 0, "items_left_at_least": len(killed.written)}
    for _ in range(n):
        folder = copy_of(killed.folder, place / "damaged")
        damage(folder, rng)
        state, written, writer = restarted(folder)
        assert written == killed.written[: len(written)], "what is left is not the beginning of what was written"
        facts["cut"] += len(written) < len(killed.written)
        facts["pages_cut"] += writer.journal.repair.pages_cut
        facts["items_left_at_least"] = min(facts["items_left_at_least"], len(written))
        # A snapshot may hold more than the journal that lost its end; else the model is what the journal gives.
        assert state.record.n_items >= len(written)
        if state.record.n_items == len(written):
            assert not same_as_replay(folder, state)
    return facts


def same_as_replay(folder: Path, state: State) -> list[str]:
    """Names of what differs from a replay of the whole journal."""
    journal = Journal(folder / "journal.sqlite")
    found = difference(state, replay(journal))
    journal.close()
    return found


def damaged_snapshot(killed: Killed, place: Path, n: int, seed: int = 0) -> dict[str, int]:
    """Flip a bit of the newest snapshot ``n`` times: the one before and the journal give the same model."""
    rng, fell_back = np.random.default_rng(seed), 0
    for _ in range(n):
        folder = copy_of(killed.folder, place / "damaged")
        flipped(folder, rng)
        state, written, writer = restarted(folder)
        fell_back += len(writer.damaged_snapshots)
        assert killed.acknowledged <= set(written)
        assert difference(state, killed.recovered) == []
    assert fell_back == n, "a flipped bit was not noticed"
    return {"cases": n, "fell_back": fell_back}


# --- kills at work on the folder --------------------------------------------------------------------------------------

TRIM = """
from shoal.store.journal import Journal
journal = Journal(FOLDER + "/journal.sqlite")
print("go", flush=True)
for upto in range(UPTO):
    journal.trim(upto + 1)
print("done", flush=True)
"""
BACKUP = """
from pathlib import Path
from shoal.service.folder import backup
print("go", flush=True)
for number in range(COPIES):
    backup(Path(FOLDER), Path(FOLDER + ".tar"))
print("done", flush=True)
"""


def killed_at(script: str, seconds: float) -> bool:
    """Run a script, kill it some time after it has said "go"; whether it was still at work."""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "go\n"
    time.sleep(seconds)
    process.send_signal(KILL)
    process.wait(60)
    at_work = "done" not in process.stdout.read()
    process.stdout.close()
    return at_work


def killed_trims(killed: Killed, place: Path, n: int, seed: int = 0) -> dict[str, int]:
    """Kill a trimming ``n`` times: the folder is whole, and gives the model that it gave before."""
    rng, facts = np.random.default_rng(seed), {"cases": n, "at_work": 0, "begun": 0}
    for _ in range(n):
        folder = copy_of(killed.folder, place / "damaged")
        upto = max(int(path.stem.split("-")[1]) for path in (folder / "snapshots").glob("snapshot-*"))
        script = TRIM.replace("FOLDER", repr(str(folder))).replace("UPTO", str(upto))
        facts["at_work"] += killed_at(script, float(rng.uniform(0, 0.2)))
        found = check(folder)
        assert found.is_whole, found.troubles
        state, _, writer = restarted(folder)
        assert not writer.journal.repair.entries_cut
        assert difference(state, killed.recovered) == []
        facts["begun"] += found.facts["first_entry"] != 1
    return facts


def killed_backups(killed: Killed, place: Path, n: int, seed: int = 0) -> dict[str, int]:
    """Kill a backup ``n`` times: the folder is as it was, and the copy is whole or not there.

    Kills fall within the time of two backups, one after the other, so that there are copies that were finished before.
    """
    rng = np.random.default_rng(seed)
    facts = {"cases": n, "copies_whole": 0, "copies_not_there": 0, "half_made": 0}
    folder = copy_of(killed.folder, place / "damaged")
    longest = 2 * seconds_of_a_backup(folder)
    for _ in range(n):
        folder = copy_of(killed.folder, place / "damaged")
        copy = folder.with_name(folder.name + ".tar")
        copy.unlink(missing_ok=True)
        assert killed_at(backup_script(folder, 1000), float(rng.uniform(0, longest)))
        half_made = list(place.glob(".backup-*"))
        facts["half_made"] += len(half_made)
        for left in half_made:
            shutil.rmtree(left)
        assert check(folder).is_whole
        folders = [folder]
        if copy.exists():
            folders.append(copy_of(folder, place / "restored"))
            shutil.rmtree(place / "restored")
            with tarfile.open(copy) as tar:
                tar.extractall(place / "restored", filter="data")
            assert check(place / "restored").is_whole
        facts["copies_whole" if copy.exists() else "copies_not_there"] += 1
        for one in folders:
            assert difference(restarted(one)[0], killed.recovered) == []
    return facts


def backup_script(folder: Path, copies: int) -> str:
    return BACKUP.replace("FOLDER", repr(str(folder))).replace("COPIES", str(copies))


def seconds_of_a_backup(folder: Path) -> float:
    """How long one backup takes in a process of its own, without its start."""
    script = [sys.executable, "-c", backup_script(folder, 1)]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "go\n"
        began = time.monotonic()
        assert process.stdout.readline() == "done\n"
        return time.monotonic() - began


# --- a full disk ------------------------------------------------------------------------------------------------------


def fill_and_free(client: httpx.Client, disk: Path, sent: int) -> int:
    """Fill the disk, teach until it is refused with 507, ask meanwhile, free the disk and go on; items sent by then."""
    stats = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(stats.f_bavail * stats.f_frsize))
    for _ in range(200):
        answer = client.post("/learn", json={"items": items(5, start=sent)})
        if answer.status_code == 507:
            break
        assert answer.status_code == 202
        sent += 5
    assert answer.status_code == 507
    assert "disk" in answer.json()["error"]["message"]
    assert client.get("/healthz").json()["read_only"]
    assert "shoal_read_only 1" in client.get("/metrics").text
    assert client.post("/assign", json={"items": items(2)}).status_code == 200
    (disk / "filler").unlink()
    wait_until(lambda: client.post("/learn", json={"items": items(5, start=sent)}).status_code == 202)
    learned(client, items(5, start=sent + 5))
    assert client.get("/stats").json()["read_only"] is None
    assert client.get("/stats").json()["items"] == sent + 10
    return sent + 10
