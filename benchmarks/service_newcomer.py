"""A newcomer's first minutes, timed: from ``pip install`` to a page with the clusters of a CSV that learns from curl.

    python benchmarks/service_newcomer.py [WHEEL]      # without a wheel: this source tree, whose kernels are compiled

A fresh virtual environment, an empty home, the commands of docs/service.md one after the other. One JSON line.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from pathlib import Path

import numpy as np

from common import ROOT, Timer, record

PORT = 8799
URL = f"http://127.0.0.1:{PORT}"


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else str(ROOT)
    with tempfile.TemporaryDirectory(prefix="shoal-newcomer-") as made:
        folder = Path(made)
        (folder / "home").mkdir()
        write_shop(folder / "shop.csv")
        with Timer() as installing:
            venv.create(folder / "venv", with_pip=True)
            run(folder, "pip", "install", "--quiet", f"{what}[service]")
        with Timer() as fitting:
            columns = ["--item", "id", "--features", "tags"]
            run(folder, "shoal", "fit", "shop.csv", "--model", "bernoulli", "-k", "20", *columns, "--out", "shop.shoal")
        facts = serve(folder)
        total = installing.seconds + fitting.seconds + facts["ready_seconds"] + facts["learned_seconds"]
        record(
            "service", workload="newcomer", rows=600, wheel=what.endswith(".whl"), install_seconds=installing.seconds,
            fit_seconds=fitting.seconds, total_seconds=total, load_average=os.getloadavg()[0], **facts,
        )  # fmt: skip


def write_shop(path: Path) -> None:
    """A CSV of 600 items of six kinds."""
    rng = np.random.default_rng(0)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "tags"])
        for item in range(600):
            words = rng.choice(12, 5, replace=False)
            table.writerow([f"item-{item}", ";".join([f"kind{item % 6}-{word}" for word in words])])


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHOAL", "NUMBA", "PYTHON"))}
    return kept | {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home" / "cache")}


def run(folder: Path, *command: str) -> None:
    program = folder / "venv" / "bin" / command[0]
    subprocess.run([program, *command[1:]], cwd=folder, env=environment(folder), check=True, stdout=subprocess.DEVNULL)


def serve(folder: Path) -> dict[str, float]:
    """Start the service, look at the page, teach it with curl."""
    program = [folder / "venv" / "bin" / "shoal", "serve", "shop.shoal", "--port", str(PORT), "--reserve-mb", "1"]
    with open(folder / "log", "w") as log:
        service = subprocess.Popen(program, cwd=folder, env=environment(folder), stderr=log)
    try:
        with Timer() as ready:
            while not answers("/readyz"):
                assert service.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
        page, clusters = get("/"), json.loads(get("/clusters"))
        assert b"<title>shoal</title>" in page
        assert clusters["total"] > 1
        item = {"items": [{"id": "a1", "features": ["kind0-1", "kind0-2"]}]}
        curl = ["curl", "-s", "-X", "POST", f"{URL}/learn?wait=30", "-H", "Content-Type: application/json"]
        with Timer() as learned:
            done = subprocess.run([*curl, "-d", json.dumps(item)], capture_output=True, check=True)
        assert json.loads(done.stdout)["learned"], done.stdout
        return {"ready_seconds": ready.seconds, "learned_seconds": learned.seconds, "clusters": clusters["total"]}
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0


def answers(path: str) -> bool:
    try:
        get(path)
    except (urllib.error.URLError, OSError):
        return False
    return True


def get(path: str) -> bytes:
    with urllib.request.urlopen(URL + path, timeout=30) as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    main()
