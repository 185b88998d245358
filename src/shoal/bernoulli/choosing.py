"""How many clusters: by the likelihood of rows set aside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.bernoulli.mixture import BernoulliMixture
from shoal.errors import BadInput


class Choice(NamedTuple):
    """What was tried and what was best."""

    n_clusters: int
    tried: tuple[int, ...]
    scores: tuple[float, ...]  # mean log probability of a held-out row, one for each


def choose_n_clusters(
    X: Any, candidates: Sequence[int], *, held_out: float = 0.2, random_state: int | None = None, **options: Any
) -> Choice:
    """Fit ``BernoulliMixture(k, **options)`` for each candidate k and take the one that explains held-out rows best.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> theta = np.kron(np.eye(3), np.full(5, 0.8)) + 0.02
    >>> X = rng.random((600, 15)) < theta[rng.integers(3, size=600)]
    >>> choose_n_clusters(X.astype(float), [1, 3], clutter=False, random_state=0).n_clusters
    3
    """
    rows = getattr(X, "X", X)
    n_rows = rows.shape[0]
    n_test = round(held_out * n_rows)
    if not 0 < n_test < n_rows or not len(candidates):
        raise BadInput(
            f"held_out is {held_out:g} of {n_rows} rows, with {len(candidates)} candidates; at least one row must be "
            "held out, one kept, and one number of clusters tried."
        )
    order = np.random.default_rng(random_state).permutation(n_rows)
    test, train = rows[np.sort(order[:n_test])], rows[np.sort(order[n_test:])]
    scores = [BernoulliMixture(k, random_state=random_state, **options).fit(train).score(test) for k in candidates]
    return Choice(int(candidates[int(np.argmax(scores))]), tuple(candidates), tuple(scores))
