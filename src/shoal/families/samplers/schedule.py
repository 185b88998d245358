"""Running a chain: learn and split_merge first, then sample, keeping the best state and a few others."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from shoal.base import storable
from shoal.families.samplers.constraints import Constraints
from shoal.progress import Monitor

ADAPTED_AT_ONCE, SWEEPS_BETWEEN = 4, 3  # the first sweeps adapt one by one, later ones every few


class Chain(Protocol):
    """What running needs of a sampler."""

    n_sweeps: int
    is_rebuilt: bool

    @property
    def labels(self) -> np.ndarray: ...
    def sweep(self) -> Any: ...
    def log_joint(self) -> float: ...
    def rebuild(self) -> None: ...
    def freeze_adaptation(self) -> None: ...
    def state(self) -> dict[str, Any]: ...


class Problem(Protocol):
    """What running needs of rows, family and prior."""

    def learn(self, chain: Any) -> None: ...
    def split_merge(self, chain: Any) -> tuple[int, int]: ...


@storable
@dataclass
class Schedule:
    """What happens at which sweep. It depends on the number of the sweep alone, so that a chain which is taken up again
    goes on as if it had never stopped."""

    n_sweeps: int
    burn_in: int  # sweeps that may learn, merge and split; only later ones are samples
    every: int  # sweeps from sample to sample
    split_merge: bool

    def copy(self) -> Schedule:
        return replace(self)

    def adapts(self, sweep: int) -> bool:
        """Whether clusters are merged and split, and the prior is learned, before this sweep."""
        return sweep < self.burn_in and (sweep <= ADAPTED_AT_ONCE or sweep % SWEEPS_BETWEEN == 1)

    def samples(self, sweep: int) -> bool:
        return sweep >= self.burn_in and (sweep - self.burn_in) % self.every == self.every - 1


@storable
@dataclass
class Trace:
    """What is remembered of a run."""

    history: list[float] = field(default_factory=list)  # log joint after each sweep
    n_live: list[int] = field(default_factory=list)  # clusters in use after each sweep
    samples: list[np.ndarray] = field(default_factory=list)
    best_log_joint: float = -np.inf
    best_labels: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    n_proposed: int = 0
    n_accepted: int = 0

    def copy(self) -> Trace:
        return replace(self, history=list(self.history), n_live=list(self.n_live), samples=list(self.samples))

    def record(self, chain: Chain, log_joint: float, schedule: Schedule, sweep: int) -> None:
        """The state with the best log joint under the prior that was learned last, and samples as planned."""
        self.history.append(log_joint)
        self.n_live.append(int(np.count_nonzero(np.bincount(chain.labels))))
        if sweep < schedule.burn_in or log_joint > self.best_log_joint or sweep == schedule.burn_in:
            self.best_log_joint, self.best_labels = log_joint, chain.labels.copy()
        if schedule.samples(sweep):
            self.samples.append(chain.labels.copy())


def prepare(problem: Problem, chain: Chain, schedule: Schedule, constraints: Constraints | None = None) -> None:
    """What comes before the next sweep."""
    if chain.n_sweeps >= schedule.burn_in:
        chain.freeze_adaptation()
    elif schedule.adapts(chain.n_sweeps):
        if not chain.is_rebuilt:
            chain.rebuild()  # moves and learning sum over tables, whose order is no part of the chain's state
        if schedule.split_merge and chain.n_sweeps > 0:
            problem.split_merge(chain)
            if constraints is not None:
                constraints.repair(problem, chain)
        problem.learn(chain)


def run(
    problem: Problem, chain: Chain, trace: Trace, schedule: Schedule, constraints: Constraints | None = None
) -> bool:
    """Sweep to the end of the schedule; whether it was interrupted."""
    with Monitor("sampling", schedule.n_sweeps - chain.n_sweeps) as monitor:
        while monitor.running:
            sweep = chain.n_sweeps
            prepare(problem, chain, schedule, constraints)
            began = time.perf_counter()
            facts = chain.sweep()
            if constraints is not None:
                constraints.visit(problem, chain)
            seconds = time.perf_counter() - began
            log_joint = chain.log_joint()
            trace.record(chain, log_joint, schedule, sweep)
            trace.n_proposed += facts.proposed
            trace.n_accepted += facts.moved
            monitor.report(
                log_joint,
                log_joint=log_joint,
                moved=facts.moved,
                live=trace.n_live[-1],
                acceptance=facts.moved / max(facts.proposed, 1),
                us_per_item=1e6 * seconds / max(len(chain.labels), 1),
            )
        return monitor.interrupted
