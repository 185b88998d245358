"""A fit that can be taken up again: every pass is written down, and the same work finds what is there already.

A fit is a sequence of passes with a little arithmetic between them, and both are determined by the data, the options
and the seed. So it is enough to keep, of each pass, the merged statistics, and of each block what it remembers. After
the client or the scheduler died, the same fit takes finished passes from the folder and goes on with the first that is
missing: its answer has the bits of a fit that was never stopped. Models need not know.

Blocks write what they remember where they are, so workers must see the folder, as they must see the data. Files are
Python pickles: resume from folders of your own only.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from shoal.atomic import atomic_write
from shoal.engine.fold import Engine, Folded, current, using
from shoal.errors import BadInput
from shoal.progress import message

PASS = re.compile(r"pass-(\d{6})\.done")
WORK = "work.json"


class Slot(NamedTuple):
    """Where a block finds what it remembered and where it writes what it remembers."""

    before: Any  # a path, or the memory itself
    after: Path


@dataclass(frozen=True)
class Remembering:
    """``accumulate`` with the block's memory in files; runs where the block is."""

    accumulate: Callable[..., tuple[Any, Any]]

    def __call__(self, block: Any, model: Any, slot: Any = None) -> tuple[Any, None]:
        memory = _read(slot.before) if isinstance(slot.before, Path) else slot.before
        stats, memory = self.accumulate(block, model, memory)
        # Not flushed to the disk, as the pass itself is: many small files a pass, which only a crash of the whole
        # machine would lose.
        part = slot.after.with_name(f"{slot.after.name}.{os.getpid()}.part")
        part.write_bytes(pickle.dumps(memory, protocol=pickle.HIGHEST_PROTOCOL))
        part.replace(slot.after)
        return stats, None


class StoredMemories(Sequence[Any]):
    """What blocks remember, in files; an item is read when it is asked for."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, at: Any) -> Any:
        return [_read(path) for path in self.paths[at]] if isinstance(at, slice) else _read(self.paths[at])


class Checkpointed:
    """An engine that writes down every pass of another, and takes from its folder those that are there.

    Parameters
    ----------
    engine : the engine that runs the passes
    folder : where passes are kept; the workers see it under the same name
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder = engine, folder
        self.number = 0  # of the next pass
        self.n_taken = 0  # passes that were found
        self._forgotten: list[list[Path]] = []

    def over(self, engine: Engine) -> Checkpointed:
        """Run the passes to come on another engine."""
        self.engine = engine
        return self

    def session(self) -> AbstractContextManager[None]:
        """That of the engine inside."""
        return self.engine.session() if hasattr(self.engine, "session") else nullcontext()

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
        done = self.folder / f"pass-{self.number:06d}.done"
        paths = [done.with_suffix(f".{at}") for at in range(len(blocks))] if isinstance(blocks, Sequence) else None
        self.number += 1
        if done.exists():
            self.n_taken += 1
            return Folded(_read(done), self._memories(paths))
        if paths is None:
            stats = self.engine.fold(blocks, accumulate, merge, model, n_threads=n_threads).stats
        else:
            slots = [Slot(before, after) for before, after in zip(_places(memories, len(paths)), paths, strict=True)]
            step = Remembering(accumulate)
            stats = self.engine.fold(blocks, step, merge, model, memories=slots, n_threads=n_threads).stats
        _write(done, stats)
        self._remove_forgotten()
        return Folded(stats, self._memories(paths))

    def _memories(self, paths: list[Path] | None) -> Any:
        if paths is None:
            return None
        memories = StoredMemories(paths)
        # Files of memories that nobody can ask for any more go, but only once a later pass is safe: a fit that is
        # stopped drops its memories, too, and will want them back.
        weakref.finalize(memories, self._forgotten.append, paths).atexit = False
        return memories

    def _remove_forgotten(self) -> None:
        while self._forgotten:
            for path in self._forgotten.pop():
                path.unlink(missing_ok=True)


@contextmanager
def checkpointed(folder: str | Path, *, resume: bool = False, work: dict[str, Any] | None = None) -> Iterator[None]:
    """Fits inside write every pass to ``folder`` and, with ``resume``, take finished ones from it.

    Parameters
    ----------
    folder : path
        A new or empty folder, or one of an earlier run. It is emptied when the block ends without an error.
    resume : bool
        Take up what the folder holds. The data, the options and the random state must be those of the first run.
    work : dict
        What is being done, as JSON; resuming another work is refused.

    Examples
    --------
    >>> import tempfile, numpy as np, shoal
    >>> from shoal.engine import checkpointed
    >>> X = np.eye(4)
    >>> with tempfile.TemporaryDirectory() as folder, checkpointed(folder):
    ...     model = shoal.SphericalKMeans(2, random_state=0).fit([X[:2], X[2:]])
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _check_folder(folder, work or {}, resume=resume)
    engine = Checkpointed(current(), folder)
    with using(engine):
        yield
    _empty(folder)


def _check_folder(folder: Path, work: dict[str, Any], *, resume: bool) -> None:
    kept = folder / WORK
    others = [path.name for path in folder.iterdir() if path.name != WORK and not path.name.startswith("pass-")]
    if others or (not kept.exists() and any(folder.iterdir())):
        raise BadInput(f"{folder} holds files of something else ({', '.join(others[:3])}); give a folder of its own.")
    described = json.loads(json.dumps(work, default=str))
    if resume and kept.exists():
        before = json.loads(kept.read_text())
        differing = sorted(name for name in {*before, *described} if before.get(name) != described.get(name))
        if differing:
            raise BadInput(
                f"{folder} is of a run with other {', '.join(differing)}. Resume with the same, or start anew without "
                "resume."
            )
        n_done = sum(bool(PASS.fullmatch(path.name)) for path in folder.iterdir())
        message(f"resuming after {n_done} passes")
    else:
        _empty(folder)
        with atomic_write(kept, "w") as out:
            json.dump(described, out)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink(missing_ok=True)


def _places(memories: Sequence[Any] | None, n: int) -> list[Any]:
    """What each block finds: the file that holds its memory, or the memory itself."""
    if memories is None:
        return [None] * n
    return list(memories.paths) if isinstance(memories, StoredMemories) else list(memories)


def _read(path: Path) -> Any:
    with open(path, "rb") as file:
        return pickle.load(file)


def _write(path: Path, value: Any) -> None:
    with atomic_write(path) as out:
        pickle.dump(value, out, protocol=pickle.HIGHEST_PROTOCOL)
