"""Categories, words and sets: shares of levels with Dirichlet and Beta priors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from shoal.base import storable
from shoal.families.distributions.columns.base import Column, Imputed
from shoal.families.distributions.counts import beta_interval
from shoal.families.kernels.column_kernels import CATEGORY, SETS, WORDS


@dataclass
class LevelsColumn(Column):
    """What categories, words and sets share: a prior mean for each level, and shares as posterior means."""

    mean: np.ndarray = field(default_factory=lambda: np.zeros(0))

    numbers_only: ClassVar[bool] = False
    first: ClassVar[int] = 2  # where the levels begin in the statistics

    @property
    def n_stats(self) -> int:
        return self.first + len(self.levels)

    @property
    def n_kept(self) -> int:
        return 1

    @property
    def n_parameters(self) -> int:
        return len(self.levels) - 1

    def hyperparameters(self) -> np.ndarray:
        return np.asarray(self.scale * self.mean)

    def posterior(self, part: np.ndarray) -> tuple[np.ndarray, float]:
        """(pseudo-counts of the levels, what they are a share of)."""
        a = np.asarray(self.scale * self.mean + part[self.first :])
        return a, float(a.sum())

    def labels(self) -> list[str]:
        return [f"{self.name} = {level}" for level in self.levels]

    def mean_of(self, part: np.ndarray) -> np.ndarray:
        a, total = self.posterior(part)
        return np.asarray(a / total)

    def interval_of(self, part: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        a, total = self.posterior(part)
        return beta_interval(a, np.maximum(total - a, 1e-9), share)  # a single level has a share of 1


@storable
@dataclass
class CategoryColumn(LevelsColumn):
    """One of several names, with a Dirichlet prior over each cluster's shares."""

    family: ClassVar[str] = "categorical"
    is_measured: ClassVar[bool] = False
    kind: ClassVar[int] = CATEGORY
    first: ClassVar[int] = 1

    @classmethod
    def learn(cls, name: str, sources: list[str], values: Any) -> Column:
        known = [str(value) for value in values if value is not None]
        levels, counts = np.unique(np.array(known, dtype=object).astype(str), return_counts=True)
        if not len(levels):
            levels, counts = np.array(["(none)"]), np.array([0])
        share = (counts + 0.5) / (counts.sum() + 0.5 * len(levels))
        return cls(name, sources, levels.tolist(), len(values), mean=share)

    def encode(self, values: Any) -> np.ndarray:
        """The level's number. A category that the model has not seen says nothing of the cluster: it is missing."""
        place = {level: at for at, level in enumerate(self.levels)}
        return np.array([[np.nan if value is None else place.get(str(value), np.nan)] for value in values])

    def points(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        return np.eye(len(self.levels))[values[:, 0].astype(np.int64)], 1

    @property
    def n_kept(self) -> int:
        return len(self.levels)

    def draw(self, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
        shares = rng.dirichlet(self.posterior(part)[0])
        return [self.levels[at] for at in rng.choice(len(self.levels), n, p=shares)]

    def impute(self, rows: np.ndarray, parts: list[np.ndarray], weight: np.ndarray, share: float) -> Imputed | None:
        chance = weight @ np.array([self.mean_of(part) for part in parts])
        best = chance.argmax(axis=1)
        names = np.array([self.levels[level] for level in best], dtype=object)
        return Imputed(rows, names, None, None, chance[np.arange(len(rows)), best])


@dataclass
class ListsColumn(LevelsColumn):
    """Rows that hold a list: words, or a set."""

    is_sparse: ClassVar[bool] = True

    @property
    def width(self) -> int:
        return len(self.levels)

    def encode_lists(self, values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(present, starts, features, counts); words that the model has not seen are left out."""
        place = {word: at for at, word in enumerate(self.levels)}
        starts, features, counts = [0], [], []
        for row in values:
            found: dict[int, float] = {}
            for word in () if row is None else row:
                at = place.get(str(word))
                if at is not None:
                    found[at] = found.get(at, 0.0) + 1.0
            features += sorted(found)
            counts += [found[at] for at in sorted(found)]
            starts.append(len(features))
        present = np.array([row is not None for row in values], np.bool_)
        return present, np.array(starts, np.int64), np.array(features, np.int64), np.array(counts, np.float64)


@storable
@dataclass
class WordsColumn(ListsColumn):
    """Counts of words, multinomial given their number."""

    family: ClassVar[str] = "multinomial"
    kind: ClassVar[int] = WORDS

    @classmethod
    def learn(cls, name: str, sources: list[str], values: Any) -> Column:
        names, counts, _ = count_words(values, once=False)
        share = (counts + 0.5) / max(counts.sum() + 0.5 * len(counts), 1.0)
        return cls(name, sources, names, len(values), scale=0.1 * max(len(names), 1), mean=share)

    def draw(self, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
        shares = rng.dirichlet(self.posterior(part)[0])
        picks = [rng.choice(len(self.levels), int(length), p=shares) for length in lengths[:n]]
        return [[self.levels[at] for at in row] for row in picks]


@storable
@dataclass
class SetsColumn(ListsColumn):
    """Which features a row has, each with a Beta prior."""

    family: ClassVar[str] = "bernoulli"
    kind: ClassVar[int] = SETS

    @classmethod
    def learn(cls, name: str, sources: list[str], values: Any) -> Column:
        names, counts, n_known = count_words(values, once=True)
        return cls(name, sources, names, len(values), mean=np.minimum((counts + 0.5) / (n_known + 1), 0.95))

    @property
    def n_parameters(self) -> int:
        return len(self.levels)

    def hyperparameters(self) -> np.ndarray:
        return np.concatenate([[self.scale], self.scale * self.mean])

    def posterior(self, part: np.ndarray) -> tuple[np.ndarray, float]:
        return np.asarray(self.scale * self.mean + part[2:]), self.scale + float(part[0])

    def draw(self, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
        a, total = self.posterior(part)
        p = rng.beta(a, total - a)
        return [[self.levels[at] for at in np.flatnonzero(rng.random(len(p)) < p)] for _ in range(n)]


def count_words(values: Any, *, once: bool) -> tuple[list[str], np.ndarray, int]:
    """(words in order, how many of each, how many rows have a list)."""
    words: dict[str, int] = {}
    known = [row for row in values if row is not None]
    for row in known:
        for word in set(row) if once else row:
            words[str(word)] = words.get(str(word), 0) + 1
    names = sorted(words)
    return names, np.array([words[word] for word in names], dtype=np.float64), len(known)
