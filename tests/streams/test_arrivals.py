"""When messages come: rates and forecasts against what can be worked out, and how often intervals hold."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

import shoal
from shoal.datasets import make_threads
from shoal.streams import ExponentialKernel, PeriodicKernel, TimeSensitiveMixture
from shoal.streams.arrivals import SHAPE, ArrivalLearner, log_probabilities, rates_of_stories, watched_time


@pytest.mark.parametrize("kernel", [ExponentialKernel(0.3), ExponentialKernel(0.0), PeriodicKernel(7.0, 0.05, 3.0)])
def test_watched_time_is_the_integral_of_the_kernel(kernel):
    ages = np.array([0.0, 0.7, 12.0])
    exact = [quad(lambda x: float(kernel(x)), 0, age, limit=200)[0] for age in ages]
    np.testing.assert_allclose(watched_time(ages, kernel.waves()), exact, atol=1e-9)


def test_the_kernel_alone_is_the_hawkes_process_with_an_unknown_multiple():
    """Integrated over the multiple numerically."""
    times, rate, alpha = np.array([0.0, 0.3, 1.7, 2.0]), 0.8, 0.4
    gap = (times[-1] - times[0]) / 3
    a, b = SHAPE, SHAPE * gap * alpha

    def weight(t):
        return alpha + np.exp(-rate * (t - times[times < t])).sum()

    def density(multiple):
        ends = np.append(times[0], times)
        passed = sum(quad(weight, lo, hi)[0] for lo, hi in pairwise(ends))
        log_prior = a * math.log(b) - math.lgamma(a) + (a - 1) * math.log(multiple) - b * multiple
        return math.exp(log_prior + sum(math.log(multiple * weight(t)) for t in times) - multiple * passed)

    exact = math.log(quad(density, 0, 40, limit=500, points=[1e-3, 1.0])[0])
    assert log_probabilities(times, rate, alpha)[1] == pytest.approx(exact, abs=1e-5)


def test_intervals_hold_as_often_as_they_say_and_changing_rates_are_followed():
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.exponential(1.0, 3000))
    learner, held, at = ArrivalLearner(), [], 0
    for now in np.arange(200.0, times[-1] - 20.0, 20.0):
        upto = int(np.searchsorted(times, now))
        learner.learn(times[at:upto])
        at = upto
        _, low, high = learner.rate_at(now).counts(20.0, 0.9)
        held.append(low[0] <= ((times >= now) & (times < now + 20.0)).sum() <= high[0])
    assert 0.85 <= np.mean(held) <= 0.99
    faster = np.concatenate([times, times[-1] + np.cumsum(rng.exponential(0.02, 2000))])
    learner.learn(faster[at:])
    assert learner.rate_at(faster[-1]).mean[0] == pytest.approx(50.0, rel=0.25)


def test_a_story_forecast_is_the_gamma_of_its_messages():
    """Without forgetting, n messages in t days come at about n / t a day."""
    weights, ages = np.array([1000.0, 10.0, 500.0]), np.array([100.0, 100.0, 100.0])
    rates = rates_of_stories(weights, ages, ExponentialKernel(0.0).waves(), 1.0)
    np.testing.assert_allclose(rates.mean, weights / ages, rtol=0.1)


def test_a_model_forecasts_and_goes_on_after_a_file(tmp_path):
    data = make_threads(900, n_features=60, length=12, prior=0.05, decay=0.02, concentration=0.5, random_state=0)
    model = TimeSensitiveMixture(random_state=0).partial_fit(data.X[:800], times=data.times[:800])
    whole = TimeSensitiveMixture(random_state=0).fit(data.X[:800], times=data.times[:800])
    ahead = float(data.times[799] - data.times[700])
    for each in (model, whole):
        forecast = each.forecast_arrivals(ahead)
        assert forecast.low <= 100 <= forecast.high
        assert forecast.cluster_ids.size == forecast.cluster_high.size == each.n_clusters_
        np.testing.assert_allclose(forecast.cluster_expected, ahead * each.arrival_rates())
        assert each.forecast_arrivals(ahead, at=data.times[799] + 50 * ahead).expected < forecast.expected
    shoal.save(tmp_path / "model.shoal", model)
    again = shoal.load(tmp_path / "model.shoal")
    again.partial_fit(data.X[800:], times=data.times[800:])
    model.partial_fit(data.X[800:], times=data.times[800:])
    assert again.forecast_arrivals(5.0)[:3] == model.forecast_arrivals(5.0)[:3]


def test_the_rate_learned_explains_times_better_than_the_kernel_alone_where_stories_do_not_excite():
    data = make_threads(2000, random_state=1)  # messages come at a constant rate, whatever their threads
    learned, alone = log_probabilities(np.asarray(data.times), 0.5, 0.2)
    assert learned > alone + 50.0
