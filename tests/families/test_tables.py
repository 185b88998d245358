"""Tables of mixed columns: each kind against its formula, the chain against enumeration, and what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import shoal
from oracles.families import all_labelings, codes, exact_posterior, log_labels
from oracles.tables import (
    category_predictive,
    count_predictive,
    log_integral_of_two,
    number_predictive,
    vector_predictive,
)
from shoal.errors import BadInput
from shoal.families import ExponentialFamilyMixture
from shoal.families.distributions.table import TableFamily
from shoal.families.kernels.dirichlet_kernels import fit_dirichlet, log_integral
from shoal.families.kernels.table_kernels import LabelPrior
from shoal.families.samplers.table_gibbs import TableChain

FAMILIES = {
    "age": "gaussian", "income": "lognormal", "visits": "poisson", "color": "categorical", "tags": "multinomial",
    "set": "bernoulli", ("left", "middle", "right"): "dirichlet", ("x", "y"): "full", ("u", "v"): "tied",
}  # fmt: skip


def people(n: int = 240, seed: int = 0, missing: float = 0.0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three groups that differ in every column."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    colors = np.array(["red", "green", "blue"])
    shares = np.array([rng.dirichlet(np.array([[8, 1, 1], [1, 8, 1], [3, 3, 4.0]])[group]) for group in truth])
    frame = pd.DataFrame({
        "age": np.array([20.0, 45, 70])[truth] + 5 * rng.normal(size=n),
        "income": np.exp(np.array([7.0, 8, 10])[truth] + 0.4 * rng.normal(size=n)),
        "visits": rng.poisson(np.array([1.0, 4, 9])[truth]).astype(float),
        "color": np.where(rng.random(n) < 0.85, colors[truth], colors[rng.integers(0, 3, n)]),
        "left": shares[:, 0], "middle": shares[:, 1], "right": shares[:, 2],
        "x": 3.0 * truth + rng.normal(size=n), "y": -2.0 * truth + rng.normal(size=n),
        "u": 4.0 * (truth == 1) + rng.normal(size=n), "v": 4.0 * (truth == 2) + rng.normal(size=n),
    })  # fmt: skip
    frame["tags"] = [[f"w{3 * group + rng.integers(0, 4)}" for _ in range(5)] for group in truth]
    frame["set"] = [
        [f"s{at}" for at in range(6) if rng.random() < (0.8 if at // 2 == group else 0.1)] for group in truth
    ]
    for name in ("age", "income", "visits", "x"):
        frame.loc[rng.random(n) < missing, name] = np.nan
    for name in ("color", "tags"):
        frame[name] = [None if rng.random() < missing else value for value in frame[name]]
    return frame, truth


def test_every_kind_agrees_with_its_formula_and_missing_values_are_left_out() -> None:
    X, truth = people(40, missing=0.2)
    families = {"age": "gaussian", "visits": "poisson", "color": "categorical", ("x", "y"): "full"}
    family = TableFamily.for_table(X, families)
    rows = family.encode(X)
    stats = family.statistics(rows, truth, 3)
    values, present, layout = rows.table.values, rows.table.present, family.layout()
    scores = family.column_scores(stats, rows, np.ones(40, np.int64))
    for at, column in enumerate(family.columns):
        members = values[(truth == 1) & present[:, at]][:, layout.value[at] : layout.value[at + 1]]
        for row in range(0, 40, 3):
            x, prior = values[row, layout.value[at] : layout.value[at + 1]], column.hyperparameters()
            expected = {
                "gaussian": lambda m, x, p: number_predictive(m[:, 0], x[0], *p),
                "poisson": lambda m, x, p: count_predictive(m[:, 0], x[0], *p),
                "categorical": lambda m, x, p: category_predictive(m[:, 0], x[0], p),
                "full": lambda m, x, p: vector_predictive(m, x, p[0], p[1], p[2]),
            }[column.family](members, x, prior)
            assert scores[row, at] == pytest.approx(expected if present[row, at] else 0.0, rel=1e-8)
    assert not present.all()


@pytest.mark.parametrize("sources", list(FAMILIES), ids=str)
def test_marginals_are_the_chain_rule_and_rows_can_be_left_out(sources: Any) -> None:
    X, truth = people(30, seed=1)
    family = TableFamily.for_table(X, {sources: FAMILIES[sources]})
    rows = family.encode(X)
    order = np.flatnonzero(truth == 0)
    total = 0.0
    for at, row in enumerate(order):
        stats = family.statistics(rows[order[:at]], np.zeros(at, np.int64), 1)
        total += float(family.column_scores(stats, rows[row : row + 1], np.zeros(1, np.int64)).sum())
    whole = family.statistics(rows[order], np.zeros(len(order), np.int64), 1)
    constant = 0.0
    if family.columns[0].family == "poisson":  # the marginal leaves log x! out
        from scipy.special import gammaln

        constant = -gammaln(X["visits"].to_numpy()[order] + 1).sum()
    # Dirichlet rows: the predictive is of first order, the marginal Laplace's approximation.
    tolerance = {"rel": 0.25} if family.columns[0].family == "dirichlet" else {"rel": 1e-8}
    assert family.log_marginal(whole)[0] + constant == pytest.approx(total, **tolerance)
    stats = family.statistics(rows, truth, 3)
    left_out = family.log_predictive_left_out(stats, rows, truth)
    for row in range(0, 30, 7):
        others = family.statistics(rows, np.where(np.arange(30) == row, -1, truth), 3)
        expected = family.log_predictive_at(others, rows[row : row + 1], truth[row : row + 1])
        assert left_out[row] == pytest.approx(expected[0], rel=1e-6)


@pytest.mark.parametrize("m", [3.0, 10.0, 60.0])
@pytest.mark.parametrize("alpha", [(2.0, 5.0), (0.6, 0.8), (20.0, 9.0)])
def test_the_normalizer_of_dirichlet_rows_agrees_with_integration(m: float, alpha: tuple[float, float]) -> None:
    """Laplace's h within 1.5 / m nats; its first-order expansion (eq. 6) within 3 / m of the exact predictive."""
    rng = np.random.default_rng(0)
    logs = np.log(rng.dirichlet(alpha, 400)).mean(axis=0)
    fitted = np.ones(2)
    fit_dirichlet(logs, fitted)
    exact = log_integral_of_two(m, m * logs)
    assert log_integral(m, m * logs, fitted) == pytest.approx(exact, abs=1.5 / m)
    row = np.log(rng.dirichlet(alpha))
    predictive = log_integral_of_two(m + 1, m * logs + row) - exact - row.sum()
    from scipy.special import gammaln

    taylor = ((fitted - 1) * row).sum() - gammaln(fitted).sum() + gammaln(fitted.sum())
    assert taylor == pytest.approx(predictive, abs=3 / m * (1 + abs(predictive)))


def test_the_chain_visits_each_labeling_by_its_posterior() -> None:
    X = pd.DataFrame({"a": [0.1, 0.4, None, 2.0, 2.3], "b": ["p", "p", "q", "q", None]})
    family = TableFamily.for_table(X, {"a": "gaussian", "b": "categorical"})
    rows, k, n = family.encode(X), 3, 5

    def marginal(part: np.ndarray) -> float:
        labels = np.where(np.isin(np.arange(n), part[:, 0].astype(int)), 0, -1)
        return float(family.log_marginal(family.statistics(rows, labels, 1))[0])

    exact = exact_posterior(np.arange(n)[:, None], k, marginal, lambda labels: log_labels(labels, k, 0.7))
    chain = TableChain(rows, family, LabelPrior(0.7, 0.0), k, seed=0)
    samples = np.zeros((20_000, n), np.int64)
    for at in range(len(samples)):
        chain.sweep()
        samples[at] = chain.labels
    seen = np.bincount(codes(samples, k), minlength=k**n) / len(samples)
    assert len(all_labelings(n, k)) == len(exact)
    np.testing.assert_allclose(seen, exact, atol=0.012)


def test_a_frame_with_missing_values_gives_named_clusters_and_imputed_values(tmp_path: Any) -> None:
    X, truth = people(300, missing=0.15)
    model = ExponentialFamilyMixture(8, family=FAMILIES, n_sweeps=10, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    assert 3 <= model.n_clusters_ <= 5
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-9)
    evidence = model.column_evidence(0)
    assert set(evidence) == {column.name for column in model.family_.columns}
    assert max(evidence.values()) > 0.5
    assert "columns matter" in model.describe_cluster(0)
    top = model.top_features(0, 5)
    assert len(model.name_features(top.features)) == 5
    whole, _ = people(300)
    imputed = model.impute(X)
    age = imputed["age"]
    assert np.abs(age.values - whole["age"].to_numpy()[age.rows]).mean() < 8
    inside = (age.low <= whole["age"].to_numpy()[age.rows]) & (whole["age"].to_numpy()[age.rows] <= age.high)
    assert inside.mean() > 0.75
    assert (imputed["color"].values == whole["color"].to_numpy()[imputed["color"].rows]).mean() > 0.6
    shoal.save(tmp_path / "model.shoal", model)
    loaded = shoal.load(tmp_path / "model.shoal")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.partial_fit(X[:20]).stats_.size.sum() == 320
    rows, clusters = model.sample(40, length=5, random_state=0)
    assert (model.predict(rows) == clusters).mean() > 0.8


def test_families_of_columns_are_guessed_and_wrong_ones_are_refused() -> None:
    X, truth = people(200, missing=0.1)
    model = ExponentialFamilyMixture(6, family="mixed", n_sweeps=6, random_state=0).fit(X)
    found = {column.name: column.family for column in model.family_.columns}
    assert found["age"] == "gaussian"
    assert found["income"] == "lognormal"
    assert found["visits"] == "poisson"
    assert found["color"] == "categorical"
    assert found["tags"] == "multinomial"
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    for families, message in [
        ({"nobody": "gaussian"}, "no column 'nobody'"),
        ({"age": "beta"}, "choose one of"),
        ({"color": "gaussian"}, "no numbers"),
        ({("x", "y"): "dirichlet"}, "no proportions"),
        ({"x": "lognormal"}, "0 or less"),
    ]:
        with pytest.raises(BadInput, match=message):
            ExponentialFamilyMixture(3, family=families).fit(X)


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_covariances_are_found(covariance: str) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    shape = np.array([[1.0, 0.0], [2.7, 0.6]])
    X = rng.normal(size=(400, 2)) @ shape.T + np.array([[0.0, 0], [3, -1]])[truth]
    options: dict[str, Any] = {"family": "gaussian", "random_state": 0, "n_sweeps": 20}
    model = ExponentialFamilyMixture(6, covariance=covariance, **options).fit(X)
    diagonal = ExponentialFamilyMixture(6, **options).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.85
    assert model.n_clusters_ <= 3
    assert model.score(X) > diagonal.score(X)


def test_rows_that_are_proportions() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    X = np.array([rng.dirichlet(np.array([[9, 2, 1, 1], [1, 6, 6, 1], [30, 30, 30, 30.0]])[group]) for group in truth])
    model = ExponentialFamilyMixture(6, family="dirichlet", random_state=0, n_sweeps=12).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.85
    with pytest.raises(BadInput, match="Divide each row by its sum"):
        model.predict(2 * X)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e160])
def test_columns_of_any_size_and_values_far_from_all_others(unit):
    """A value 1e300 deviations away had NaN for its probabilities: its square is no number."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    table = {"a": (truth * 9 + rng.normal(size=60)) * unit, "b": rng.normal(size=60)}
    model = ExponentialFamilyMixture(5, family="mixed", n_sweeps=6, random_state=0).fit(table)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    far = {"a": np.array([1e300, -1e300, 0.0, 1e-300, np.nan]), "b": np.array([0.0, 1e300, -1e308, 1.0, np.nan])}
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples(far)).all()


def test_clusters_are_not_merged_before_their_rows_are_found() -> None:
    """Long clusters that k-means cuts in pieces: merged at once, they ended as three wide ones at -4.06 nats a row."""
    rng, n, k = np.random.default_rng(22), 2000, 10
    roots, truth = rng.normal(size=(k, 2, 2)) / np.sqrt(2), rng.choice(k, n + 5000, p=rng.dirichlet(np.full(k, 5.0)))
    centers = 2.5 * rng.normal(size=(k, 2)) / 2**0.25
    X = centers[truth] + np.einsum("nij,nj->ni", roots[truth], rng.normal(size=(n + 5000, 2)))
    model = ExponentialFamilyMixture(k, family="gaussian", covariance="full", random_state=0).fit(X[:n])
    assert model.score(X[n:]) > -3.95
