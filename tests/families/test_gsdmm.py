"""GSDMM (Yin and Wang, KDD 2014) is this model with one smoothing for all words; gibbs draws as it does."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from oracles.families import gsdmm_conditional
from shoal.families.options import Settings
from shoal.families.samplers.count_problem import CountProblem


def test_gibbs_draws_labels_as_gsdmm_does() -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (12, 7)).astype(float)
    X[X.sum(axis=1) == 0, 0] = 1.0
    k, n_draws = 4, 4000
    labels = rng.integers(0, k - 1, 12)  # one cluster is empty
    settings = Settings(k, "multinomial", "dirichlet", 0.1, 0.1, 0.0, 64, "ranked", "diagonal", 10)
    chain = CountProblem(sp.csr_matrix(X), settings).chain("gibbs", 0)
    for row in (0, 5):
        seen = np.zeros(k)
        for _ in range(n_draws):
            chain.set_labels(labels.astype(np.int32))
            chain.visit(row, row + 1)
            seen[chain.labels[row]] += 1
        expected = gsdmm_conditional(X, labels, row, k, 0.1, 0.1)
        np.testing.assert_allclose(seen / n_draws, expected, atol=5 * np.sqrt(0.25 / n_draws))
