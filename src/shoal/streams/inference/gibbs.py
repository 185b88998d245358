"""Batch inference: Gibbs chains over all documents; what is to be learned is found by stochastic EM, then sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from shoal.progress import task
from shoal.streams.inference.parameter_learning import draw, learn_strength, maximize
from shoal.streams.priors import surprise
from shoal.streams.state import arrays as st
from shoal.streams.state.arrays import Prior
from shoal.streams.state.stream_state import EXHAUSTIVE, StreamState
from shoal.streams.time_kernels import TimeKernel
from shoal.threads import ordered_map

EAGER_STEP = 2.0
FRESH_STARTS = (0.125, 0.25, 0.5)  # shares of burn-in after which the documents arrive anew


@dataclass
class Plan:
    """What a chain is to do."""

    kernel: TimeKernel
    concentration: float
    family: int
    n_sweeps: int  # in all
    burn_in: int
    thin: int
    learn_kernel: bool
    learn_concentration: bool
    learn_strength: bool
    tolerance: float  # bound on the error of each conditional probability
    floor: float
    pseudo: tuple[float, float]


@dataclass
class Chain:
    """What it came to."""

    state: StreamState
    samples: list[np.ndarray]  # labels of kept sweeps, as cluster ids of this chain
    draws: list[np.ndarray]  # after burn-in: the kernel's parameters and the concentration after each sweep


def copy_of(prior: Prior) -> Prior:
    return Prior(*(array.copy() for array in prior))


def begin(
    X: sp.csr_matrix, times: np.ndarray, prior: Prior, plan: Plan, before: StreamState | None, seed: int
) -> StreamState:
    """Documents arrive in order, each at a cluster drawn given those before it; parameters as planned, or as before."""
    state = StreamState.start(
        kernel=plan.kernel if before is None else before.kernel,
        concentration=plan.concentration if before is None else before.concentration,
        family=plan.family,
        prior=copy_of(prior if before is None else before.prior),
        seed=seed,
        eps=plan.tolerance,
        floor=plan.floor,
        pseudo=plan.pseudo,
    )
    state.n_draws = 0 if before is None else before.n_draws
    lo, hi = state.append(X, times, first_number=0)
    state.arrive(lo, hi, budget=EXHAUSTIVE, n_best=1, running=False, uniforms=state.uniforms(hi))
    state.refresh()
    return state


def run_chain(X: sp.csr_matrix, times: np.ndarray, prior: Prior, plan: Plan, seed: int) -> Chain:
    """One chain: documents arrive in order, then sweeps; kernel and concentration move as :func:`learn` says.

    Where the kernel is learned the documents arrive anew a few times during burn-in. Clusters found under a rate that
    was too slow join what lies far apart, and moving one document at a time hardly ever parts them again.
    """
    state = begin(X, times, prior, plan, None, seed)
    least = surprise(X, plan.family, prior, plan.floor, plan.pseudo).max(initial=0.0)
    chain = Chain(state, [], [])
    anew = {int(share * plan.burn_in) for share in FRESH_STARTS} if plan.learn_kernel else set()
    with task("sampling", total=plan.n_sweeps) as bar:
        for sweep in range(plan.n_sweeps):
            if sweep > 0 and sweep in anew:
                state = chain.state = begin(X, times, prior, plan, state, seed)
            state.sweep(state.uniforms(X.shape[0]), reach=reach_of(state, least, plan.tolerance))
            learn(state, times, plan, sweep)
            if sweep >= plan.burn_in:
                chain.draws.append(np.append(state.kernel.parameters(), state.concentration))
            if sweep >= plan.burn_in and (sweep - plan.burn_in) % plan.thin == 0:
                chain.samples.append(state.labels.copy())
            bar.advance(1, clusters=state.n_live)
    if not chain.samples:
        chain.samples.append(state.labels.copy())
    return chain


def run_chains(X: sp.csr_matrix, times: np.ndarray, prior: Prior, plan: Plan, seeds: list[int]) -> list[Chain]:
    """Chains from different seeds, on threads; each depends on its own seed alone."""
    return list(ordered_map(lambda seed: run_chain(X, times, prior, plan, seed), seeds))


def reach_of(state: StreamState, least: float, tolerance: float) -> float:
    """How far in time a cluster may be and still matter.

    P(d | cluster) <= 1, so a cluster whose prior ratio is below alpha P(d | new) tolerance / K cannot have more than
    tolerance / K of the probability. Its ratio is at most u_max exp(-rate distance).
    """
    if state.kind != st.EXPONENTIAL or not math.isfinite(least):
        return math.inf
    odds = max(10, state.n_live) * state.status[0].u_max / (state.concentration * tolerance)
    return float((least + math.log(odds)) / state.rate)


def learn(state: StreamState, times: np.ndarray, plan: Plan, sweep: int) -> None:
    """Move the parameters: M steps in the first half of burn-in, from then on draws from their posterior.

    Labels change slowly when the parameters do, so plain M steps are far too short; twice as long ones find the
    region. Draws given the labels then make the whole chain one of labels and parameters, without a bias.
    """
    if plan.learn_strength and sweep < plan.burn_in and sweep % 2 == 1:
        learn_strength(state)
    if not (plan.learn_kernel or plan.learn_concentration):
        return
    if sweep < plan.burn_in // 2:
        if sweep % 2 == 1:
            state.set_time(*eager_step(state, times, plan))
        return
    rng = np.random.default_rng([state.seed, sweep])
    state.set_time(
        *draw(
            times,
            state.labels,
            state.kernel,
            state.concentration,
            rng,
            around=plan.kernel,
            moves_kernel=plan.learn_kernel,
            moves_concentration=plan.learn_concentration,
        )
    )


def eager_step(state: StreamState, times: np.ndarray, plan: Plan) -> tuple[TimeKernel, float]:
    """An M step that goes farther than asked for."""
    kernel, alpha = maximize(times, [state.labels], state.kernel if plan.learn_kernel else Fixed(state.kernel))
    if plan.learn_kernel:
        before = np.log(state.kernel.parameters())
        kernel = state.kernel.with_parameters(np.exp(before + EAGER_STEP * (np.log(kernel.parameters()) - before)))
    else:
        kernel = state.kernel
    if not plan.learn_concentration:
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
