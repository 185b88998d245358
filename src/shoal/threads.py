"""Work cut into fixed blocks of rows, run on threads, and given back in block order.

The blocks depend on the data alone, so the answer is the same on one thread and on sixteen.
Kernels release the interpreter lock, so plain threads are enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from shoal.errors import BadInput

Result = TypeVar("Result")
Item = TypeVar("Item")


def n_threads_available() -> int:
    """Cores this process may use; ``SHOAL_NUM_THREADS`` overrides it."""
    asked = os.environ.get("SHOAL_NUM_THREADS")
    if asked is not None:
        if not asked.isdigit() or int(asked) < 1:
            raise BadInput(f"SHOAL_NUM_THREADS is {asked!r}; set it to a whole number of threads, 1 or more.")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def row_blocks(n_rows: int, block_rows: int) -> list[tuple[int, int]]:
    """Cut ``n_rows`` into half-open ranges of at most ``block_rows``.

    >>> row_blocks(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + block_rows, n_rows)) for start in range(0, n_rows, block_rows)]


def ordered_map(
    function: Callable[[Item], Result], items: Sequence[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """``map(function, items)`` on threads; results arrive in the order of ``items``, a few ahead at most.

    >>> list(ordered_map(lambda x: x * x, [1, 2, 3], n_threads=2))
    [1, 4, 9]
    """
    n_threads = min(n_threads or n_threads_available(), len(items))
    if n_threads <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        # A short queue keeps finished but unread results (they may be large) from piling up.
        ahead = 2 * n_threads
        waiting = [pool.submit(function, item) for item in items[:ahead]]
        for at in range(len(items)):
            result = waiting[at].result()
            waiting[at] = None  # type: ignore[call-overload]
            if at + ahead < len(items):
                waiting.append(pool.submit(function, items[at + ahead]))
            yield result
