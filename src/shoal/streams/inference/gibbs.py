"""Sampling: Gibbs sweeps, split-merge proposals and parameters, from the posterior of all documents together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from shoal.progress import Monitor
from shoal.streams.base_measures import surprise
from shoal.streams.inference.base_learning import learn_base, limit_strength
from shoal.streams.inference.batch import Batch, Learned
from shoal.streams.inference.parameter_learning import draw, maximize
from shoal.streams.state import arrays as st
from shoal.streams.state.stream_state import EXHAUSTIVE, StreamState
from shoal.streams.time_kernels import TimeKernel

EAGER_STEP = 2.0
PAIRS_PER_SWEEP = 20


@dataclass(frozen=True)
class Schedule:
    """How long a chain is, and what it learns."""

    n_sweeps: int  # in all
    burn_in: int
    thin: int
    tolerance: float  # bound on the error of each conditional probability
    learned: Learned
    kernel: TimeKernel  # around which parameters are drawn


@dataclass
class Chain:
    """What it came to."""

    state: StreamState
    samples: list[np.ndarray] = field(default_factory=list)  # labels of kept sweeps, as cluster ids of this chain
    draws: list[np.ndarray] = field(default_factory=list)  # the kernel's parameters and the concentration
    log_joints: list[float] = field(default_factory=list)  # after each sweep past burn-in
    n_clusters: list[int] = field(default_factory=list)


def arrive_again(state: StreamState, X: sp.csr_matrix, times: np.ndarray, seed: int) -> StreamState:
    """Documents arrive in order, each at a cluster drawn given those before it; parameters as in the state given."""
    fresh = state.empty_copy(seed)
    lo, hi = fresh.append(X, times, first_number=0)
    fresh.arrive(lo, hi, budget=EXHAUSTIVE, n_best=1, running=False, uniforms=fresh.uniforms(hi))
    fresh.refresh()
    return fresh


def run_chain(state: StreamState, X: sp.csr_matrix, times: np.ndarray, schedule: Schedule, monitor: Monitor) -> Chain:
    """Alternates sweeps over all documents, split-merge proposals and parameter updates, in place."""
    chain = Chain(state)
    if schedule.learned.strength:
        limit_strength(state)
    batch = Batch(state, times, schedule.learned, seed=state.seed)
    floor, pseudo = float(state.status[0].floor), (float(state.status[0].hits), float(state.status[0].misses))
    for sweep in range(schedule.n_sweeps):
        if not monitor.running:
            break
        least = surprise(X, int(state.status[0].family), state.prior, floor, pseudo).max(initial=0.0)
        state.sweep(state.uniforms(X.shape[0]), reach=reach_of(state, least, schedule.tolerance))
        batch.split_merge(PAIRS_PER_SWEEP)
        learn(batch, schedule, sweep)
        joint = batch.log_joint()
        if sweep >= schedule.burn_in:
            chain.draws.append(np.append(state.kernel.parameters(), state.concentration))
            chain.log_joints.append(joint)
            chain.n_clusters.append(state.n_live)
            if (sweep - schedule.burn_in) % schedule.thin == 0:
                chain.samples.append(state.labels.copy())
        monitor.report(joint, clusters=state.n_live)
    if not chain.samples:
        chain.samples.append(state.labels.copy())
        chain.draws.append(np.append(state.kernel.parameters(), state.concentration))
    return chain


def reach_of(state: StreamState, least: float, tolerance: float) -> float:
    """How far in time a cluster may be and still matter.

    P(d | cluster) <= 1, so a cluster whose prior ratio is below alpha P(d | new) tolerance / K cannot have more than
    tolerance / K of the probability. Its ratio is at most u_max exp(-rate distance).
    """
    if state.kind != st.EXPONENTIAL or not math.isfinite(least):
        return math.inf
    odds = max(10, state.n_live) * state.status[0].u_max / (state.concentration * tolerance)
    return float((least + math.log(odds)) / state.rate)


def learn(batch: Batch, schedule: Schedule, sweep: int) -> None:
    """Move the parameters: the base measure's by M steps all through burn-in, those of time in its first half.

    Labels change slowly when the parameters do, so plain M steps are far too short; twice as long ones find the
    region. Draws of time's parameters given the labels then make the chain one of both, without a bias. The base
    measure stays as it is once samples are kept. Learning it only in the first half of burn-in is as good on 20 sets of
    1000 words, length 20 (VI .761, here .770, with the base measure given .763).
    """
    state, learned = batch.state, schedule.learned
    early = sweep < schedule.burn_in // 2
    if sweep < schedule.burn_in and sweep % 2 == 1:
        learn_base(state, mean=learned.mean, strength=learned.strength, rounds=1)
    if not (learned.kernel or learned.concentration):
        return
    if early:
        if sweep % 2 == 1:
            state.set_time(*eager_step(state, batch.times, learned))
        return
    rng = np.random.default_rng([state.seed, sweep])
    moves = {"moves_kernel": learned.kernel, "moves_concentration": learned.concentration}
    kernel, concentration = state.kernel, state.concentration
    state.set_time(*draw(batch.times, state.labels, kernel, concentration, rng, around=schedule.kernel, **moves))


def eager_step(state: StreamState, times: np.ndarray, learned: Learned) -> tuple[TimeKernel, float]:
    """An M step that goes farther than asked for."""
    kernel, alpha = maximize(times, [state.labels], state.kernel if learned.kernel else Fixed(state.kernel))
    if learned.kernel:
        before = np.log(state.kernel.parameters())
        kernel = state.kernel.with_parameters(np.exp(before + EAGER_STEP * (np.log(kernel.parameters()) - before)))
    else:
        kernel = state.kernel
    if not learned.concentration:
        return kernel, state.concentration
    log_alpha = math.log(state.concentration)
    return kernel, math.exp(log_alpha + EAGER_STEP * (math.log(alpha) - log_alpha))


def typical(chains: list[Chain]) -> tuple[TimeKernel, float]:
    """The kernel and the concentration in the middle of all draws (means of logarithms)."""
    kernel = chains[0].state.kernel
    draws = np.concatenate([chain.draws for chain in chains])
    moved = np.ptp(draws, axis=0) > 0  # what was given stays what it is, to the last bit
    middle = np.where(moved, np.exp(np.log(draws).mean(axis=0)), draws[0])
    return kernel.with_parameters(middle[:-1]) if moved[:-1].any() else kernel, float(middle[-1])


class Fixed(TimeKernel):
    """A kernel that learning must leave as it is."""

    def __init__(self, kernel: TimeKernel) -> None:
        self.waves = kernel.waves  # type: ignore[method-assign]

    def learned_names(self) -> list[str]:
        return []

    def parameters(self) -> np.ndarray:
        return np.zeros(0)
