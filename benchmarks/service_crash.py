"""Kill a service again and again under four writers, and damage what it left: nothing acknowledged may be missing.

    python benchmarks/service_crash.py kills [kills] [bernoulli kmeans stream]
    python benchmarks/service_crash.py damage [cases] [bernoulli kmeans stream] ["killed backup" ...]
    python benchmarks/service_crash.py disk [rounds]

"kills": SIGKILL at random moments; after every 20, each acknowledged item is in the journal and in the model exactly
once, and the recovered model is, bit for bit, a replay of the journal. "damage": torn and zero-filled tails of the
journal, a flipped bit in the newest snapshot, kills during trimming and during backup, each so many times. "disk" (as
root): a tmpfs of 4 MB, filled and freed. A line is written only if every check held.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from common import Timer, record
from service.crashes import Starter, crash
from service.damage import (
    damaged_snapshot,
    damaged_tail,
    fill_and_free,
    killed_backups,
    killed_service,
    killed_trims,
    torn,
    zeroed,
)
from service.samples import items, learned, new_model, running
from shoal.service.folder import check

KINDS = ("bernoulli", "kmeans", "stream")
KILLS_A_ROUND = 20


def kills(n_kills: int, kinds: tuple[str, ...]) -> None:
    starter = Starter()
    for number, start in enumerate(range(0, n_kills, KILLS_A_ROUND)):
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder, Timer() as timer:
                n = min(KILLS_A_ROUND, n_kills - start)
                found = crash(Path(folder) / "service", kind, n, starter, seed=100 + number, most=120)
            record("service", workload="kills", model=kind, round=number, seconds=timer.seconds, **found)
    starter.close()


def damage(n_cases: int, kinds: tuple[str, ...], names: tuple[str, ...]) -> None:
    starter = Starter()
    for kind in kinds:
        with tempfile.TemporaryDirectory() as made:
            place = Path(made)
            killed = killed_service(place, kind, starter)
            cases = {
                "torn tail": lambda: damaged_tail(killed, place, torn, n_cases),  # noqa: B023 -- used at once
                "zeroed tail": lambda: damaged_tail(killed, place, zeroed, n_cases),  # noqa: B023
                "flipped bit in snapshot": lambda: damaged_snapshot(killed, place, n_cases),  # noqa: B023
                "killed trimming": lambda: killed_trims(killed, place, n_cases),  # noqa: B023
                "killed backup": lambda: killed_backups(killed, place, n_cases),  # noqa: B023
            }
            for name in names or tuple(cases):
                case = cases[name]
                with Timer() as timer:
                    found = case()
                record("service", workload=name, model=kind, seconds=timer.seconds, **found)
    starter.close()


def disk(rounds: int) -> None:
    for kind in KINDS:
        with small_disk() as place, Timer() as timer:
            options = {"reserve_mb": 0.0, "snapshot_seconds": 0.3}
            with running(place / "s", new_model(kind), **options) as client:
                learned(client, items(100))
                sent = 100
                for _ in range(rounds):
                    sent = fill_and_free(client, place, sent)
            assert check(place / "s").is_whole
        record("service", workload="full disk", model=kind, cases=rounds, items=sent, seconds=timer.seconds)


@contextmanager
def small_disk():
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], check=True)
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", "-l", place], check=True)


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "kills"
    n = int(sys.argv[2]) if len(sys.argv) > 2 else {"kills": 100, "damage": 50, "disk": 5}[what]
    kinds = tuple(word for word in sys.argv[3:] if word in KINDS) or KINDS
    names = tuple(word for word in sys.argv[3:] if word not in KINDS)
    {"kills": lambda: kills(n, kinds), "damage": lambda: damage(n, kinds, names), "disk": lambda: disk(n)}[what]()


if __name__ == "__main__":
    main()
