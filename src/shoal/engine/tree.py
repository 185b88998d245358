"""Merging in a tree whose shape depends on the number of blocks alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Stats = TypeVar("Stats")


class Tree(Generic[Stats]):
    """Merges statistics in order, pairwise: (0 1) (2 3), then ((0 1) (2 3)), and so on.

    Floating-point sums depend on the order of their terms. Here the order depends only on the number of blocks, so
    results are bitwise identical on any number of workers. At most log2(blocks) + 1 partial results are kept.

    Parameters
    ----------
    merge : callable
        ``merge(stats, stats) -> stats``.

    Examples
    --------
    >>> tree = Tree(lambda a, b: f"({a} {b})")
    >>> for block in range(5):
    ...     tree.add(block)
    >>> tree.result()
    '(((0 1) (2 3)) 4)'
    """

    def __init__(self, merge: Callable[[Stats, Stats], Stats]) -> None:
        self.merge = merge
        self.parts: list[tuple[int, Stats]] = []  # (height, merged blocks), highest first

    def add(self, stats: Stats) -> None:
        """Append the statistics of the next block."""
        height = 0
        while self.parts and self.parts[-1][0] == height:
            stats = self.merge(self.parts.pop()[1], stats)
            height += 1
        self.parts.append((height, stats))

    def result(self) -> Stats:
        """All that was added, merged."""
        if not self.parts:
            raise ValueError("nothing to merge: there are no blocks")
        stats = self.parts[-1][1]
        for _, earlier in reversed(self.parts[:-1]):
            stats = self.merge(earlier, stats)
        return stats
