"""Folds on a Dask cluster: the same kernels, the same tree of merges, so the same bits as on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shoal.engine.fold import Folded, loaded
from shoal.engine.tree import Tree
from shoal.errors import MissingExtra
from shoal.progress import message

if TYPE_CHECKING:
    from distributed import Client, Future

MOST_PLACED = 4  # lists of blocks kept on the workers: those of the data, of a sample, of seeds
RETRIES = 3  # of a task whose worker died under it


class Dask:
    """Runs the blocks of a pass on the workers of a Dask cluster.

    Blocks are placed on the workers once and stay there from pass to pass, and so does what each remembers. Only the
    model and the merged statistics travel. Everything is the result of a task, nothing is scattered and nothing is
    an actor: what a lost worker held is computed again by Dask from what it was made of. Seeds are part of a
    model or a block, so where a task runs changes nothing.

    Parameters
    ----------
    client : distributed.Client, str or None
        A client, the address of a scheduler, or None: the client that is current, else a cluster on this machine.
    """

    def __init__(self, client: Client | str | None = None) -> None:
        self.client = _client_of(client)
        self._placed: dict[int, tuple[Any, list[Future]]] = {}
        self._needs: dict[int, tuple[Any, Future]] = {}

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
        del n_threads  # each worker runs as many tasks at a time as it has threads
        keeps = isinstance(blocks, Sequence)
        placed = self._place(blocks) if isinstance(blocks, Sequence) else map(self._submit_block, blocks)
        carried = self._submit(_same, model)
        remembered = memories.futures if isinstance(memories, RemoteMemories) else memories
        tree: Tree[Future] = Tree(lambda one, other: self._submit(merge, one, other))
        results = []
        for at, block in enumerate(placed):
            memory = remembered[at] if remembered is not None else None
            result = self._submit(accumulate, block, carried, memory)
            tree.add(self._submit(_first, result))
            if keeps:
                results.append(self._submit(_second, result))
        stats = tree.result().result()
        return Folded(stats, RemoteMemories(self.client, results) if keeps else None)  # type: ignore[arg-type]

    def close(self) -> None:
        """Let the workers forget the blocks; the cluster stays."""
        self._placed.clear()
        self._needs.clear()

    def _place(self, blocks: Sequence[Any]) -> list[Future]:
        known = self._placed.get(id(blocks))
        if known is None or known[0] is not blocks:
            if len(self._placed) >= MOST_PLACED:
                del self._placed[next(iter(self._placed))]
            known = self._placed[id(blocks)] = (blocks, [self._submit_block(block) for block in blocks])
        return known[1]

    def _submit_block(self, block: Any) -> Future:
        if not hasattr(block, "needs"):
            return self._submit(loaded, block)
        return self._submit(_load, block.bare(), *map(self._needed, block.needs()))

    def _needed(self, value: Any) -> Any:
        """A task that holds what blocks need; made once for all of them."""
        if hasattr(value, "dask"):
            return self.client.compute(value)
        if value is None or isinstance(value, str | int | float):
            return value
        known = self._needs.get(id(value))
        if known is None or known[0] is not value:
            if len(self._needs) >= MOST_PLACED:
                del self._needs[next(iter(self._needs))]
            known = self._needs[id(value)] = (value, self._submit(_same, value))
        return known[1]

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        # pure=False: keys are never derived from the arguments, which may be large and costly to hash.
        return self.client.submit(function, *arguments, pure=False, retries=RETRIES)


class RemoteMemories(Sequence[Any]):
    """What blocks remember, left on the workers; an item is fetched when it is read."""

    def __init__(self, client: Client, futures: list[Future]) -> None:
        self.client, self.futures = client, futures

    def __len__(self) -> int:
        return len(self.futures)

    def __getitem__(self, at: Any) -> Any:
        return self.client.gather(self.futures[at])

    def __iter__(self) -> Iterator[Any]:
        for future in self.futures:
            yield self.client.gather(future)


def _client_of(client: Client | str | None) -> Client:
    try:
        from distributed import Client, get_client
    except ImportError:
        raise MissingExtra(
            "engine='dask' needs Dask, which is not installed. Install it with: pip install 'shoal[dask]'"
        ) from None
    if client is not None and not isinstance(client, str):
        return client
    try:
        known = get_client()
    except ValueError:
        known = None
    if known is not None and client in (None, known.scheduler.address):
        return known
    opened = Client(client) if client else Client()  # stays current, for the next pass
    message(f"Dask: {len(opened.scheduler_info()['workers'])} workers, dashboard at {opened.dashboard_link}")
    return opened


def _same(value: Any) -> Any:
    return value


def _load(block: Any, *needs: Any) -> Any:
    return block.load(*needs)


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]
