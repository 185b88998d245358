"""``shoal plan`` against what the fit then needed: five models, three sizes.

python benchmarks/cli_plan.py [items ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from common import record

MODELS = {
    "kmeans": (["--model", "kmeans", "-k", "100"], "text"),
    "bernoulli": (["--model", "bernoulli", "-k", "100"], "tags"),
    "mixture": (["--model", "mixture", "-k", "50", "--set", "n_sweeps=20"], "tags"),
    "gaussian": (["--model", "mixture", "-k", "20", "--set", "family=gaussian", "--set", "n_sweeps=20"], "numbers"),
    "stream": (["--model", "stream", "--time", "time"], "tags"),
}


def write_table(path: Path, kind: str, n: int) -> list[str]:
    """Zipf-distributed features around 200 topics, or numbers around 20 centers; the flags to read them."""
    rng = np.random.default_rng(0)
    if kind == "numbers":
        centers = rng.normal(0, 10, (20, 12))
        values = centers[rng.integers(0, 20, n)] + rng.normal(0, 1, (n, 12))
        pq.write_table(pa.table({f"x{at}": values[:, at] for at in range(12)}), path)
        return ["--numeric"]
    topic = rng.integers(0, 200, n)
    words = (rng.zipf(1.3, (n, 8)) % 5_000 + 100 * topic[:, None]) % 40_000
    names = np.array([f"w{at}" for at in range(40_000)])[words]
    columns = {"id": np.arange(n), "time": 1.6e9 + np.arange(n) * 60.0}
    if kind == "text":
        pq.write_table(pa.table({**columns, "text": [" ".join(row) for row in names]}), path)
        return ["--item", "id", "--text", "text"]
    lists = pa.ListArray.from_arrays(np.arange(0, 8 * n + 1, 8, dtype=np.int32), pa.array(names.ravel()))
    pq.write_table(pa.table({**columns, "tags": lists}), path)
    return ["--item", "id", "--features", "tags"]


def shoal(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "shoal", *arguments, "--json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or [30_000, 100_000, 300_000]
    for n in sizes:
        for name, (model, kind) in MODELS.items():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "t.parquet")
                arguments = [str(path), *write_table(path, kind, n), *model]
                planned = shoal("plan", *arguments)
                done = shoal("fit", *arguments, "--out", f"{folder}/m.shoal")
            seconds = sum(value for fact, value in done.items() if fact.startswith("seconds_"))
            record(
                "cli_plan",
                model=name,
                items=n,
                features=done["features"],
                planned_mb=planned["peak_mb"],
                peak_mb=done["peak_mb"],
                memory_off=round(planned["peak_mb"] / done["peak_mb"] - 1, 3),
                planned_seconds=planned["seconds"],
                seconds=round(seconds, 2),
            )


if __name__ == "__main__":
    main()
