"""Time-sensitive mixtures, slow and plainly right: the paper's Figure 3, its equation 5, all partitions of a few."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

Kernel = Callable[[float], float]


def multinomial(base: np.ndarray) -> Callable[[np.ndarray, np.ndarray], float]:
    """log P(d | the rows of a cluster), Dirichlet-multinomial."""

    def log_prob(row: np.ndarray, rows: np.ndarray) -> float:
        a = base + rows.sum(axis=0)
        ratio = sum(math.lgamma(x + d) - math.lgamma(x) for x, d in zip(a, row, strict=True) if d > 0)
        return math.lgamma(a.sum()) - math.lgamma(a.sum() + row.sum()) + ratio

    return log_prob


def bernoulli(hits: float, misses: float) -> Callable[[np.ndarray, np.ndarray], float]:
    def log_prob(row: np.ndarray, rows: np.ndarray) -> float:
        n, on = len(rows), rows.sum(axis=0)
        p = (on + hits) / (n + hits + misses)
        return float(np.log(np.where(row > 0, p, 1 - p)).sum())

    return log_prob


def gaussian(prior: np.ndarray) -> Callable[[np.ndarray, np.ndarray], float]:
    """Each column a Normal with a Normal-Gamma prior (mean, pseudo-count, shape, rate), through the joint evidence."""

    def log_evidence(x: np.ndarray, mean: float, pseudo: float, shape: float, rate: float) -> float:
        n = len(x)
        count, a = pseudo + n, shape + n / 2
        center = (pseudo * mean + x.sum()) / count
        b = rate + 0.5 * ((x**2).sum() + pseudo * mean**2 - count * center**2)
        return (
            math.lgamma(a) - math.lgamma(shape) + shape * math.log(rate) - a * math.log(b)
            + 0.5 * (math.log(pseudo) - math.log(count)) - n / 2 * math.log(2 * math.pi)
        )  # fmt: skip

    def log_prob(row: np.ndarray, rows: np.ndarray) -> float:
        both = np.vstack([rows, row])
        return sum(log_evidence(both[:, v], *prior[v]) - log_evidence(rows[:, v], *prior[v]) for v in range(len(row)))

    return log_prob


def conditional(
    i: int,
    times: np.ndarray,
    labels: list[int],
    X: np.ndarray,
    kernel: Kernel,
    alpha: float,
    log_prob: Callable[[np.ndarray, np.ndarray], float],
) -> dict[int, float]:
    """Figure 3 to the letter: for each candidate, the whole history and future again. -1 is a new cluster."""
    n = len(times)
    others = sorted({labels[j] for j in range(n) if j != i})
    new = max([*others, 0]) + 1
    out = {}
    for c in [*others, new]:
        s = list(labels)
        s[i] = c
        before = [kernel(times[i] - times[j]) for j in range(i) if s[j] == c]
        score = math.log(sum(before)) if before else math.log(alpha)
        for j in range(i + 1, n):
            members = [kernel(times[j] - times[m]) for m in range(j) if s[m] == s[j]]
            score += math.log(sum(members)) if members else math.log(alpha)
        rows = np.array([X[j] for j in range(n) if j != i and s[j] == c]).reshape(-1, X.shape[1])
        out[-1 if c == new else c] = score + log_prob(X[i], rows)
    top = max(out.values())
    total = top + math.log(sum(math.exp(value - top) for value in out.values()))
    return {c: value - total for c, value in out.items()}


def log_prior(times: np.ndarray, labels: list[int], kernel: Kernel, alpha: float) -> float:
    """Equation 5: log P(S | T)."""
    total = 0.0
    for i in range(len(times)):
        everyone = sum(kernel(times[i] - times[j]) for j in range(i))
        members = [kernel(times[i] - times[j]) for j in range(i) if labels[j] == labels[i]]
        total += math.log(sum(members) if members else alpha) - math.log(everyone + alpha)
    return total


def log_joint(
    times: np.ndarray,
    labels: list[int],
    X: np.ndarray,
    kernel: Kernel,
    alpha: float,
    log_prob: Callable[[np.ndarray, np.ndarray], float],
) -> float:
    """log P(S | T) + log P(D | S)."""
    total = log_prior(times, labels, kernel, alpha)
    for i in range(len(times)):
        rows = np.array([X[j] for j in range(i) if labels[j] == labels[i]]).reshape(-1, X.shape[1])
        total += log_prob(X[i], rows)
    return total


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Every way to put n things into groups, each group numbered by its first."""

    def extend(labels: tuple[int, ...], used: int) -> Iterator[tuple[int, ...]]:
        if len(labels) == n:
            yield labels
            return
        for c in range(used + 1):
            yield from extend((*labels, c), max(used, c + 1))

    yield from extend((), 0)


def in_order(labels: np.ndarray) -> tuple[int, ...]:
    """The same groups, numbered by their first."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(label), len(seen)) for label in labels)
