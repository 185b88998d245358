"""Binary rows drawn from a few Bernoulli profiles: the synthetic test of the ads paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from shoal.datasets._common import as_dataset, as_generator, require_at_least
from shoal.threads import row_blocks

if TYPE_CHECKING:
    from shoal.data import Dataset


def make_bernoulli_profiles(
    n_items: int = 10_000, *, n_clusters: int = 10, n_features: int = 100, random_state: Any = None
) -> Dataset:
    """Generate rows of independent Bernoulli features, with one probability for each cluster and feature.

    Cluster weights are uniform draws divided by their sum; probabilities are uniform on (0, 1), so about half of each
    row is set. The defaults are those of the paper: 10,000 x 100 with 10 clusters.

    Parameters
    ----------
    n_items, n_clusters, n_features : int
        Size of the data.
    random_state : int, Generator or None
        Random seed.

    Examples
    --------
    >>> ads = make_bernoulli_profiles(200, n_clusters=3, n_features=20, random_state=0)
    >>> ads.X.shape, np.unique(ads.labels).tolist()
    ((200, 20), [0, 1, 2])
    """
    require_at_least(0, n_items=n_items)
    require_at_least(1, n_clusters=n_clusters, n_features=n_features)
    rng = as_generator(random_state)
    weights = rng.random(n_clusters)
    probability = rng.random((n_clusters, n_features))
    labels = rng.choice(n_clusters, size=n_items, p=weights / weights.sum())
    blocks = [
        sp.csr_matrix(rng.random((stop - start, n_features)) < probability[labels[start:stop]], dtype=np.float32)
        for start, stop in row_blocks(n_items, max(1, 10_000_000 // n_features)) or [(0, 0)]
    ]
    return as_dataset(sp.vstack(blocks, format="csr"), "feature", labels)
