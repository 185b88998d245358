"""Known labels of some rows, and pairs that must or must not be together: the restricted posterior, and its use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score
from tests.oracles.families import all_labelings, codes, exact_posterior, log_labels

import shoal
from shoal.errors import BadInput
from shoal.families import ExponentialFamilyMixture
from shoal.families.options import Settings
from shoal.families.samplers.constraints import Constraints, Known
from shoal.families.samplers.problems import make_problem

NO_PAIRS = np.zeros((0, 2), np.int64)
WORDS = np.array([[2, 0, 1, 0], [1, 0, 0, 0], [0, 3, 0, 0], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=float)
MEASURES = np.array([[0.3, -1.0], [0.5, -0.8], [-1.2, 0.9], [0.1, 0.4], [1.4, 0.2]])


def keeps_to(labels: np.ndarray, known: Known) -> np.ndarray:
    """Which labelings keep to what is known."""
    ok = np.ones(len(labels), bool)
    for row in np.flatnonzero(known.classes >= 0):
        ok &= labels[:, row] == known.classes[row]
    for one, two in known.together:
        ok &= labels[:, one] == labels[:, two]
    for one, two in known.apart:
        ok &= labels[:, one] != labels[:, two]
    return ok


@pytest.mark.parametrize(("family", "process"), [("multinomial", False), ("gaussian", True), ("mixed", False)])
def test_the_chain_visits_the_labelings_that_are_allowed_by_their_posterior(family: str, process: bool) -> None:
    k, n = 3, 5
    rows: Any = sp.csr_matrix(WORDS) if family == "multinomial" else MEASURES
    if family == "mixed":
        rows = ExponentialFamilyMixture(k, family="mixed")._validated(pd.DataFrame(MEASURES), mode="fit").matrix
    weights = "dirichlet_process" if process else "dirichlet"
    problem = make_problem(rows, Settings(k, family, weights, 0.7, "auto", "auto", 64, "ranked", "diagonal", 10))
    known = Known(np.array([0, -1, -1, -1, -1]), np.array([[1, 3]]), np.array([[2, 3], [4, 0]]), np.array([7]))
    constraints = Constraints(known, k)

    def marginal(part: np.ndarray) -> float:
        labels = np.where(np.isin(np.arange(n), part[:, 0].astype(int)), 0, -1)
        return float(problem.family.log_marginal(problem.family.statistics(problem.X, labels, 1))[0])

    alpha, dp = (0.0, 0.7) if process else (0.7, 0.0)
    exact = exact_posterior(np.arange(n)[:, None], k, marginal, lambda labels: log_labels(labels, k, alpha, dp))
    exact[~keeps_to(all_labelings(n, k), known)] = 0.0
    exact /= exact.sum()
    chain = problem.chain("gibbs", 0)
    chain.runs = constraints.free_runs()
    problem.begin(chain, constraints.first_labels(problem, None))
    samples = np.zeros((1_500, n), np.int64)
    for at in range(len(samples)):
        chain.sweep()
        constraints.visit(problem, chain)
        samples[at] = chain.labels
    assert keeps_to(samples, known).all()
    seen = np.bincount(codes(samples, k), minlength=k**n) / len(samples)
    np.testing.assert_allclose(seen, exact, atol=0.045)


def overlapping(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    return np.array([[0.0, 0], [2.8, 0], [0, 2.8]])[truth] + rng.normal(size=(n, 2)), truth


def test_known_labels_of_some_rows_make_the_clusters_those_of_the_classes(tmp_path: Any) -> None:
    X, truth = overlapping()
    y = np.where(np.random.default_rng(1).random(len(X)) < 0.1, 10 * truth + 5, -1)
    options: dict[str, Any] = {"family": "gaussian", "n_sweeps": 20, "random_state": 0}
    model = ExponentialFamilyMixture(3, **options).fit(X, y)
    assert model.classes_.tolist() == [5, 15, 25]
    assert model.roster_.names == {0: "5", 1: "15", 2: "25"}
    assert (model.labels_[y >= 0] == y[y >= 0] // 10).all()
    rest = y < 0
    assert (model.labels_[rest] == truth[rest]).mean() > 0.8
    shoal.save(tmp_path / "model.shoal", model)
    loaded = shoal.load(tmp_path / "model.shoal")
    np.testing.assert_array_equal(loaded.resume(X, n_sweeps=4).labels_, model.resume(X, n_sweeps=4).labels_)
    assert (loaded.labels_[y >= 0] == y[y >= 0] // 10).all()
    chains = ExponentialFamilyMixture(3, n_chains=2, **options).fit(X, y)
    assert chains.roster_.names == model.roster_.names


@pytest.mark.parametrize("family", ["multinomial", "mixed"])
def test_links_are_kept_and_help(family: str) -> None:
    rng = np.random.default_rng(0)
    X, truth = overlapping(200)
    data: Any = pd.DataFrame(X, columns=["a", "b"])
    if family == "multinomial":
        shares = np.array([[4, 2, 1, 1], [1, 4, 2, 1], [1, 1, 2, 4]]) / 8
        data = sp.csr_matrix([rng.multinomial(8, shares[group]) for group in truth]).astype(float)
    pairs = rng.integers(0, 200, (120, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    options: dict[str, Any] = {"family": family, "n_sweeps": 40, "random_state": 0}
    linked = ExponentialFamilyMixture(3, **options).fit(data, must_link=pairs[same], cannot_link=pairs[~same])
    labels = linked.labels_
    assert (labels[pairs[same, 0]] == labels[pairs[same, 1]]).all()
    assert (labels[pairs[~same, 0]] != labels[pairs[~same, 1]]).all()
    free = ExponentialFamilyMixture(3, **options).fit(data)
    assert adjusted_rand_score(truth, labels) > adjusted_rand_score(truth, free.labels_) + 0.02


def test_what_contradicts_itself_is_refused() -> None:
    X, _ = overlapping(20)
    y = np.full(20, -1)
    y[:2] = [0, 1]

    def fit(match: str, n_clusters: Any = 3, sampler: str = "auto", **known: Any) -> None:
        with pytest.raises(BadInput, match=match):
            ExponentialFamilyMixture(n_clusters, family="gaussian", sampler=sampler).fit(X, **known)

    fit("another class of y", y=y, must_link=[(0, 1)])
    fit("must_link or y puts together", cannot_link=[(3, 4)], must_link=[(3, 5), (5, 4)])
    fit("n_clusters is 1", n_clusters=1, y=y)
    fit("raise n_clusters above 2", n_clusters=2, cannot_link=[(0, 1), (1, 2), (0, 2)])
    fit("rows of X are 0 to 19", must_link=[(0, 20)])
    fit("pairs of row numbers", must_link=[0, 1])
    fit("one whole number for each of the 20", y=y[:5])
    fit("-1 is unknown", y=y - 1)
    fit("sampler='gibbs'", sampler="fastex", y=y)
    fit("give a number|without y", n_clusters="auto", y=y)
