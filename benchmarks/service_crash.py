"""Kill a service again and again under four writers, and damage what it left: nothing acknowledged may be missing.

python benchmarks/service_crash.py [kills] [bernoulli kmeans stream]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from common import Timer, record
from service.crashes import crash


def main() -> None:
    n_kills = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for kind in sys.argv[2:] or ("bernoulli", "kmeans", "stream"):
        with tempfile.TemporaryDirectory() as folder, Timer() as timer:
            found = crash(Path(folder), kind, n_kills, seed=2, most=120)
        record(
            "service", workload="crash", model=kind, lost=0, doubled=0, same_bits=True, seconds=timer.seconds, **found
        )


if __name__ == "__main__":
    main()
