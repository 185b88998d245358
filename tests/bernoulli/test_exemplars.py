"""Suggestion from single rows and single features against a plain computation."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.exemplars import hide_part, remember, suggest_by_exemplars


def pooled(X, observed, settings, background):
    """Both voices for every feature, by the formulas."""
    strength, absent, keyword_strength, trust, blend = settings
    n = X.shape[0]
    likeness = (X[:, observed] * np.log1p(1 / (strength * background[observed]))).sum(axis=1)
    scores = np.where(likeness > 0, likeness - absent * X.sum(axis=1), -np.inf)
    weights = np.exp(scores - scores.max())
    rows = weights @ X / weights.sum()
    seen, together = X.sum(axis=0), X.T @ X
    log_odds = np.log(background / (1 - background))
    for e in observed:
        b = keyword_strength * background[e]
        with_d = (together[e] + b) / (seen + keyword_strength)
        without = (seen[e] - together[e] + b) / (n - seen + keyword_strength)
        log_odds = log_odds + trust * np.log(with_d / without)
    keywords = 1 / (1 + np.exp(-log_odds))
    return (rows + 0.01 * background) ** blend * keywords ** (1 - blend)


def test_voices_follow_the_formulas():
    rng = np.random.default_rng(0)
    X = (rng.random((80, 12)) < rng.random(12) * 0.6).astype(float)
    settings = np.array([0.5, 0.3, 4.0, 0.7, 0.6])
    memory = remember(sp.csr_matrix(X), settings)
    for observed in ([0], [1, 5], [2, 3, 7]):
        given = np.zeros((1, 12))
        given[0, observed] = 1
        features, probabilities = suggest_by_exemplars(memory, sp.csr_matrix(given), None, 12)
        expected = pooled(X, observed, settings, memory.background)
        expected[observed] = -1
        n = 12 - len(observed)
        assert features[0, n:].tolist() == [-1] * len(observed)
        np.testing.assert_allclose(probabilities[0, :n], np.sort(expected)[::-1][:n], rtol=1e-9)
        np.testing.assert_allclose(expected[features[0, :n]], probabilities[0, :n], rtol=1e-9)


def test_remembered_rows_suggest_better_than_clusters_alone():
    rng = np.random.default_rng(1)
    words = rng.integers(200, size=(60, 6))  # sixty fixed sets, far more than the clusters asked for
    X = np.zeros((1200, 200))
    for row in range(1200):
        X[row, words[rng.integers(60)]] = 1
        X[row, rng.integers(200)] = 1
    X = sp.csr_matrix(X)
    given, hidden = hide_part(X[:200], rng)
    found = {}
    for remembering in (False, True):
        model = BernoulliMixture(5, remember_rows=remembering, random_state=0).fit(X[200:])
        features, _ = model.suggest_batch(given, n=5)
        found[remembering] = np.mean([np.isin(h, f).mean() for h, f in zip(hidden, features, strict=True)])
    assert found[True] > found[False]
    assert found[True] > 0.7
    one = model.suggest(given.indices[: given.indptr[1]], rejected=[int(features[0, 0])], n=3)
    assert int(features[0, 0]) not in [s.feature for s in one]
    assert one[0].reasons
    model.partial_fit(X[:200])
    assert model.exemplars_.feature_ptr.size - 1 == 1200
