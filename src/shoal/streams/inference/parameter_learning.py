"""Learning the concentration and the kernel's parameters: the M step of stochastic EM, and draws from their posterior.

Given samples S of the labels, maximize the mean of log P(S | T) = K log alpha + sum log w_i - sum log(T_i + alpha).
For a fixed kernel the best alpha solves K = sum alpha / (T_i + alpha), which has one root; only the kernel is searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar

from shoal.streams.kernels import learning_kernels
from shoal.streams.state import arrays as st
from shoal.streams.time_kernels import ExponentialKernel, StepKernel, TimeKernel

if TYPE_CHECKING:
    from shoal.streams.state.stream_state import StreamState

STRENGTH_STEPS = np.array([0.7, 0.85, 1.0, 1.18, 1.4])
MANY_CLUSTERS = 200  # enough to learn the strength from
CONCENTRATION_RANGE = (-12.0, 20.0)  # in logs, as in best_concentration
SLICE = 0.3  # width of a slice sampler's first step, in logs
DRAWS_BETWEEN_SWEEPS = 2
SLOWEST, FASTEST = 1e-2, 20.0  # learned rates lie between SLOWEST / whole span and FASTEST / mean gap


class LogPrior(NamedTuple):
    """log P(S | T) and its slopes."""

    value: float
    by_concentration: float
    by_rate: float


def dense_labels(labels: np.ndarray) -> tuple[np.ndarray, int]:
    ids, dense = np.unique(labels, return_inverse=True)
    return dense.astype(np.int64), ids.size


def log_prior(times: np.ndarray, samples: Sequence[np.ndarray], concentration: float, rate: float) -> LogPrior:
    """Mean over samples of log P(S | T) under an exponential kernel, with gradients (equations 22-25).

    >>> times = np.array([0.0, 1.0, 3.0])
    >>> flat = log_prior(times, [np.array([0, 0, 1])], 1.0, 0.0)  # rate 0: the Chinese restaurant, 1/2 * 1/3
    >>> bool(np.isclose(np.exp(flat.value), 1 / 6))
    True
    """
    totals, slopes = np.zeros(len(times)), np.zeros(len(times))
    learning_kernels.total_weights(times, rate, totals, slopes)
    value = by_rate = n_clusters = 0.0
    for labels in samples:
        dense, n = dense_labels(labels)
        log_w, slope, n_first = learning_kernels.member_weights(times, dense, n, rate)
        value, by_rate, n_clusters = value + log_w, by_rate + slope, n_clusters + n_first
    m = len(samples)
    n_clusters /= m
    return LogPrior(
        value / m + n_clusters * math.log(concentration) - float(np.log(totals + concentration).sum()),
        n_clusters / concentration - float((1.0 / (totals + concentration)).sum()),
        by_rate / m - float((slopes / (totals + concentration)).sum()),
    )


def best_concentration(totals: np.ndarray, n_clusters: float) -> float:
    """The alpha whose expected number of clusters is the one seen, kept off 0 and infinity.

    >>> round(best_concentration(np.arange(100.0), 5.187), 2)  # Chinese restaurant: H_100 = 5.187
    1.0
    """
    n = len(totals)
    wanted = min(max(n_clusters, 1.0 + 1e-3), n - 0.5) if n > 1 else 1.0 + 1e-3

    def excess(log_alpha: float) -> float:
        return wanted - float((1.0 / (1.0 + totals * math.exp(-log_alpha))).sum())

    lo, hi = CONCENTRATION_RANGE
    if excess(lo) * excess(hi) > 0:  # too few or too many clusters for any concentration between
        return math.exp(lo) if excess(lo) < 0 else math.exp(hi)
    return math.exp(brentq(excess, lo, hi, xtol=1e-6))


def rate_range(times: np.ndarray) -> tuple[float, float]:
    """Rates that could matter for these times, whatever their unit."""
    span = float(times[-1] - times[0]) if len(times) > 1 else 0.0
    if span <= 0.0:
        return 1e-2, 1e2
    return SLOWEST / span, FASTEST * (len(times) - 1) / span


def maximize(times: np.ndarray, samples: Sequence[np.ndarray], kernel: TimeKernel) -> tuple[TimeKernel, float]:
    """The kernel of the same kind, and the concentration, that explain these labels best."""
    if isinstance(kernel, ExponentialKernel):
        return _maximize_rate(times, samples)
    return _maximize_any(times, samples, kernel)


def _profile(times: np.ndarray, samples: Sequence[np.ndarray]) -> Callable[[TimeKernel], tuple[float, float]]:
    dense = [dense_labels(labels) for labels in samples]
    n_clusters = float(np.mean([n for _, n in dense]))

    def at(kernel: TimeKernel) -> tuple[float, float]:
        """(-log P, concentration) at a kernel."""
        totals, slopes = np.zeros(len(times)), np.zeros(len(times))
        if isinstance(kernel, ExponentialKernel):
            rate = float(kernel.parameters()[0])
            learning_kernels.total_weights(times, rate, totals, slopes)
            log_w = [learning_kernels.member_weights(times, labels, n, rate)[0] for labels, n in dense]
        else:
            waves = np.ascontiguousarray(np.stack(kernel.waves()))
            learning_kernels.wave_totals(times, waves, totals)
            log_w = [learning_kernels.wave_members(times, labels, n, waves)[0] for labels, n in dense]
        alpha = best_concentration(totals, n_clusters)
        value = float(np.mean(log_w)) + n_clusters * math.log(alpha) - float(np.log(totals + alpha).sum())
        return -value, alpha

    return at


def _maximize_rate(times: np.ndarray, samples: Sequence[np.ndarray]) -> tuple[TimeKernel, float]:
    at = _profile(times, samples)
    slowest, fastest = rate_range(times)
    grid = np.linspace(math.log(slowest), math.log(fastest), 25)
    values = [at(ExponentialKernel(math.exp(x)))[0] for x in grid]
    best = int(np.argmin(values))
    found = minimize_scalar(
        lambda x: at(ExponentialKernel(math.exp(x)))[0],
        bounds=(grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]),
        method="bounded",
        options={"xatol": 1e-3},
    )
    kernel = ExponentialKernel(math.exp(found.x))
    return kernel, at(kernel)[1]


def _maximize_any(times: np.ndarray, samples: Sequence[np.ndarray], kernel: TimeKernel) -> tuple[TimeKernel, float]:
    at = _profile(times, samples)
    start = kernel.parameters()
    if isinstance(kernel, StepKernel) or start.size == 0:
        return kernel, at(kernel)[1]

    def cost(log_values: np.ndarray) -> float:
        # e^6 away from where we are is a step no data would ask for; the bound keeps the search off overflow
        return at(kernel.with_parameters(start * np.exp(np.clip(log_values, -6.0, 6.0))))[0]

    found = minimize(
        cost, np.zeros(start.size), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-3, "maxiter": 120}
    )
    better = kernel.with_parameters(start * np.exp(np.clip(found.x, -6.0, 6.0)))
    return better, at(better)[1]


def draw(
    times: np.ndarray, labels: np.ndarray, kernel: TimeKernel, concentration: float, rng: np.random.Generator, *,
    around: TimeKernel, moves_kernel: bool = True, moves_concentration: bool = True,
) -> tuple[TimeKernel, float]:  # fmt: skip
    """The kernel's parameters and the concentration drawn anew, given the labels: slice sampling in their logarithms.

    Their prior is flat in the logarithm, over the rates that could matter for these times (other parameters: within e^6
    of those of the kernel ``around``). Drawing them between sweeps makes the chain one of labels and parameters
    together, so its spread holds the labels' uncertainty too.
    """
    dense, n_clusters = dense_labels(labels)
    start = kernel.parameters() if moves_kernel else np.zeros(0)
    slowest, fastest = rate_range(times)
    bounds = [(math.log(slowest), math.log(fastest))] if isinstance(kernel, ExponentialKernel) else []
    bounds = (bounds or [(float(x) - 6.0, float(x) + 6.0) for x in np.log(around.parameters())])[: start.size]
    bounds += [CONCENTRATION_RANGE] if moves_concentration else []

    def log_prob(at: np.ndarray) -> float:
        here = kernel.with_parameters(np.exp(at[: start.size])) if start.size else kernel
        log_alpha = float(at[-1]) if moves_concentration else math.log(concentration)
        return log_prior_of(times, dense, n_clusters, here, log_alpha)

    at = np.log(np.append(start, concentration) if moves_concentration else start)
    at = np.clip(at, [lo for lo, _ in bounds], [hi for _, hi in bounds])
    value = log_prob(at)
    for _ in range(DRAWS_BETWEEN_SWEEPS):
        for which, (lo, hi) in enumerate(bounds):
            value = slice_step(log_prob, at, which, value, lo, hi, rng)
    found = kernel.with_parameters(np.exp(at[: start.size])) if start.size else kernel
    return found, math.exp(at[-1]) if moves_concentration else concentration


def log_prior_of(times: np.ndarray, dense: np.ndarray, n_clusters: int, kernel: TimeKernel, log_alpha: float) -> float:
    """log P(S | T) of one sample of the labels."""
    totals = np.zeros(len(times))
    if isinstance(kernel, ExponentialKernel):
        rate = float(kernel.parameters()[0])
        learning_kernels.total_weights(times, rate, totals, np.zeros(len(times)))
        log_w = learning_kernels.member_weights(times, dense, n_clusters, rate)[0]
    else:
        waves = np.ascontiguousarray(np.stack(kernel.waves()))
        learning_kernels.wave_totals(times, waves, totals)
        log_w = learning_kernels.wave_members(times, dense, n_clusters, waves)[0]
    return float(log_w + n_clusters * log_alpha - np.log(totals + math.exp(log_alpha)).sum())


def slice_step(
    log_prob: Callable[[np.ndarray], float],
    at: np.ndarray,
    which: int,
    value: float,
    lo: float,
    hi: float,
    rng: np.random.Generator,
) -> float:
    """Draw one coordinate of ``at`` anew, in place: step out from it, then shrink to it. Returns its log probability.

    >>> rng, at, seen = np.random.default_rng(0), np.zeros(1), []
    >>> value = 0.0
    >>> for _ in range(4000):
    ...     value = slice_step(lambda x: -0.5 * float(x[0]) ** 2, at, 0, value, -20.0, 20.0, rng)
    ...     seen.append(at[0])
    >>> abs(float(np.mean(seen))) < 0.1, abs(float(np.std(seen)) - 1.0) < 0.1
    (True, True)
    """
    here, height = at[which], value - rng.exponential()

    def inside(x: float) -> bool:
        at[which] = x
        return log_prob(at) > height

    left = max(lo, here - SLICE * rng.random())
    right = min(hi, left + SLICE)
    while left > lo and inside(left):
        left = max(lo, left - SLICE)
    while right < hi and inside(right):
        right = min(hi, right + SLICE)
    while True:
        at[which] = rng.uniform(left, right)
        value = log_prob(at)
        if value > height:
            return value
        if right - left < 1e-12:  # the slice has shrunk to where we were
            at[which] = here
            return log_prob(at)
        left, right = (at[which], right) if at[which] < here else (left, at[which])


def learn_strength(state: StreamState, times_likeliest: float = 1.0) -> None:
    """Move the strength of the words' base measure a step towards what the present clusters make likeliest.

    ``times_likeliest`` aims at a multiple of it.
    """
    live = state.live[state.clusters.record.n_members[state.live] > 1]
    if live.size < 2 or state.status[0].family != st.MULTINOMIAL or state.status[0].drift > 0.0:
        return
    some = np.ascontiguousarray(np.sort(live)[:: 1 + live.size // MANY_CLUSTERS])
    floor, block = float(state.status[0].floor), state.prior.blocks[0]
    log_probs = np.zeros(STRENGTH_STEPS.size)
    learning_kernels.strength_evidence(
        state.clusters, state.tables, state.prior, floor, some, STRENGTH_STEPS / times_likeliest, log_probs
    )
    stronger = float(block.strength * STRENGTH_STEPS[int(np.argmax(log_probs))])
    state.set_strength(min(max(stronger, 0.1), float(block.width)))
