"""Batch inference: Gibbs chains over all documents; what is to be learned is found by stochastic EM, then sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from shoal.progress import task
from shoal.streams import state as st
from shoal.streams.engine import EXHAUSTIVE, Engine
from shoal.streams.kernels_over_time import TimeKernel
from shoal.streams.learning import draw, learn_strength, maximise
from shoal.streams.priors import surprise
from shoal.streams.state import Prior
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

    engine: Engine
    samples: list[np.ndarray]  # labels of kept sweeps, as cluster ids of this chain
    draws: list[np.ndarray]  # after burn-in: the kernel's parameters and the concentration after each sweep


def copy_of(prior: Prior) -> Prior:
    return Prior(*(array.copy() for array in prior))


def begin(X: sp.csr_matrix, times: np.ndarray, prior: Prior, plan: Plan, before: Engine | None, seed: int) -> Engine:
    """Documents arrive in order, each at a cluster drawn given those before it; parameters as planned, or as before."""
    engine = Engine.start(
        kernel=plan.kernel if before is None else before.kernel,
        concentration=plan.concentration if before is None else before.concentration,
        family=plan.family,
        prior=copy_of(prior if before is None else before.prior),
        seed=seed,
        eps=plan.tolerance,
        floor=plan.floor,
        pseudo=plan.pseudo,
    )
    engine.n_draws = 0 if before is None else before.n_draws
    lo, hi = engine.append(X, times, first_number=0)
    engine.arrive(lo, hi, budget=EXHAUSTIVE, n_best=1, running=False, uniforms=engine.uniforms(hi))
    engine.refresh()
    return engine


def run_chain(X: sp.csr_matrix, times: np.ndarray, prior: Prior, plan: Plan, seed: int) -> Chain:
    """One chain: documents arrive in order, then sweeps; kernel and concentration move as :func:`learn` says.

    Where the kernel is learned the documents arrive anew a few times during burn-in. Clusters found under a rate that
    was too slow join what lies far apart, and moving one document at a time hardly ever parts them again.
    """
    engine = begin(X, times, prior, plan, None, seed)
    least = surprise(X, plan.family, prior, plan.floor, plan.pseudo).max(initial=0.0)
    chain = Chain(engine, [], [])
    anew = {int(share * plan.burn_in) for share in FRESH_STARTS} if plan.learn_kernel else set()
    with task("sampling", total=plan.n_sweeps) as bar:
        for sweep in range(plan.n_sweeps):
            if sweep > 0 and sweep in anew:
                engine = chain.engine = begin(X, times, prior, plan, engine, seed)
            engine.sweep(engine.uniforms(X.shape[0]), reach=reach_of(engine, least, plan.tolerance))
            learn(engine, times, plan, sweep)
            if sweep >= plan.burn_in:
                chain.draws.append(np.append(engine.kernel.parameters(), engine.concentration))
            if sweep >= plan.burn_in and (sweep - plan.burn_in) % plan.thin == 0:
                chain.samples.append(engine.labels.copy())
            bar.advance(1, clusters=engine.n_live)
    if not chain.samples:
        chain.samples.append(engine.labels.copy())
    return chain


def run_chains(X: sp.csr_matrix, times: np.ndarray, prior: Prior, plan: Plan, seeds: list[int]) -> list[Chain]:
    """Chains from different seeds, on threads; each depends on its own seed alone."""
    return list(ordered_map(lambda seed: run_chain(X, times, prior, plan, seed), seeds))


def reach_of(engine: Engine, least: float, tolerance: float) -> float:
    """How far in time a cluster may be and still matter.

    P(d | cluster) <= 1, so a cluster whose prior ratio is below alpha P(d | new) tolerance / K cannot have more than
    tolerance / K of the probability. Its ratio is at most u_max exp(-rate distance).
    """
    if engine.kind != st.EXPONENTIAL or not math.isfinite(least):
        return math.inf
    odds = max(10, engine.n_live) * engine.numbers[st.U_MAX] / (engine.concentration * tolerance)
    return float((least + math.log(odds)) / engine.rate)


def learn(engine: Engine, times: np.ndarray, plan: Plan, sweep: int) -> None:
    """Move the parameters: M steps in the first half of burn-in, from then on draws from their posterior.

    Labels change slowly when the parameters do, so plain M steps are far too short; twice as long ones find the
    region. Draws given the labels then make the whole chain one of labels and parameters, without a bias.
    """
    if plan.learn_strength and sweep < plan.burn_in and sweep % 2 == 1:
        learn_strength(engine)
    if not (plan.learn_kernel or plan.learn_concentration):
        return
    if sweep < plan.burn_in // 2:
        if sweep % 2 == 1:
            engine.set_time(*eager_step(engine, times, plan))
        return
    rng = np.random.default_rng([engine.seed, sweep])
    engine.set_time(
        *draw(
            times,
            engine.labels,
            engine.kernel,
            engine.concentration,
            rng,
            around=plan.kernel,
            moves_kernel=plan.learn_kernel,
            moves_concentration=plan.learn_concentration,
        )
    )


def eager_step(engine: Engine, times: np.ndarray, plan: Plan) -> tuple[TimeKernel, float]:
    """An M step that goes farther than asked for."""
    kernel, alpha = maximise(times, [engine.labels], engine.kernel if plan.learn_kernel else Fixed(engine.kernel))
    if plan.learn_kernel:
        before = np.log(engine.kernel.parameters())
        kernel = engine.kernel.with_parameters(np.exp(before + EAGER_STEP * (np.log(kernel.parameters()) - before)))
    else:
        kernel = engine.kernel
    if not plan.learn_concentration:
        return kernel, engine.concentration
    log_alpha = math.log(engine.concentration)
    return kernel, math.exp(log_alpha + EAGER_STEP * (math.log(alpha) - log_alpha))


def typical(chains: list[Chain]) -> tuple[TimeKernel, float]:
    """The kernel and the concentration in the middle of all draws (means of logarithms)."""
    kernel = chains[0].engine.kernel
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
