"""Learning the prior: every step is a better one, and the steps end at the best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln

from shoal.families.distributions.counts import CountFamily
from shoal.families.options import Settings
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.held_out import STEP, HeldOut
from shoal.families.samplers.hyperparameters import SMOOTHING_RATE, learn_alpha, learn_family, learn_process


def prediction(sums: np.ndarray, family: CountFamily) -> float:
    """How well each word is predicted from all others of its cluster, and the prior of smoothing."""
    shape, value = family.smoothing + family.strength * family.mean, -SMOOTHING_RATE * family.smoothing
    for counts in sums:
        seen = counts > 0
        value += float(counts[seen] @ np.log(np.maximum(counts[seen] - 1, 0) + shape[seen]))
        value -= float(counts.sum() * np.log(max(counts.sum() - 1, 0) + shape.sum()))
    return value


@pytest.mark.parametrize(("smoothing", "strength"), [(0.0, 40.0), (0.2, 20.0)])
@pytest.mark.parametrize("fractional", [False, True])
def test_words_are_predicted_better_by_each_step_and_best_at_the_end(
    smoothing: float, strength: float, fractional: bool
) -> None:
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.2), 5)
    labels = rng.integers(0, 5, 200).astype(np.int32)
    counts = np.array([rng.multinomial(12, topics[label]) for label in labels]) * (0.5 if fractional else 1.0)
    settings = Settings(5, "multinomial", "dirichlet", 0.5, "learn", "learn", 64, "ranked", "diagonal", 10)
    problem = CountProblem(sp.csr_matrix(counts), settings)
    chain = problem.chain("gibbs", 0)
    chain.set_labels(labels)
    sums = np.array([counts[labels == label].sum(axis=0) for label in range(5)])
    family = replace(problem.family, smoothing=smoothing, strength=strength)
    value = prediction(sums, family)
    for _ in range(300):
        family = learn_family(chain, family, n_steps=1)
        assert prediction(sums, family) >= value - 1e-9 * abs(value)
        value = prediction(sums, family)
    family = learn_family(chain, family, n_steps=3000)
    for factor in (0.9, 1.1):
        assert prediction(sums, replace(family, smoothing=family.smoothing * factor)) <= value + 1e-6
        assert prediction(sums, replace(family, strength=family.strength * factor)) <= value + 1e-6


def test_smoothing_alone_climbs_the_likelihood_of_rows_left_out() -> None:
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.2), 5)
    labels = rng.integers(0, 5, 200).astype(np.int32)
    counts = np.array([rng.multinomial(12, topics[label]) for label in labels])
    settings = Settings(5, "multinomial", "dirichlet", 0.5, "auto", "auto", 64, "ranked", "diagonal", 10)
    problem = CountProblem(sp.csr_matrix(counts, dtype=np.float64), settings)
    chain = problem.chain("gibbs", 0)
    chain.set_labels(labels)

    def value(family: CountFamily) -> float:
        return HeldOut(chain, 1000).log_likelihood(family.prior(alpha=0.5)) - SMOOTHING_RATE * family.smoothing

    first, before = replace(problem.family, smoothing=3.0), -np.inf
    found = learn_family(chain, first)
    while value(found) > before:
        before, found = value(found), learn_family(chain, found)
    assert value(first) < before
    assert 0.1 < found.smoothing < 0.4  # 0.2 is what the topics were drawn with
    for factor in (1 / STEP, STEP):
        assert value(replace(found, smoothing=found.smoothing * factor)) <= before


def test_the_weight_of_clusters_is_the_likeliest() -> None:
    size = np.array([40, 22, 9, 3, 1, 0, 0, 0])
    n, k, live = size.sum(), len(size), size[size > 0]

    def even(alpha: float) -> float:
        return float(gammaln(k * alpha) - gammaln(k * alpha + n) + (gammaln(alpha + live) - gammaln(alpha)).sum())

    def process(weight: float) -> float:
        return float(len(live) * np.log(weight) + gammaln(weight) - gammaln(weight + n))

    alpha, weight = learn_alpha(size, 1.0, n_steps=2000), learn_process(size, 1.0, n_steps=500)
    for factor in (0.95, 1.05):
        assert even(alpha * factor) < even(alpha)
        assert process(weight * factor) < process(weight)
