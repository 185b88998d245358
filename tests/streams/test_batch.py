"""Batch inference: every move against the joint, written out, and against all partitions of a few messages."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import streams as oracle
from shoal.datasets import make_threads
from shoal.progress import Monitor
from shoal.streams import ExponentialKernel, PeriodicKernel, StepKernel, TimeSensitiveMixture, base_measures
from shoal.streams.inference.batch import SPLIT_SHARE, Batch, Learned, improve
from shoal.streams.state.stream_state import StreamState

ALPHA = 0.5
GIVEN = Learned(kernel=False, concentration=False, mean=False, strength=False)
KERNELS = {"exponential": ExponentialKernel(0.4), "step": StepKernel(), "periodic": PeriodicKernel(7.0, 0.05, 3.0)}


def case(family, seed, n=6):
    """Counts up to 16, so that both ways of computing a rising factorial are used; and the oracle's log P(d | rows)."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(1.0, n))
    gaussian = None
    if family == "multinomial":
        X = rng.multinomial(5, [0.25] * 4, size=n) + np.eye(4)[rng.integers(0, 4, n)] * rng.integers(0, 12, n)[:, None]
        log_prob = oracle.multinomial(np.full(4, 0.75))
    elif family == "bernoulli":
        X, log_prob = (rng.random((n, 4)) < 0.5).astype(float), oracle.bernoulli(0.5, 0.7)
    else:
        X = rng.normal(size=(n, 4)) + 3.0 * rng.integers(0, 2, n)[:, None]
        gaussian = base_measures.gaussian_prior(sp.csr_matrix(X))
        log_prob = oracle.gaussian(gaussian)
    return times, X.astype(float), base_measures.make_prior(4, strength=3.0, gaussian=gaussian), log_prob


def batch_of(family, kernel, times, X, prior, labels, seed=0):
    state = StreamState.start(
        kernel=kernel, concentration=ALPHA, family=base_measures.FAMILIES[family], prior=prior, seed=seed, slots=4,
        pseudo=(0.5, 0.7), eps=1e-12,
    )  # fmt: skip
    state.append(sp.csr_matrix(X), times, first_number=0)
    state.place(np.asarray(labels))
    return Batch(state, times, GIVEN, share=0.0, seed=seed)


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "gaussian"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_joint_and_what_a_merge_gains(family, name):
    kernel = KERNELS[name]
    times, X, prior, log_prob = case(family, 3, n=9)
    labels = [0, 1, 0, 2, 1, 0, 2, 1, 0]

    def joint(of):
        return oracle.log_joint(times, list(of), X, lambda gap: float(kernel(gap)), ALPHA, log_prob)

    batch = batch_of(family, kernel, times, X, prior, labels)
    assert batch.log_joint() == pytest.approx(joint(labels), abs=1e-9)
    for _ in range(3):
        before = batch.log_joint()
        merged, split = batch.merge(), batch.split()
        after = batch.log_joint()
        assert after == pytest.approx(joint(oracle.in_order(batch.state.labels)), abs=1e-9)
        assert after > before if merged + split else after == before
        before = after
        batch.sweep()
        assert batch.log_joint() >= before - 1e-9


@pytest.mark.parametrize("name", KERNELS)
def test_split_merge_draws_from_the_posterior(name):
    """All 203 partitions of six messages, by Metropolis-Hastings alone."""
    kernel = KERNELS[name]
    times, X, prior, log_prob = case("multinomial", 1)
    parts = list(oracle.partitions(6))
    joint = np.array(
        [oracle.log_joint(times, list(p), X, lambda gap: float(kernel(gap)), ALPHA, log_prob) for p in parts]
    )
    exact = np.exp(joint - joint.max())
    exact /= exact.sum()
    where = {part: at for at, part in enumerate(parts)}
    batch = batch_of("multinomial", kernel, times, X, prior, np.zeros(6, dtype=np.int64))
    n_draws = 4000
    seen = np.zeros(len(parts))
    for _ in range(n_draws):
        batch.split_merge(5)
        seen[where[oracle.in_order(batch.state.labels)]] += 1
    noise = 0.5 * np.sqrt(2 / np.pi) * np.sqrt(exact * (1 - exact) / n_draws).sum()
    assert 0.5 * np.abs(seen / n_draws - exact).sum() < 3.0 * noise


@pytest.mark.parametrize("coarse", [False, True])
def test_rounds_never_lower_the_joint_of_given_parameters(coarse):
    data = make_threads(300, n_features=50, length=20, random_state=2)
    state = StreamState.start(
        kernel=ExponentialKernel(0.5),
        concentration=0.2,
        family=0,
        prior=base_measures.make_prior(50, strength=50.0),
        seed=0,
    )
    state.append(data.X.astype(float), data.times, first_number=0)
    state.place(np.arange(300))
    batch = Batch(state, data.times, GIVEN)
    with Monitor("test", 30) as monitor:
        improve(batch, monitor, coarse=coarse)
    assert (np.diff(monitor.history) >= -1e-6).all()
    truth = batch_of("multinomial", ExponentialKernel(0.5), data.times, data.X.toarray(), state.prior, data.labels)
    truth.state.set_time(ExponentialKernel(0.5), 0.2)
    assert monitor.history[-1] > truth.log_joint() - 10.0


@pytest.mark.parametrize("n_features", [3, 100])
def test_fit_with_defaults_reaches_the_joint_of_the_truth(n_features):
    """The paper's recipe; the base measure, its strength and the background are learned."""
    data = make_threads(100, n_features=n_features, length=50, random_state=1)
    model = TimeSensitiveMixture(ExponentialKernel(0.5), concentration=0.2, random_state=0)
    model.fit(data.X, times=data.times)
    base = np.ones(n_features)

    def joint(of):
        kernel = lambda gap: float(np.exp(-0.5 * gap))  # noqa: E731
        labels = oracle.in_order(np.asarray(of))
        return oracle.log_joint(data.times, labels, data.X.toarray(), kernel, 0.2, oracle.multinomial(base))

    assert joint(model.labels_) > joint(data.labels) - 10.0
    assert model.diagnostics_["r_hat_n_clusters"] < 2.0


def test_a_template_is_not_split_by_words_that_take_few_values():
    """The joint asks for it; but sides that differ in two words of fourteen are no other kind."""
    rare = (np.arange(300) % 10 == 0).astype(int)
    values = np.eye(2)[rare]
    X, times = np.hstack([np.ones((300, 12)), values, values]), np.arange(300.0)
    apart = np.hstack([X * values[:, :1], X * values[:, 1:]])  # no word in common

    def splits(rows, share):
        width = rows.shape[1]
        prior = base_measures.make_prior(width, strength=float(width))
        ours = batch_of("multinomial", StepKernel(), times, rows, prior, np.zeros(300, dtype=np.int64))
        ours.share = share
        return ours.split()

    assert splits(X, 0.0) == 1
    assert splits(X, SPLIT_SHARE) == 0
    assert splits(apart, SPLIT_SHARE) == 1
