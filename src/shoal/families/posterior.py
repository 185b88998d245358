"""A statistician's summary of a fitted mixture: weights, means and covariances with intervals, and chains compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.special import betainc, betaincinv, gammaincinv
from scipy.stats import f
from sklearn.base import clone

from shoal.base import storable

DISAGREE = 1.1  # R-hat from which chains are said to disagree (Gelman et al., 2013, section 11.4)
DRAWS, BISECTIONS = 400, 50
SHARES = (np.arange(10) + 0.5) / 10  # of central intervals, whose ends are 20 quantiles
MOST_STORED = 1_000_000  # numbers in the statistics of all kept labelings together
# Chains learn their priors apart, so their log joints differ a little where their labels do not.
NO_MATTER = {"log_joint": 5.0, "n_clusters": 0.2}


class Interval(NamedTuple):
    """Posterior mean of some numbers, with a central credible interval."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


@storable
class Diagnostics(NamedTuple):
    """How well several chains agree, for the log joint and for the number of clusters."""

    r_hat: dict[str, float]  # near 1 where chains say the same
    effective_sample_size: dict[str, float]  # independent draws the chains are worth
    log_joint: np.ndarray  # (chains, sweeps of the second half)
    n_clusters: np.ndarray  # the same

    @property
    def disagree(self) -> bool:
        """Whether the chains have not found the same distribution."""
        return max(self.r_hat.values()) > r_hat_limit(*self.log_joint.shape)


# --- parameters -------------------------------------------------------------------------------------------------------


def relabeled(samples: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Each kept labeling in the numbers of ``reference``, by the matching that keeps most rows where they are; clusters
    without a partner get numbers of their own, so that averages over draws are over the same cluster.

    >>> relabeled(np.array([[1, 1, 0, 0]]), np.array([0, 0, 1, 1])).tolist()
    [[0, 0, 1, 1]]
    """
    k, out = int(reference.max()) + 1, np.empty_like(samples)
    for at, sample in enumerate(samples):
        found, labels = np.unique(sample, return_inverse=True)
        table = sp.coo_matrix((np.ones(len(labels)), (labels, reference)), shape=(len(found), k)).toarray()
        rows, columns = linear_sum_assignment(-table)
        number = np.full(len(found), -1)
        number[rows] = columns
        alone = np.flatnonzero(number < 0)
        number[alone] = k + np.arange(len(alone))
        out[at] = number[labels]
    return out


def weights_of(size: np.ndarray, samples: np.ndarray | None, alpha: float, bound: int, share: float) -> Interval:
    """Weights of the live clusters, over the kept draws (relabeled) where there are any."""
    n, k, rest = float(size.sum()), len(size), max(bound - len(size), 0) * alpha
    total = n + k * alpha + rest
    mean = (size + alpha) / total
    if samples is None or len(samples) < 2:
        a = size + alpha
        tails = ((1 - share) / 2, (1 + share) / 2)
        return Interval(mean, betaincinv(a, total - a, tails[0]), betaincinv(a, total - a, tails[1]))
    grown = np.array([np.bincount(sample[sample < k], minlength=k) for sample in samples]) + alpha
    low, high = (
        beta_mixture_quantile(grown, np.maximum(total - grown, 1e-12), p) for p in ((1 - share) / 2, (1 + share) / 2)
    )
    return Interval(mean, low, high)


def beta_mixture_quantile(a: np.ndarray, b: np.ndarray, p: float) -> np.ndarray:
    """(k,) quantile of the mixture of Beta(a[i], b[i]) over the draws i, each weighing alike, by halving.

    >>> float(beta_mixture_quantile(np.array([[1.0], [1.0]]), np.array([[1.0], [1.0]]), 0.25)[0].round(6))
    0.25
    """
    low, high = np.zeros(a.shape[1]), np.ones(a.shape[1])
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        below = betainc(a, b, middle).mean(axis=0) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def means_of(family: Any, stats: Any, draws: list[Any], share: float) -> Interval:
    """(k, d) posterior means of each feature's mean, rate, share or probability.

    Intervals are those of the mixture over ``draws``, the statistics under each kept labeling: quantiles of the
    posterior given each of them are put together."""
    k = len(stats.size)
    mean = np.array([family.expected(stats, cluster) for cluster in range(k)])
    every = np.arange(mean.shape[1])
    if len(draws) < 2:
        ends = [family.interval(stats, cluster, every, share) for cluster in range(k)]
        return Interval(mean, np.array([low for low, _ in ends]), np.array([high for _, high in ends]))
    quantiles = [
        [end for draw in draws for inner in SHARES for end in family.interval(draw, cluster, every, inner)]
        for cluster in range(k)
    ]
    low, high = np.quantile(np.array(quantiles), [(1 - share) / 2, (1 + share) / 2], axis=1, method="hazen")
    return Interval(mean, low, high)


def draws_of(problem: Any, samples: np.ndarray, labels: np.ndarray, k: int) -> list[Any]:
    """Statistics under each kept labeling, its clusters matched to those of ``labels``; none where they are large."""
    first = problem.statistics(labels, k)
    n_stored = sum(part.nnz if sp.issparse(part) else part.size for part in first)
    if len(samples) < 2 or n_stored * len(samples) > MOST_STORED:
        return []
    found = relabeled(samples, labels)
    return [problem.statistics(np.where(sample < k, sample, -1), k) for sample in found]


def variances_of(family: Any, stats: Any, share: float) -> Interval:
    """Posterior means of the variances in the data's own units: (k, d) diagonal, (k,) spherical."""
    _, mean, a, b = family.posterior(stats)
    a, unit = np.broadcast_to(a, mean.shape), family.scale**2
    tails = ((1 + share) / 2, (1 - share) / 2)
    low, high = (b / gammaincinv(a, p) * unit for p in tails)
    found = Interval(b / (a - 1) * unit, low, high)
    return Interval(*(part[:, 0] for part in found)) if family.spherical else found


# --- chains -----------------------------------------------------------------------------------------------------------


def r_hat(chains: np.ndarray, least: float = 0.0) -> float:
    """Potential scale reduction of split chains (Gelman et al., 2013): the pooled deviation over that within chains.

    ``least``: a deviation that is of no matter; chains that stand still within it agree."""
    half = chains.shape[1] // 2
    if half < 2:
        return float("nan")
    parts = np.concatenate([chains[:, :half], chains[:, -half:]])
    within = max(parts.var(axis=1, ddof=1).mean(), least**2)
    between = half * parts.mean(axis=1).var(ddof=1)
    if within <= 0:
        return 1.0 if between <= 0 else float("inf")
    return float(np.sqrt(((half - 1) / half * within + between / half) / within))


def r_hat_limit(n_chains: int, n_draws: int) -> float:
    """R-hat from which chains disagree: 1.1, or where they are too short for that, what one in a hundred sets of chains
    of independent draws exceeds."""
    n = n_draws // 2
    if n < 2:
        return float("inf")
    by_chance = np.sqrt((n - 1 + f.ppf(0.99, 2 * n_chains - 1, 2 * n_chains * (n - 1))) / n)
    return max(DISAGREE, float(by_chance))


def effective_sample_size(chains: np.ndarray) -> float:
    """Independent draws that give as good a mean: Geyer's sum of autocorrelations, cut where pairs stop being
    positive."""
    m, n = chains.shape
    if n < 4:
        return float("nan")
    within = chains.var(axis=1, ddof=1).mean()
    between = n * chains.mean(axis=1).var(ddof=1) if m > 1 else 0.0
    pooled = (n - 1) / n * within + between / n
    if pooled <= 0:
        return float(m * n)
    apart = chains - chains.mean(axis=1, keepdims=True)
    correlation = np.ones(n)
    for lag in range(1, n):
        shared = (apart[:, :-lag] * apart[:, lag:]).sum(axis=1).mean() / n
        correlation[lag] = 1 - (within - shared) / pooled
    total = -1.0
    for lag in range(0, n - 1, 2):
        pair = correlation[lag] + correlation[lag + 1]
        if pair < 0:
            break
        total += 2 * pair
    return float(min(m * n / max(total, 1 / np.log10(m * n + 10)), m * n * np.log10(m * n + 10)))


def run_chains(estimator: Any, rows: Any, init: Any, known: Any, seed: int) -> tuple[Any, np.ndarray, Diagnostics]:
    """(the fit of the best log joint, samples of all with its own first, how well they agree)."""
    links = {} if known is None else known.as_options()
    chains = [
        clone(estimator).set_params(n_chains=1, init=init, random_state=seed + at).fit(rows, **links)
        for at in range(estimator.n_chains)
    ]
    best = max(chains, key=lambda chain: chain.log_joint_)
    samples = np.concatenate([best.samples_, *(chain.samples_ for chain in chains if chain is not best)])
    histories = [chain.log_joint_history_ for chain in chains]
    return best, samples, compare_chains(histories, [chain.trace_.n_live for chain in chains])


def compare_chains(log_joint: list[list[float]], n_clusters: list[list[int]]) -> Diagnostics:
    """What several chains of equal length say of one another, from their second halves."""
    half = min(len(history) for history in log_joint)
    series = {
        "log_joint": np.array([history[half // 2 : half] for history in log_joint]),
        "n_clusters": np.array([history[half // 2 : half] for history in n_clusters], dtype=np.float64),
    }
    return Diagnostics(
        {name: r_hat(chains, NO_MATTER[name]) for name, chains in series.items()},
        {name: effective_sample_size(chains) for name, chains in series.items()},
        series["log_joint"],
        series["n_clusters"],
    )
