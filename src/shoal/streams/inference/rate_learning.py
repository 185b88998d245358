"""Learning the rate of forgetting and the concentration while a stream goes by.

Each settled document adds to the likelihood of every pair (rate, concentration) on a grid. The grid is laid around the
typical gap between messages, so it suits any clock; its first rate is 0, the mixture without time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.base import storable
from shoal.streams.kernels import learning_kernels
from shoal.streams.state.state_arrays import writable
from shoal.streams.state.stream_state import StreamState

START_CONCENTRATION = 30.0
EAGERNESS = 3.0  # found on MStream's four streams of short texts, where half or twice as much costs up to .015 of NMI
OWN_RATE_SPREAD = 1.0
START_DOCS = 1000.0  # before anything is learned, a message counts for 1/e after about so many others
MEMORY_DOCS = 50_000.0  # evidence about the parameters is forgotten over so many documents
RATES_PER_GAP = np.concatenate([[0.0], np.logspace(-5.0, 0.5, 15)])
CONCENTRATIONS = np.logspace(-2, 4, 19)


@storable
@dataclass
class GridLearner:
    """log P(labels | times) on a grid of rates and concentrations."""

    rates: np.ndarray
    log_alphas: np.ndarray
    total_u: np.ndarray
    clock: np.ndarray  # (1,) time of the last settled document
    log_liks: np.ndarray  # (rates, concentrations)
    at: tuple[int, int]  # the pair in use

    @classmethod
    def around(cls, gap: float, rate: float | None, concentration: float | None) -> GridLearner:
        """A grid for messages that come a gap apart; what is given is fixed, what is None is learned."""
        rates = RATES_PER_GAP / gap if rate is None else np.array([rate])
        alphas = CONCENTRATIONS if concentration is None else np.array([concentration])
        at_rate = int(np.argmin(np.abs(rates - 1.0 / (START_DOCS * gap))))
        at_alpha = int(np.argmin(np.abs(np.log(alphas) - math.log(START_CONCENTRATION))))
        return cls(
            rates,
            np.log(alphas),
            np.zeros(rates.size),
            np.full(1, -math.inf),
            np.zeros((rates.size, alphas.size)),
            (at_rate, at_alpha),
        )

    def __post_init__(self) -> None:
        for name in ("rates", "log_alphas", "total_u", "clock", "log_liks"):
            setattr(self, name, writable(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    @property
    def rate(self) -> float:
        return float(self.rates[self.at[0]])

    @property
    def concentration(self) -> float:
        """Taking the best cluster for each message makes fewer births than drawing would, so births are favoured."""
        learned = math.exp(self.log_alphas[self.at[1]])
        return EAGERNESS * learned if self.log_alphas.size > 1 else learned

    def settle(self, state: StreamState, upto: int) -> None:
        """Take in the first documents of the window, which are about to settle."""
        if not np.isfinite(self.clock[0]):
            self.clock[0] = state.window.docs.time[0]
        keep = 1.0 - 1.0 / MEMORY_DOCS
        learning_kernels.grid_update(
            state.clusters,
            state.window,
            upto,
            self.rates,
            self.log_alphas,
            self.total_u,
            self.clock,
            keep,
            self.log_liks,
        )

    def choose(self) -> bool:
        """Move to the best pair on the grid, one step at a time; whether anything changed."""
        best = np.unravel_index(int(np.argmax(self.log_liks)), self.log_liks.shape)
        before = self.at
        self.at = tuple(int(now + np.sign(want - now)) for now, want in zip(self.at, best, strict=True))  # type: ignore[assignment]
        return self.at != before

    def own_rates(self, state: StreamState, slots: np.ndarray, now: float, gap: float) -> np.ndarray:
        """For each cluster, which rate of the grid suits its members best, with a prior around the common rate.

        A cluster's members are arrivals whose rate is its weight over G = (T + alpha) gap. Their log likelihood is
        the sum of log w less the weight's integral, about n (1 - exp(-rate age)) / (rate G). The prior is normal in
        the log of the rate, with a standard deviation of OWN_RATE_SPREAD.
        """
        rates = np.maximum(self.rates, self.rates[self.rates > 0].min() * 0.1)
        record = state.clusters.record[slots]
        n = record.n_settled[:, None]
        age = np.maximum(now - record.born, gap)[:, None]
        scale = (self.total_u[self.at[0]] + self.concentration) * gap
        integral = n * -np.expm1(-rates * age) / (rates * scale)
        prior = -0.5 * ((np.log(rates) - math.log(rates[self.at[0]])) / OWN_RATE_SPREAD) ** 2
        best = np.argmax(state.clusters.grid_log_w[slots] - integral + prior, axis=1)
        return np.where(n[:, 0] > 0, best, self.at[0])


@storable
@dataclass
class BirthLearner:
    """log P(labels | times) on a grid of concentrations, under a kernel that is given (a power law, a periodic one)."""

    log_alphas: np.ndarray
    total_wave: np.ndarray  # (waves, 2) the kernel's sums over all settled documents
    clock: np.ndarray  # (1,) time of the last settled document
    log_liks: np.ndarray
    at: int

    @classmethod
    def for_state(cls, state: StreamState) -> BirthLearner:
        """A learner for the state's kernel, which has settled nothing yet."""
        at = int(np.argmin(np.abs(np.log(CONCENTRATIONS / START_CONCENTRATION))))
        first = np.full(1, state.window.docs.time[0])
        wave = np.zeros((state.waves.shape[1], 2))
        return cls(np.log(CONCENTRATIONS), wave, first, np.zeros(CONCENTRATIONS.size), at)

    def __post_init__(self) -> None:
        for name in ("log_alphas", "total_wave", "clock", "log_liks"):
            setattr(self, name, writable(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    @property
    def concentration(self) -> float:
        """Births are favoured as by :class:`GridLearner`."""
        return EAGERNESS * math.exp(self.log_alphas[self.at])

    def settle(self, state: StreamState, upto: int) -> None:
        """Take in the first documents of the window, which are about to settle."""
        learning_kernels.births_update(
            state.clusters,
            state.window,
            upto,
            state.waves,
            self.log_alphas,
            self.total_wave,
            self.clock,
            1.0 - 1.0 / MEMORY_DOCS,
            self.log_liks,
        )

    def choose(self) -> bool:
        """One step towards the best concentration; whether anything changed."""
        step = int(np.sign(int(np.argmax(self.log_liks)) - self.at))
        self.at += step
        return step != 0


def typical_gap(times: np.ndarray) -> float:
    """The mean gap between messages, 1 where a clock stands still.

    >>> typical_gap(np.array([10.0, 10.0, 14.0]))
    2.0
    """
    span = float(times.max() - times.min()) if times.size > 1 else 0.0
    return span / (times.size - 1) if span > 0 else 1.0
