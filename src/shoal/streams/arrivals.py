"""When messages come: a Poisson process whose rate is learned, for each story and for all together.

The mixture takes the times of messages as given. Here they are drawn, too (the extension that Zhu, Ghahramani and
Lafferty name): messages of a story come at a rate that is unknown and changes, so older ones count for less. With a
Gamma prior the rate is Gamma distributed, the number of messages in the time to come negative binomial, and a gap
Lomax. A story forgets as the model's kernel does; how fast the stream as a whole forgets is learned from its gaps.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import nbinom

from shoal.base import storable
from shoal.streams.kernels.arrival_kernels import discounted_arrivals, kernel_alone
from shoal.streams.state.state_arrays import writable
from shoal.streams.time_kernels import Waves

SHAPE = 0.5  # of the prior: half a message in half a typical gap
MESSAGES_REMEMBERED = np.append(0.0, 1.0 / np.logspace(0.5, 4.5, 17))  # rates of forgetting for a gap of 1
EVIDENCE_KEPT = 1.0 - 1.0 / 50_000.0  # evidence about the rate of forgetting is forgotten over so many messages
LOG_RANGE = (-12.0, 12.0)


class Forecast(NamedTuple):
    """Messages expected in the time to come, with an interval that holds their number with probability ``level``."""

    expected: float
    low: int
    high: int
    cluster_ids: np.ndarray  # the same for each live cluster
    cluster_expected: np.ndarray
    cluster_low: np.ndarray
    cluster_high: np.ndarray
    level: float


class Rates(NamedTuple):
    """Gamma distributions of rates of arrival."""

    shape: np.ndarray
    exposure: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return np.asarray(self.shape / self.exposure)

    def counts(self, horizon: float, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Messages within the horizon: their mean, and the bounds of an interval.

        >>> mean, low, high = Rates(np.array([900.0]), np.array([90.0])).counts(10.0, 0.9)
        >>> mean.tolist(), low.tolist(), high.tolist()
        ([100.0], [83], [118])
        """
        p = self.exposure / (self.exposure + horizon)
        low, high = (nbinom.ppf(q, self.shape, p).astype(np.int64) for q in ((1 - level) / 2, (1 + level) / 2))
        return self.mean * horizon, low, high


@storable
@dataclass
class ArrivalLearner:
    """The rate of all messages, at several rates of forgetting; the one that predicts gaps best is used."""

    gap: float = 0.0  # a typical one; 0 before the first messages
    sums: np.ndarray = field(default_factory=lambda: np.zeros(MESSAGES_REMEMBERED.size))
    exposures: np.ndarray = field(default_factory=lambda: np.zeros(MESSAGES_REMEMBERED.size))
    log_probs: np.ndarray = field(default_factory=lambda: np.zeros(MESSAGES_REMEMBERED.size))
    clock: np.ndarray = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        for name in ("sums", "exposures", "log_probs", "clock"):
            setattr(self, name, writable(getattr(self, name)))

    def learn(self, times: np.ndarray) -> None:
        """Messages in order of time, later than those before."""
        if times.size == 0:
            return
        if self.gap == 0.0:
            span = float(times[-1] - times[0])
            self.gap = span / (times.size - 1) if span > 0 else 1.0
            self.clock[0] = times[0]
        discounted_arrivals(
            np.ascontiguousarray(times), MESSAGES_REMEMBERED / self.gap, SHAPE, self.gap,
            self.sums, self.exposures, self.clock, EVIDENCE_KEPT, self.log_probs,
        )  # fmt: skip

    def after(self, times: np.ndarray) -> ArrivalLearner:
        """A copy that has learned these messages as well."""
        other = copy.deepcopy(self)
        other.learn(times)
        return other

    def rate_at(self, now: float) -> Rates:
        """What is known of the rate of all messages at a time."""
        best = int(np.argmax(self.log_probs))
        rate, gap = MESSAGES_REMEMBERED[best] / (self.gap or 1.0), max(0.0, now - float(self.clock[0]))
        faded = np.exp(-rate * gap)
        watched = gap if rate == 0.0 else (1.0 - faded) / rate
        shape, exposure = SHAPE + self.sums[best] * faded, SHAPE * (self.gap or 1.0) + self.exposures[best] * faded
        return Rates(np.array([shape]), np.array([exposure + watched]))


def rates_of_stories(weights: np.ndarray, ages: np.ndarray, waves: Waves, gap: float) -> Rates:
    """Of each story, from what its messages still weigh and how long it has been watched; the prior is theirs together.

    The prior is the Gamma under which the weights of all stories are likeliest.
    """
    exposures = watched_time(np.maximum(ages, 0.0), waves)

    def cost(logs: np.ndarray) -> float:
        a, b = np.exp(np.clip(logs, *LOG_RANGE))
        b *= gap
        each = gammaln(a + weights) - gammaln(a) + a * np.log(b) - (a + weights) * np.log(b + exposures)
        return -float(each.sum()) + 0.5 * float((logs**2).sum()) / LOG_RANGE[1]  # hardly anything: it keeps it finite

    start = np.log([SHAPE, SHAPE * max(1.0, weights.size)])
    found = minimize(cost, start, method="Nelder-Mead", options={"xatol": 0.01, "fatol": 0.01}).x
    a, b = np.exp(np.clip(found, *LOG_RANGE))
    return Rates(a + weights, b * gap + exposures)


def watched_time(ages: np.ndarray, waves: Waves) -> np.ndarray:
    """The integral of the kernel from 0 to each age.

    >>> watched_time(np.array([0.0, 100.0]), Waves(np.ones(1), np.array([0.5]), np.zeros(1))).tolist()
    [0.0, 2.0]
    """
    damped = waves.decay[None, :] - 1j * waves.frequency[None, :]
    x = ages[:, None]
    never = damped == 0
    each = np.where(never, x, -np.expm1(-damped * x) / np.where(never, 1.0, damped))
    return np.maximum(0.0, (waves.amplitude * each.real).sum(axis=1))


def log_probabilities(times: np.ndarray, rate: float, concentration: float) -> tuple[float, float]:
    """log P(times), each given those before: with the rate of arrivals learned, and by the exponential kernel alone.

    The first learns how fast it forgets as it goes: it is a mixture of all of them, equally likely at first. The
    second says that messages come at a multiple of the weight of all past messages plus the concentration.
    """
    times = np.ascontiguousarray(np.sort(times), dtype=np.float64)
    gap = (times[-1] - times[0]) / max(1, times.size - 1) or 1.0
    n = MESSAGES_REMEMBERED.size
    log_probs = np.zeros(n)
    sums, exposures, clock = np.zeros(n), np.zeros(n), times[:1].copy()
    discounted_arrivals(times, MESSAGES_REMEMBERED / gap, SHAPE, gap, sums, exposures, clock, 1.0, log_probs)
    mixed = float(np.logaddexp.reduce(log_probs) - np.log(n))
    return mixed, float(kernel_alone(times, rate, concentration, SHAPE, gap))
