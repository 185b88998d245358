"""Callers of a service for service_load.py: they keep a connection open and send one request after another.

    python benchmarks/service_callers.py URL VERB CALLERS SECONDS [SECONDS A REQUEST]

Prints the seconds of every request and how often each status came, as JSON. Little is imported, and nothing is measured
but the time from sending to having the whole answer.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
import urllib.parse
from typing import Any

import numpy as np

N_CLUSTERS, N_FEATURES, WORDS = 1000, 100_000, 10
ITEMS_A_REQUEST = 5
JSON = {"Content-Type": "application/json"}


def row_of(rng: np.random.Generator, cluster: int) -> np.ndarray:
    """Features of a row: mostly its cluster's own hundred."""
    own = cluster * 100 + rng.integers(0, 100, WORDS)
    return np.where(rng.random(WORDS) < 0.8, own, rng.integers(0, N_FEATURES, WORDS))


def body_of(verb: str, rng: np.random.Generator) -> bytes:
    names = [f"f{n}" for n in row_of(rng, int(rng.integers(N_CLUSTERS)))]
    bodies: dict[str, Any] = {
        "assign": {"features": names},
        "suggest": {"observed": names[:3], "n": 10},
        "learn": {"items": [{"features": names}] * ITEMS_A_REQUEST},
    }
    return json.dumps(bodies[verb]).encode()


class Caller(threading.Thread):
    """One connection."""

    def __init__(self, place: str, verb: str, seed: int, end: float, pace: float) -> None:
        super().__init__()
        self.place, self.verb, self.seed, self.end, self.pace = place, verb, seed, end, pace
        self.seconds: list[float] = []
        self.statuses: dict[int, int] = {}

    def run(self) -> None:
        rng = np.random.default_rng([self.seed, len(self.verb)])
        connection = http.client.HTTPConnection(self.place, timeout=60)
        while time.monotonic() < self.end:
            body, began = body_of(self.verb, rng), time.perf_counter()
            status = self.status_of(connection, body)
            self.seconds.append(time.perf_counter() - began)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if self.pace:
                time.sleep(max(0.0, self.pace - self.seconds[-1]))

    def status_of(self, connection: http.client.HTTPConnection, body: bytes) -> int:
        """The status of the answer; 0: there was none."""
        try:
            connection.request("POST", f"/{self.verb}", body, JSON)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return 0
        return answer.status


def main() -> None:
    url, verb, n_callers, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    pace = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0
    place, end = urllib.parse.urlsplit(url).netloc, time.monotonic() + seconds
    callers = [Caller(place, verb, seed, end, pace) for seed in range(n_callers)]
    for caller in callers:
        caller.start()
    statuses: dict[int, int] = {}
    for caller in callers:
        caller.join()
        for status, n in caller.statuses.items():
            statuses[status] = statuses.get(status, 0) + n
    print(json.dumps({"seconds": [one for caller in callers for one in caller.seconds], "statuses": statuses}))


if __name__ == "__main__":
    main()
