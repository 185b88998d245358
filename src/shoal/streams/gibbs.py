"""Batch inference: Gibbs chains over all documents, with stochastic EM for what is to be learned."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from shoal.progress import task
from shoal.streams import state as st
from shoal.streams.engine import EXHAUSTIVE, Engine
from shoal.streams.kernels_over_time import TimeKernel
from shoal.streams.learning import learn_strength, maximise
from shoal.streams.priors import surprise
from shoal.streams.state import Prior
from shoal.threads import ordered_map

EAGER_STEP = 2.0


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
    trace: list[tuple[float, float]]  # (concentration, log joint up to a constant) after each learning step


def copy_of(prior: Prior) -> Prior:
    return Prior(*(array.copy() for array in prior))


def run_chain(X: sp.csr_matrix, times: np.ndarray, prior: Prior, plan: Plan, seed: int) -> Chain:
    """One chain: documents arrive in order, then sweeps; kernel and concentration move during burn-in."""
    engine = Engine.start(
        kernel=plan.kernel,
        concentration=plan.concentration,
        family=plan.family,
        prior=copy_of(prior),
        seed=seed,
        eps=plan.tolerance,
        floor=plan.floor,
        pseudo=plan.pseudo,
    )
    lo, hi = engine.append(X, times, first_number=0)
    least = surprise(X, plan.family, prior, plan.floor, plan.pseudo).max(initial=0.0)
    engine.arrive(lo, hi, budget=EXHAUSTIVE, n_best=1, running=False, uniforms=engine.uniforms(hi))
    engine.refresh()
    chain = Chain(engine, [], [])
    with task("sampling", total=plan.n_sweeps) as bar:
        for sweep in range(plan.n_sweeps):
            engine.sweep(engine.uniforms(hi), reach=reach_of(engine, least, plan.tolerance))
            if sweep < plan.burn_in:
                learn(engine, times, plan, sweep, chain)
            elif (sweep - plan.burn_in) % plan.thin == 0:
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


def learn(engine: Engine, times: np.ndarray, plan: Plan, sweep: int, chain: Chain) -> None:
    """An M step: longer than asked for in the first half of burn-in, averaged in the second.

    Labels change slowly when the parameters do, so plain steps are far too short; twice as long ones still converge.
    """
    if sweep % 2 == 0:
        return
    if plan.learn_strength:
        learn_strength(engine)
    if not (plan.learn_kernel or plan.learn_concentration):
        return
    kernel, alpha = maximise(times, [engine.labels], engine.kernel if plan.learn_kernel else Fixed(engine.kernel))
    late = sweep - plan.burn_in // 2
    step = EAGER_STEP if late <= 0 else 1.0 / (1.0 + late / 4.0)
    if plan.learn_kernel:
        before = np.log(engine.kernel.parameters())
        moved = np.exp(before + step * (np.log(kernel.parameters()) - before))
        kernel = engine.kernel.with_parameters(moved)
    else:
        kernel = engine.kernel
    if plan.learn_concentration:
        log_alpha = math.log(engine.concentration)
        alpha = math.exp(log_alpha + step * (math.log(alpha) - log_alpha))
    else:
        alpha = engine.concentration
    engine.set_time(kernel, alpha)
    chain.trace.append((alpha, float(engine.n_live)))


class Fixed(TimeKernel):
    """A kernel that learning must leave as it is."""

    def __init__(self, kernel: TimeKernel) -> None:
        self.waves = kernel.waves  # type: ignore[method-assign]

    def learned_names(self) -> list[str]:
        return []

    def parameters(self) -> np.ndarray:
        return np.zeros(0)
