"""Folds on a Dask cluster: the same kernels, the same tree of merges, so the same bits as on threads."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engine.fold import Folded, loaded
from shoal.engine.tree import Tree
from shoal.errors import MissingExtra
from shoal.progress import message

if TYPE_CHECKING:
    from distributed import Client, Future

MOST_PLACED = 4  # lists of blocks kept on the workers: those of the data, of a sample, of seeds
RETRIES = 3  # of a task whose worker died under it
MOST_BEHIND = 10  # passes that what a block remembers may have to be computed again from
LOCAL = ("tcp://127.0.0.1:", "tcp://localhost:", "inproc://")  # addresses of workers that share this machine's files


class Dask:
    """Runs the blocks of a pass on the workers of a Dask cluster.

    Blocks are placed on the workers once and stay there from pass to pass, and so does what each remembers. Only the
    model and the merged statistics travel. Everything is the result of a task, nothing is scattered and nothing is
    an actor: what a lost worker held is computed again by Dask from what it was made of. Seeds are part of a
    model or a block, so where a task runs changes nothing.

    What a block remembers comes of the pass before, and that of the one before it, so the scheduler keeps the tasks of
    all passes, models included. Where the workers share a folder, that ends after a few passes: memories are written
    there, and the next pass begins with reading them.

    Parameters
    ----------
    client : distributed.Client, str or None
        A client, the address of a scheduler, or None: the client that is current, else a cluster on this machine.
    folder : str, Path or None
        A folder that client and workers see under the same name. None: that of temporary files, if all workers are on
        this machine.
    """

    def __init__(self, client: Client | str | None = None, folder: str | Path | None = None) -> None:
        self.client = _client_of(client)
        self.folder = folder or (tempfile.gettempdir() if _is_local(self.client) else None)
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
        behind = memories.behind if isinstance(memories, RemoteMemories) else 0
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
        if not keeps:
            return Folded(stats, None)
        files = memories.files if isinstance(memories, RemoteMemories) else None
        kept = RemoteMemories(self.client, results, behind + 1, files)
        if kept.behind >= MOST_BEHIND and self.folder is not None:
            kept = self._written(kept)
        return Folded(stats, kept)  # type: ignore[arg-type]

    @contextmanager
    def session(self) -> Iterator[None]:
        """Blocks that are placed on the workers inside are released at the end."""
        before, needed = set(self._placed), set(self._needs)
        try:
            yield
        finally:
            self._placed = {key: value for key, value in self._placed.items() if key in before}
            self._needs = {key: value for key, value in self._needs.items() if key in needed}

    def _written(self, memories: RemoteMemories) -> RemoteMemories:
        """The same memories in files, so that the passes they came of can be forgotten."""
        files = tempfile.TemporaryDirectory(prefix="shoal-memories-", dir=self.folder)
        paths = [f"{files.name}/{at}" for at in range(len(memories))]
        for written in [self._submit(_write, *pair) for pair in zip(memories.futures, paths, strict=True)]:
            written.result()
        return RemoteMemories(self.client, [self._submit(_read, path) for path in paths], 0, files)

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
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # a value that is part of a task can be recomputed
            # pure=False: keys are never derived from the arguments, which may be large and costly to hash.
            return self.client.submit(function, *arguments, pure=False, retries=RETRIES)


class RemoteMemories(Sequence[Any]):
    """What blocks remember, left on the workers; an item is fetched when it is read."""

    def __init__(
        self, client: Client, futures: list[Future], behind: int, files: tempfile.TemporaryDirectory[str] | None
    ) -> None:
        self.client, self.futures = client, futures
        self.behind = behind  # passes since the memories were last in files
        self.files = files  # from which they can be computed again; removed when nobody has such memories any more

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a taken port of the dashboard: its address is printed below
        opened = Client(client) if client else Client()  # stays current, for the next pass
    message(f"Dask: {len(opened.scheduler_info()['workers'])} workers, dashboard at {opened.dashboard_link}")
    return opened


def _is_local(client: Client) -> bool:
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return bool(workers) and all(address.startswith(LOCAL) for address in workers)


def _write(memory: Any, path: str) -> None:
    # Under another name first: a task may run twice when a worker is lost.
    with tempfile.NamedTemporaryFile(dir=Path(path).parent, delete=False) as part:
        pickle.dump(memory, part, protocol=pickle.HIGHEST_PROTOCOL)
    Path(part.name).replace(path)


def _read(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


def _same(value: Any) -> Any:
    return value


def _load(block: Any, *needs: Any) -> Any:
    return block.load(*needs)


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]
