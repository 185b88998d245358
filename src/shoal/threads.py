"""Work cut into fixed blocks of rows, run on threads, and given back in block order.

The blocks depend on the data alone, so the answer is the same on one thread and on sixteen.
Kernels release the interpreter lock, so plain threads are enough.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from numbers import Integral
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from shoal.errors import BadInput

MOST_THREADS = 1024

Result = TypeVar("Result")
Item = TypeVar("Item")


def n_threads_available() -> int:
    """Cores this process may use; ``SHOAL_NUM_THREADS`` overrides it."""
    asked = os.environ.get("SHOAL_NUM_THREADS")
    if asked is not None:
        if not (asked.isascii() and asked.isdigit() and 1 <= int(asked) <= MOST_THREADS):
            raise BadInput(f"SHOAL_NUM_THREADS is {asked!r}; set it to a whole number from 1 to {MOST_THREADS}.")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def n_threads_of(n_threads: int | None) -> int:
    """The number of threads that ``n_threads=`` asks for: None and -1 mean all cores.

    >>> n_threads_of(3)
    3
    """
    if n_threads is None or n_threads == -1:
        return n_threads_available()
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise BadInput(f"n_threads is {n_threads!r}; it must be a whole number, 1 or more, or None for all cores.")
    return int(n_threads)


def row_blocks(n_rows: int, block_rows: int) -> list[tuple[int, int]]:
    """Cut ``n_rows`` into half-open ranges of at most ``block_rows``.

    >>> row_blocks(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + block_rows, n_rows)) for start in range(0, n_rows, block_rows)]


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """``map(function, items)`` on threads; results come in the order of ``items``, which are read a few ahead at most.

    >>> list(ordered_map(lambda x: x * x, [1, 2, 3], n_threads=2))
    [1, 4, 9]
    """
    n_threads = n_threads_of(n_threads)
    if isinstance(items, Sized):
        n_threads = min(n_threads, len(items))
    if n_threads <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        # A short queue keeps finished but unread results (they may be large) from piling up.
        waiting: deque[Future[Result]] = deque()
        for item in items:
            if len(waiting) == 2 * n_threads:
                yield waiting.popleft().result()
            waiting.append(pool.submit(function, item))
        while waiting:
            yield waiting.popleft().result()


class SharedLock:
    """Many threads may ask at once, or one may learn. Neither nests; one that waits to learn goes before new askers."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asking = 0
        self._learning = False
        self._waiting = 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Shared with other askers."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._learning or self._waiting))
            self._asking += 1
        try:
            yield
        finally:
            with self._changed:
                self._asking -= 1
                self._changed.notify_all()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Alone."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not (self._learning or self._asking))
                self._learning = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._learning = False
                self._changed.notify_all()


_locks: WeakKeyDictionary[Any, SharedLock] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)  # those who held them are not in the child


def lock_of(model: Any) -> SharedLock:
    """The lock of a model that learns in place. It is kept outside the model, which is copied, pickled and stored."""
    lock = _locks.get(model)
    return lock if lock is not None else _locks.setdefault(model, SharedLock())
