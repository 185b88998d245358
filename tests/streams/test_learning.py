"""Learning of the concentration and of kernels: gradients, roots, and recovery."""

from __future__ import annotations

import numpy as np
import pytest

from oracles import streams as oracle
from shoal.datasets import make_threads
from shoal.streams import Inference, TimeSensitiveMixture
from shoal.streams.inference import gibbs
from shoal.streams.inference.base_learning import learn_base, limit_strength
from shoal.streams.inference.parameter_learning import draw, log_prior, maximize, rate_range
from shoal.streams.time_kernels import ExponentialKernel, PeriodicKernel, PowerKernel, StepKernel


@pytest.mark.parametrize(("alpha", "rate"), [(0.2, 0.5), (1.3, 0.05), (0.7, 2.0)])
def test_value_and_gradients(alpha, rate):
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.exponential(1.0, 60))
    samples = [rng.integers(0, 6, 60), rng.integers(0, 9, 60)]
    here = log_prior(times, samples, alpha, rate)
    exact = np.mean([oracle.log_prior(times, list(s), lambda gap: np.exp(-rate * gap), alpha) for s in samples])
    assert here.value == pytest.approx(exact, abs=1e-9)
    step = 1e-6
    up, down = (log_prior(times, samples, alpha + d, rate).value for d in (step, -step))
    assert here.by_concentration == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-5)
    up, down = (log_prior(times, samples, alpha, rate + d).value for d in (step, -step))
    assert here.by_rate == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-5)


def test_the_maximum_is_one():
    rng = np.random.default_rng(1)
    times = np.cumsum(rng.exponential(1.0, 300))
    samples = [np.arange(300) // 15 + rng.integers(0, 2, 300)]
    kernel, alpha = maximize(times, samples, ExponentialKernel(1.0))
    rate = float(kernel.parameters()[0])
    best = log_prior(times, samples, alpha, rate)
    assert abs(best.by_concentration) < 1e-3
    for other_alpha, other_rate in [(alpha * 1.1, rate), (alpha, rate * 1.2), (alpha, rate / 1.2)]:
        assert log_prior(times, samples, other_alpha, other_rate).value <= best.value + 1e-6


def test_generating_parameters_come_back_from_true_labels():
    found = []
    for seed in range(5):
        data = make_threads(2000, decay=0.5, concentration=0.2, random_state=seed)
        kernel, alpha = maximize(data.times, [np.asarray(data.labels)], ExponentialKernel(1.0))
        found.append((float(kernel.parameters()[0]), alpha))
    rate, alpha = np.mean(found, axis=0)
    assert 0.44 < rate < 0.56
    assert 0.17 < alpha < 0.24


def test_labels_without_time_structure_ask_for_no_forgetting():
    data = make_threads(1500, decay=0.0, concentration=2.0, random_state=0)
    kernel, _ = maximize(data.times, [np.asarray(data.labels)], ExponentialKernel(1.0))
    # half of the first message's weight is left at the end, or more
    assert float(kernel(data.times[-1] - data.times[0])) > 0.5


@pytest.mark.parametrize("unit", [1.0, 86400.0])
def test_the_unit_of_the_clock_does_not_matter(unit):
    data = make_threads(500, random_state=1)
    times, labels = data.times * unit, [np.asarray(data.labels)]
    lo, hi = rate_range(times)
    assert lo < 0.5 / unit < hi
    kernel, _ = maximize(times, labels, ExponentialKernel(1.0))
    plain, _ = maximize(data.times, labels, ExponentialKernel(1.0))
    assert float(kernel.parameters()[0]) * unit == pytest.approx(float(plain.parameters()[0]), rel=1e-2)


def test_any_kernel_can_be_learned():
    rng = np.random.default_rng(2)
    # a thread that speaks weekly, beside people who speak once
    weekly = np.arange(0.0, 200.0, 7.0) + rng.normal(0, 0.2, 29)
    others = rng.uniform(0, 200, 60)
    times = np.concatenate([weekly, others])
    labels = np.concatenate([np.zeros(29, int), np.arange(1, 61)])
    order = np.argsort(times)
    start = PeriodicKernel(period=6.6, rate=0.05, sharpness=2.0)
    kernel, alpha = maximize(times[order], [labels[order]], start)
    assert isinstance(kernel, PeriodicKernel)
    assert kernel.period == pytest.approx(7.0, abs=0.1)
    assert alpha > 0
    power, _ = maximize(times[order], [labels[order]], PowerKernel(1.0, 1.0))
    assert isinstance(power, PowerKernel)
    step, alpha = maximize(times[order], [labels[order]], StepKernel())
    assert isinstance(step, StepKernel)
    assert 10.0 < alpha < 1000.0


def test_draws_are_from_the_posterior_given_the_labels():
    """Two parameters, so the posterior can be summed on a grid."""
    data = make_threads(150, decay=0.5, concentration=0.5, random_state=2)
    labels = np.asarray(data.labels)
    log_rates, log_alphas = np.linspace(-4.0, 2.5, 80), np.linspace(-4.0, 3.0, 80)
    grid = np.array(
        [[log_prior(data.times, [labels], np.exp(a), np.exp(r)).value for a in log_alphas] for r in log_rates]
    )
    weight = np.exp(grid - grid.max())
    weight /= weight.sum()
    rng, kernel, alpha, seen = np.random.default_rng(0), ExponentialKernel(0.1), 3.0, []
    for _ in range(1500):
        kernel, alpha = draw(data.times, labels, kernel, alpha, rng, around=kernel)
        seen.append((np.log(kernel.rate), np.log(alpha)))
    mean, sd = np.mean(seen[50:], axis=0), np.std(seen[50:], axis=0)
    exact = np.array([(weight.sum(1) * log_rates).sum(), (weight.sum(0) * log_alphas).sum()])
    spread = np.array([(weight.sum(1) * log_rates**2).sum(), (weight.sum(0) * log_alphas**2).sum()]) - exact**2
    # some 700 independent draws: a mean is good to sd / 26
    np.testing.assert_allclose(mean, exact, atol=0.15 * sd.max())
    np.testing.assert_allclose(sd, np.sqrt(spread), rtol=0.15)


def test_fit_keeps_draws_of_what_it_learns():
    data = make_threads(120, length=50, random_state=0)
    model = TimeSensitiveMixture(base="uniform", strength=3.0, inference=Inference(n_sweeps=40, burn_in=20)).fit(data)
    draws = model.parameter_draws_
    assert list(draws) == ["rate", "concentration"]
    assert len(draws["rate"]) == 20
    assert draws["rate"].min() < float(model.kernel_.parameters()[0]) < draws["rate"].max()
    assert model.concentration_ == pytest.approx(np.exp(np.log(draws["concentration"]).mean()))
    given = TimeSensitiveMixture(StepKernel(), concentration=0.5, inference=Inference(n_sweeps=5, burn_in=2)).fit(data)
    assert given.concentration_ == pytest.approx(0.5)


@pytest.mark.parametrize("kernel", [PowerKernel(5.0, 1.0), PeriodicKernel(20.0, 0.05)])
def test_a_stream_learns_its_concentration_under_any_kernel(kernel):
    found = []
    for concentration in (0.2, 5.0):
        data = make_threads(
            1500, n_features=2000, length=12, prior=0.005, decay=0.05, concentration=concentration, random_state=1
        )
        inference = Inference(window=60, batch=20)
        model = TimeSensitiveMixture(kernel, inference=inference, random_state=0).partial_fit(data)
        found.append(model.concentration_)
        fixed = TimeSensitiveMixture(kernel, concentration=2.0, inference=inference).partial_fit(data[:100])
        assert fixed.concentration_ == 2.0
    assert found[0] < found[1]


def test_sampling_learns_the_base_measure_through_burn_in_from_a_bounded_strength(monkeypatch):
    seen = []

    def noted(state, *, mean, strength, rounds):
        seen.append(state.prior.blocks.strength[0])
        learn_base(state, mean=mean, strength=strength, rounds=rounds)

    monkeypatch.setattr(gibbs, "learn_base", noted)
    data = make_threads(60, n_features=30, length=20, random_state=0)
    TimeSensitiveMixture(random_state=0, inference=Inference(n_sweeps=30, burn_in=20)).fit(data)
    assert len(seen) == 10
    assert seen[0] <= 30.0
    seen.clear()
    TimeSensitiveMixture(strength=90.0, inference=Inference(n_sweeps=30, burn_in=20)).fit(data)
    assert set(seen) == {90.0}


def test_a_chain_begins_with_at_most_one_pseudo_count_a_feature():
    model = TimeSensitiveMixture(random_state=0).fit(make_threads(60, n_features=30, length=20, random_state=0))
    state = model.stream_.state
    for strength, limited in ((500.0, 30.0), (7.0, 7.0)):
        state.set_strength(strength)
        limit_strength(state)
        assert state.prior.blocks.strength[0] == limited
