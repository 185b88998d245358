"""Fast Gibbs against the paper's Figure 3 to the letter, and against the sum over all partitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import streams as oracle
from shoal.datasets import make_threads
from shoal.progress import Monitor
from shoal.streams import base_measures
from shoal.streams.inference.batch import Learned
from shoal.streams.inference.gibbs import Schedule, reach_of, run_chain
from shoal.streams.state.stream_state import EXHAUSTIVE, StreamState
from shoal.streams.time_kernels import ExponentialKernel, PeriodicKernel, PowerKernel, StepKernel

# the stated tolerance of a conditional: rounding for exact waves, the quadrature for power laws
KERNELS = {
    "exponential": (ExponentialKernel(0.5), 1e-10),
    "fast": (ExponentialKernel(5.0), 1e-10),
    "step": (StepKernel(), 1e-10),
    "power": (PowerKernel(2.0, 1.5), 1e-6),
    "periodic": (PeriodicKernel(7.0, 0.05, 3.0), 1e-9),
    "sum": (ExponentialKernel(1.0) + 0.3 * StepKernel(), 1e-10),
}
ALPHA = 0.7


def small_case(seed, family):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 25))
    times = np.cumsum(rng.exponential(1.0, n))
    times[n // 2 :] -= times[n // 2] - times[n // 2 - 1]  # two equal time stamps
    X = rng.poisson(1.0, (n, 4)).astype(float)
    gaussian = None
    if family == "multinomial":
        log_prob = oracle.multinomial(np.full(4, 0.75))
    elif family == "bernoulli":
        X = (X > 0).astype(float)
        log_prob = oracle.bernoulli(0.5, 0.7)
    else:
        X = rng.normal(size=(n, 4))
        gaussian = base_measures.gaussian_prior(sp.csr_matrix(X))
        log_prob = oracle.gaussian(gaussian)
    return rng, times, X, base_measures.make_prior(4, strength=3.0, gaussian=gaussian), log_prob


def started(kernel, times, X, prior, family, seed):
    state = StreamState.start(
        kernel=kernel,
        concentration=ALPHA,
        family=base_measures.FAMILIES[family],
        prior=prior,
        seed=seed,
        slots=4,
        pseudo=(0.5, 0.7),
        eps=1e-12,
    )
    lo, hi = state.append(sp.csr_matrix(X), times, first_number=0)
    state.arrive(lo, hi, budget=EXHAUSTIVE, n_best=1, running=False, uniforms=state.uniforms(hi))
    state.refresh()
    return state


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "gaussian"])
@pytest.mark.parametrize("name", KERNELS)
def test_conditionals_are_those_of_figure_3(name, family):
    kernel, tolerance = KERNELS[name]
    for seed in range(8):
        rng, times, X, prior, log_prob = small_case(seed, family)
        n = len(times)
        state = started(kernel, times, X, prior, family, seed)
        for _ in range(4):
            watched = int(rng.integers(0, n))
            before = state.labels.copy()
            log_probs, ids = state.sweep(state.uniforms(n), reach=np.inf, watched=watched)
            mixed = [*state.labels[:watched], *before[watched:]]
            exact = oracle.conditional(watched, times, mixed, X, lambda gap: float(kernel(gap)), ALPHA, log_prob)
            fast = dict(zip(ids.tolist(), log_probs.tolist(), strict=True))
            assert set(fast) == set(exact)
            assert max(abs(fast[c] - exact[c]) for c in exact) < tolerance


def test_words_by_index_and_by_table_give_the_same_scores():
    """Many clusters and few words each: the index is the cheaper way, and must be as exact."""
    rng = np.random.default_rng(0)
    n, v = 60, 40
    X = np.zeros((n, v))
    for i in range(n):
        X[i, rng.choice(v, 3, replace=False)] = rng.integers(1, 4, 3)
    times = np.cumsum(rng.exponential(1.0, n))
    kernel = ExponentialKernel(0.05)
    prior = base_measures.make_prior(v, strength=8.0)
    base_measures.add_seen(prior, X.sum(axis=0))
    base = base_measures.base_measure(prior, 0.5)
    assert base.sum() == pytest.approx(8.0)
    state = started(kernel, times, X, prior, "multinomial", 1)
    before = state.labels.copy()
    assert len(set(before)) > 10
    log_probs, ids = state.sweep(state.uniforms(n), reach=np.inf, watched=30)
    mixed = [*state.labels[:30], *before[30:]]
    exact = oracle.conditional(30, times, mixed, X, lambda gap: float(kernel(gap)), ALPHA, oracle.multinomial(base))
    np.testing.assert_allclose(log_probs, [exact[c] for c in ids.tolist()], atol=1e-10)


def test_bounded_reach_changes_no_probability_by_more_than_the_tolerance():
    rng, _, _, prior, log_prob = small_case(3, "multinomial")
    times = np.cumsum(rng.exponential(1.0, 120))
    X = rng.poisson(1.0, (120, 4)).astype(float)
    state = started(ExponentialKernel(3.0), times, X, prior, "multinomial", 5)
    reach = reach_of(state, base_measures.surprise(sp.csr_matrix(X), 0, prior, 0.5, (0.5, 0.5)).max(), 1e-9)
    assert reach < times[-1] / 3
    before = state.labels.copy()
    log_probs, ids = state.sweep(state.uniforms(120), reach=reach, watched=60)
    mixed = [*state.labels[:60], *before[60:]]
    exact = oracle.conditional(60, times, mixed, X, lambda gap: np.exp(-3.0 * gap), ALPHA, log_prob)
    fast = dict(zip(ids.tolist(), np.exp(log_probs), strict=True))
    assert len(fast) < len(exact)
    assert max(abs(fast.get(c, 0.0) - np.exp(exact[c])) for c in exact) < 1e-9


@pytest.mark.parametrize("name", ["exponential", "periodic"])
def test_sweeps_draw_from_the_posterior(name):
    """All 52 partitions of five documents: frequencies after many sweeps against their probabilities."""
    kernel, _ = KERNELS[name]
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.exponential(1.0, 5))
    X = rng.poisson(1.0, (5, 3)).astype(float)
    parts = list(oracle.partitions(5))
    log_prob = oracle.multinomial(np.ones(3))
    joint = np.array(
        [oracle.log_joint(times, list(p), X, lambda gap: float(kernel(gap)), ALPHA, log_prob) for p in parts]
    )
    exact = np.exp(joint - joint.max())
    exact /= exact.sum()
    state = started(kernel, times, X, base_measures.make_prior(3, strength=3.0), "multinomial", 2)
    where = {part: at for at, part in enumerate(parts)}
    seen = np.zeros(len(parts))
    n_sweeps = 6000
    for uniforms in rng.random((n_sweeps, 5)):
        state.sweep(uniforms, reach=np.inf)
        seen[where[oracle.in_order(state.labels)]] += 1
    # total variation of that many independent draws would be about 0.03; sweeps are a little correlated
    assert 0.5 * np.abs(seen / n_sweeps - exact).sum() < 0.06


def test_the_prior_of_all_partitions_adds_up_to_one():
    times = np.array([0.0, 0.4, 0.4, 2.0, 5.0])
    total = sum(
        np.exp(oracle.log_prior(times, list(p), lambda gap: float(np.exp(-gap)), ALPHA)) for p in oracle.partitions(5)
    )
    assert total == pytest.approx(1.0)


def test_chains_depend_on_their_seed_alone_and_find_plain_clusters():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 20)
    X = sp.csr_matrix(np.eye(3)[truth] * 30 + rng.poisson(0.2, (60, 3)), dtype=float)
    times = np.arange(60.0)
    kernel = ExponentialKernel(0.1)
    schedule = Schedule(30, 20, 2, 1e-9, Learned(False, False, False, False), kernel)
    chains = []
    for seed in (1, 1, 2):
        state = started(kernel, times, X, base_measures.make_prior(3, strength=3.0), "multinomial", seed)
        with Monitor("test", 30) as monitor:
            chains.append(run_chain(state, X, times, schedule, monitor))
    np.testing.assert_array_equal(chains[0].samples, chains[1].samples)
    assert len(chains[0].samples) == 5
    for chain in chains:
        assert oracle.in_order(chain.state.labels) == tuple(truth)


def test_gains_are_cleared_after_every_document():
    """A count above 8 is scored by log Gammas, which may round below 0 where a cluster's count has fallen to 0."""
    data = make_threads(100, n_features=3, length=100, random_state=0)
    X, times = data.X.toarray().astype(float), data.times
    prior = base_measures.make_prior(3, strength=3.0)
    base_measures.add_seen(prior, X.sum(axis=0))
    base = base_measures.base_measure(prior, 0.5)
    state = started(ExponentialKernel(0.5), times, X, prior, "multinomial", 0)
    for _ in range(4):
        state.sweep(state.uniforms(100), reach=np.inf)
        assert not state.scratch.gain.any()
    before = state.labels.copy()
    log_probs, ids = state.sweep(state.uniforms(100), reach=np.inf, watched=30)
    mixed = [*state.labels[:30], *before[30:]]
    exact = oracle.conditional(30, times, mixed, X, lambda gap: np.exp(-0.5 * gap), ALPHA, oracle.multinomial(base))
    np.testing.assert_allclose(log_probs, [exact[c] for c in ids.tolist()], atol=1e-9)
