"""n_clusters="auto": what the evidence decides, what resamples decide, and that a collapse is told."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import shoal
from shoal.families import ExponentialFamilyMixture
from shoal.families.number_of_clusters import generous_bound, worth


def bursty_topics(n: int, length: int, burst: float, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Four topics over 60 words; each row has shares of its own around its topic's (``burst``: how far)."""
    rng = np.random.default_rng(seed)
    topics, truth = rng.dirichlet(np.full(60, 0.15), 4), rng.integers(0, 4, n)
    shares = rng.standard_gamma(topics[truth] / burst + 1e-6)
    shares /= shares.sum(axis=1, keepdims=True)
    return sp.csr_matrix([rng.multinomial(length, share) for share in shares], dtype=np.float64), truth


def test_rows_that_fill_any_bound_get_the_number_that_halves_agree_on(tmp_path: object) -> None:
    X, truth = bursty_topics(600, 150, 0.05)
    filled = ExponentialFamilyMixture(20, n_sweeps=8, random_state=0).fit(X)
    assert filled.bound_reached_
    model = ExponentialFamilyMixture("auto", n_sweeps=8, random_state=0).fit(X)
    assert 3 <= model.n_clusters_ <= 6
    assert adjusted_rand_score(truth, model.labels_) > max(0.8, adjusted_rand_score(truth, filled.labels_))
    facts = model.number_of_clusters_
    assert "fill most of any bound" in facts.reason
    assert len(facts.tried) == len(facts.agreement) == len(facts.log_likelihood) - 1
    assert len(np.unique(facts.cut(10))) == 10
    shoal.save(f"{tmp_path}/model.shoal", model)
    loaded = shoal.load(f"{tmp_path}/model.shoal")
    assert loaded.number_of_clusters_.reason == facts.reason
    assert loaded.partial_fit(X[:50]).stats_.size.sum() == 650


def test_independent_words_leave_the_number_to_the_evidence() -> None:
    X, truth = bursty_topics(400, 12, 1e-4)
    model = ExponentialFamilyMixture("auto", n_sweeps=10, random_state=0).fit(X)
    assert "evidence decides" in model.number_of_clusters_.reason
    assert adjusted_rand_score(truth, model.labels_) > 0.8


def test_the_bound_grows_with_rows_and_worth_asks_for_both() -> None:
    assert [generous_bound(n) for n in (3, 100, 1_000, 1_000_000)] == [3, 20, 50, 300]
    agreement, log_likelihood = np.array([0.9, 0.8, 0.1]), np.array([-100.0, -99.0, -91.0, -90.0])
    assert worth(agreement, log_likelihood).argmax() == 1


def test_a_collapse_because_of_shared_words_is_told(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.poisson(6.0, (300, 3)) + 1, rng.random((300, 40)) < 0.05]).astype(float)
    with caplog.at_level("WARNING", logger="shoal"):
        model = ExponentialFamilyMixture(8, n_sweeps=10, random_state=0).fit(X)
    assert model.n_clusters_ == 1
    assert "leave them out" in caplog.text
    assert model.shared_features_ is not None
    assert set(model.shared_features_.tolist()) == {0, 1, 2}
