"""Counts and times of requests, and the state of the service, as Prometheus reads them."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Requests by route and status, with a histogram of their times.

    >>> metrics = Metrics()
    >>> metrics.count("POST", "/assign", 200, 0.004)
    >>> "shoal_requests_total{method=\\"POST\\",route=\\"/assign\\",status=\\"200\\"} 1" in metrics.text([])
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._times: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        with self._lock:
            self._requests[method if method in ("GET", "POST", "HEAD") else "OTHER", route, status] += 1
            self._times[route][bisect_left(BUCKETS, seconds)] += 1
            self._seconds[route] += seconds

    def text(self, gauges: Iterable[tuple[str, str, str, float]]) -> str:
        """All in Prometheus' text format; gauges are (name, type, help, value)."""
        lines = ["# HELP shoal_requests_total Requests answered.", "# TYPE shoal_requests_total counter"]
        with self._lock:
            for (method, route, status), n in sorted(self._requests.items()):
                labels = f'method="{method}",route="{route}",status="{status}"'
                lines.append(f"shoal_requests_total{{{labels}}} {n}")
            lines += ["# HELP shoal_request_seconds Time to answer.", "# TYPE shoal_request_seconds histogram"]
            for route, counts in sorted(self._times.items()):
                total = 0
                for upto, n in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                    total += n
                    lines.append(f'shoal_request_seconds_bucket{{route="{route}",le="{upto}"}} {total}')
                lines.append(f'shoal_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
                lines.append(f'shoal_request_seconds_count{{route="{route}"}} {total}')
        for name, kind, help_, value in gauges:
            lines += [f"# HELP shoal_{name} {help_}", f"# TYPE shoal_{name} {kind}", f"shoal_{name} {value:g}"]
        return "\n".join(lines) + "\n"
