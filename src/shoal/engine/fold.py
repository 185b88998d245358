"""``fold``: every pass over data, in every model, on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol, TypeVar

from shoal.base import transaction
from shoal.errors import BadInput

Stats = TypeVar("Stats")
Model = TypeVar("Model")


class Folded(NamedTuple):
    """What a pass over all blocks gives."""

    stats: Any  # merged over all blocks
    memories: list[Any] | None  # what each block keeps for its next pass; None where blocks came from an iterator


class Engine(Protocol):
    """Runs a pass over blocks. A new back end is one class with this method."""

    def fold(
        self,
        blocks: Iterable[Any],
        accumulate: Callable[..., tuple[Any, Any]],
        merge: Callable[[Any, Any], Any],
        model: Any,
        *,
        memories: Sequence[Any] | None = None,
        n_threads: int | None = None,
    ) -> Folded: ...


_engine: ContextVar[Engine | None] = ContextVar("shoal_engine", default=None)


def current() -> Engine:
    """The engine in use: threads, unless :func:`using` selected another.

    Examples
    --------
    >>> import shoal
    >>> type(shoal.engine.current()).__name__
    'Threads'
    """
    from shoal.engine.threads import Threads

    return _engine.get() or Threads()


@contextmanager
def using(engine: Any) -> Iterator[Engine]:
    """Run the passes inside on another engine.

    Parameters
    ----------
    engine : Engine, str or distributed.Client
        "threads"; "dask" for the Dask client that is current, or a cluster on this machine if there is none; the
        address of a Dask scheduler (``"tcp://..."``); a Dask client; or an engine.

    Examples
    --------
    >>> import shoal
    >>> with shoal.engine.using("threads"):
    ...     model = shoal.SphericalKMeans(2, random_state=0).fit([[1, 0], [0, 1]])
    """
    chosen = engine_of(engine)
    token = _engine.set(chosen)
    try:
        yield chosen
    finally:
        _engine.reset(token)


@contextmanager
def learning(estimator: Any) -> Iterator[None]:
    """A learning step: rolled back if it fails, with the engine that ``estimator.engine`` names.

    "threads" keeps the engine that :func:`using` selected.

    Parameters
    ----------
    estimator : Estimator
        The estimator that learns.
    """
    chosen = current()
    if estimator.engine != "threads":
        named = engine_of(estimator.engine)
        chosen = chosen.over(named) if hasattr(chosen, "over") else named  # passes are written down on any engine
    placing = chosen.session() if hasattr(chosen, "session") else nullcontext()
    with using(chosen), placing, transaction(estimator):
        yield


def engine_of(engine: Any) -> Engine:
    """The engine for a value of ``engine=``.

    Parameters
    ----------
    engine : Engine, str or distributed.Client
        As in :func:`using`.

    Examples
    --------
    >>> import shoal
    >>> type(shoal.engine.engine_of("threads")).__name__
    'Threads'
    """
    from shoal.engine.threads import Threads

    if engine is None or engine == "threads":
        return Threads()
    if hasattr(engine, "fold"):
        return engine  # type: ignore[no-any-return]
    address = isinstance(engine, str) and "://" in engine
    if engine == "dask" or address or hasattr(engine, "submit"):
        from shoal.engine.dask import Dask

        return Dask(None if engine == "dask" else engine)
    raise BadInput(
        f"engine is {engine!r}; it must be 'threads', 'dask', the address of a Dask scheduler (tcp://...), or a Dask "
        "client."
    )


def loaded(block: Any) -> Any:
    """The rows of a block; one that only names where they are (a part of a file) is read where it is used.

    Such a block has ``load(*needs)``, and what it needs may be the same for many blocks, so that an engine brings it
    to each place once: ``needs()`` says what, and ``bare()`` is the block without.
    """
    if not hasattr(block, "load"):
        return block
    needs = block.needs() if hasattr(block, "needs") else ()
    return block.load(*(need.compute() if hasattr(need, "dask") else need for need in needs))


def fold(
    blocks: Iterable[Any],
    accumulate: Callable[..., tuple[Stats, Any]],
    merge: Callable[[Stats, Stats], Stats],
    model: Model,
    *,
    memories: Sequence[Any] | None = None,
    n_threads: int | None = None,
) -> Folded:
    """One pass over the blocks: accumulate each against the model, merge the statistics in a tree.

    Parameters
    ----------
    blocks : sequence or iterator
        Anything ``accumulate`` can read: row blocks of a matrix, datasets from ``read_batches``, files. An iterator is
        read once, a few blocks ahead at most, and memories are not kept.
    accumulate : callable
        ``accumulate(block, model, memory=None) -> (stats, memory)``; pure, and safe to run on several threads.
    merge : callable
        ``merge(stats, stats) -> stats``; associative, changes neither argument.
    model : the model the pass runs against; it stays as it is.
    memories : sequence, optional
        What the blocks kept in the pass before, one for each block.
    n_threads : int, optional
        Threads to use; None means all cores. It does not change the result.

    Examples
    --------
    The mean of rows in two blocks:

    >>> import numpy as np
    >>> def accumulate(rows, model, memory=None):
    ...     return (len(rows), rows.sum()), memory
    >>> def merge(a, b):
    ...     return a[0] + b[0], a[1] + b[1]
    >>> n, total = fold([np.array([1.0, 2.0]), np.array([6.0])], accumulate, merge, None).stats
    >>> float(total / n)
    3.0
    """
    return current().fold(blocks, accumulate, merge, model, memories=memories, n_threads=n_threads)
