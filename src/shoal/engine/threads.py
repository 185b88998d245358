"""The default engine: threads of this process. Kernels release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shoal.engine.fold import Folded, loaded
from shoal.engine.tree import Tree
from shoal.threads import ordered_map


class Threads:
    """Runs the blocks of a pass on threads and merges them in block order."""

    def fold(
        self,
        blocks: Iterable[Any],
        accumulate: Callable[..., tuple[Any, Any]],
        merge: Callable[[Any, Any], Any],
        model: Any,
        *,
        memories: Sequence[Any] | None = None,
        n_threads: int | None = None,
    ) -> Folded:
        """See :func:`shoal.engine.fold`."""
        tree: Tree[Any] = Tree(merge)
        if not isinstance(blocks, Sequence):
            for stats, _ in ordered_map(lambda block: accumulate(loaded(block), model), blocks, n_threads):
                tree.add(stats)
            return Folded(tree.result(), None)
        memories = [None] * len(blocks) if memories is None else memories
        kept = []
        passes = zip(blocks, memories, strict=True)
        for stats, memory in ordered_map(
            lambda pair: accumulate(loaded(pair[0]), model, pair[1]), list(passes), n_threads
        ):
            tree.add(stats)
            kept.append(memory)
        return Folded(tree.result(), kept)
