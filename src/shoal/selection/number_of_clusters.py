"""How many clusters: the held-out score and the stability of each number tried, with their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from shoal.base import Estimator, check_int, check_random_state, len_of
from shoal.errors import BadInput
from shoal.plotting import BLUE, GREY, figure
from shoal.progress import hidden, task
from shoal.selection.stability import MOST_ROWS, fit_whole, take_rows

LEAST_USED, HOPELESS_NUMBERS = 0.9, 3
LEAST_GAIN = 0.01  # of what clusters gain in held-out score
N_INIT = 5  # of models that start once by default: fits in two local optima would look like unstable clusters


@dataclass(frozen=True)
class ClusterNumberChoice:
    """What :func:`choose_n_clusters` tried and what it recommends.

    Attributes
    ----------
    n_clusters : int
        The recommended value of the parameter.
    n_found : int
        How many clusters the fits with it found: fewer, where a model leaves some of those it is allowed unused.
    tried : (n,) the numbers tried
    scores, score_errors : (n,) mean held-out score of a row, and its standard error over the resamples
    agreement, agreement_errors : (n,) adjusted Rand index of two fits to different halves, on rows neither saw
    reason : str
        Why this number.
    """

    n_clusters: int
    n_found: int
    tried: np.ndarray
    scores: np.ndarray
    score_errors: np.ndarray
    agreement: np.ndarray
    agreement_errors: np.ndarray
    reason: str

    def figure(self) -> Any:
        """Both curves with their errors, and the choice."""
        drawn, axes = figure(6.2, 3.6)
        axes.errorbar(self.tried, self.agreement, self.agreement_errors, color=BLUE, marker="o", markersize=4)
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("number of clusters")
        axes.set_ylabel("agreement of two fits (adjusted Rand)", color=BLUE)
        right = axes.twinx()
        right.errorbar(self.tried, self.scores, self.score_errors, color=GREY, marker="s", markersize=4, linestyle="--")
        right.set_ylabel("held-out score of a row", color="#5c6875")
        right.spines["top"].set_visible(False)
        axes.axvline(self.n_clusters, color="#c0504d", linewidth=1)
        axes.set_title(f"{self.n_found} clusters", fontsize=10, loc="left")
        if self.tried.max() > 20 * self.tried.min():
            axes.set_xscale("log")
        return drawn


def choose_n_clusters(
    model: Estimator,
    X: Any,
    candidates: Sequence[int] | None = None,
    *,
    n_resamples: int = 6,
    random_state: Any = None,
) -> ClusterNumberChoice:
    """Recommend a number of clusters for ``model`` on ``X``.

    For each number, two disjoint thirds of the rows are fitted and both fits are asked about the last third. Fits that
    find real groups agree there; fits with too many clusters cut groups where chance has it. Of the numbers whose
    agreement is within one standard error of the best, and of which the fits use nine tenths, the smallest that
    explains held-out rows as well as the best of them is recommended; where another number explains them better by more
    than two standard errors, that is said.

    Parameters
    ----------
    model : Estimator
        An estimator with an ``n_clusters`` parameter; its other options are used as they are, but with
        ``n_init="auto"`` each fit is the best of five starts.
    X : matrix or Dataset
        At most 60,000 rows of it are used at a time.
    candidates : sequence of int, optional
        The numbers to try. By default 2, 3, 4, 6, 8, 12, ... up to a tenth of the rows, at most 200, or until three in
        a row leave most clusters unused or do worse in both respects; then the numbers around the best.
    n_resamples : int
        Fits for each number, in pairs.
    random_state : int, optional
        Decides the resamples.

    Returns
    -------
    ClusterNumberChoice

    Examples
    --------
    >>> from shoal import SphericalKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.poisson(8 * row + .1, (60, 6)) for row in np.eye(3).repeat(2, axis=1)])
    >>> choose_n_clusters(SphericalKMeans(), X, [2, 3, 5], random_state=0).n_clusters
    3
    """
    if "n_clusters" not in model.get_params(deep=False):
        raise BadInput(f"{type(model).__name__} has no n_clusters parameter: it finds the number by itself.")
    n_resamples, n_rows = check_int("n_resamples", n_resamples, minimum=2), len_of(X)
    if n_rows < 12:
        raise BadInput(f"X has {n_rows} rows; at least 12 are needed to compare fits to parts of them.")
    rng = check_random_state(random_state)
    splits = [_thirds(n_rows, rng) for _ in range(n_resamples)]
    seeds = rng.integers(0, 2**31 - 1, n_resamples)
    tried: dict[int, np.ndarray] = {}
    with task("choosing") as bar:

        def attempt(k: int) -> None:
            if k not in tried:
                with hidden():
                    tried[k] = _trials(model, X, k, splits, seeds)
            bar.advance(clusters=k, agreement=float(tried[k][:, 1].mean()))

        if candidates is not None:
            for k in (check_int("candidates", k) for k in candidates):
                attempt(k)
        else:
            _try_grid(attempt, n_rows, tried)
            while new := [k for k in _around(_recommended(tried)[0], tried) if k not in tried]:
                for k in new:
                    attempt(k)
    best, reason = _recommended(tried)
    numbers = np.array(sorted(tried))
    trials = np.array([tried[int(k)] for k in numbers])  # (numbers, resamples, 3)
    means, errors = trials.mean(axis=1), trials.std(axis=1, ddof=1) / np.sqrt(n_resamples)
    n_found = round(float(np.median(tried[best][:, 2])))
    return ClusterNumberChoice(best, n_found, numbers, means[:, 0], errors[:, 0], means[:, 1], errors[:, 1], reason)


def _thirds(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size = min(n_rows // 3, MOST_ROWS)
    rows = rng.permutation(n_rows)[: 3 * size]
    return tuple(np.sort(part) for part in rows.reshape(3, size))  # type: ignore[return-value]


def _grid(n_rows: int) -> list[int]:
    """2, 3, 4, 6, 8, 12, 16, ...: each number at least a quarter more than the one before."""
    most = int(min(200, max(n_rows // 10, 2)))
    return sorted({k for power in range(1, 9) for k in (2**power, 3 * 2 ** (power - 1)) if 2 <= k <= most})


def _try_grid(attempt: Callable[[int], None], n_rows: int, tried: dict[int, np.ndarray]) -> None:
    """Each number of the grid, up to the first for which a third of the rows has too few that differ, or until three in
    a row say that more will not help."""
    hopeless = 0
    for k in _grid(n_rows):
        try:
            attempt(k)
        except BadInput:
            if not tried:
                raise
            return
        hopeless = hopeless + 1 if _is_hopeless(tried, k) else 0
        if hopeless == HOPELESS_NUMBERS:
            return


def _is_hopeless(tried: dict[int, np.ndarray], k: int) -> bool:
    """Whether most clusters stay unused, so that k is a bound which decides nothing, or fits agree half as well as they
    did with fewer and explain held-out rows worse, too."""
    steadiest = max(tried, key=lambda other: tried[other][:, 1].mean())
    likeliest = max(tried, key=lambda other: tried[other][:, 0].mean())
    unsteady = tried[k][:, 1].mean() < 0.5 * tried[steadiest][:, 1].mean()
    return bool(
        tried[k][:, 2].mean() < 0.5 * k or (unsteady and _clearly_above(tried[likeliest][:, 0], tried[k][:, 0]))
    )


def _around(best: int, tried: dict[int, np.ndarray]) -> list[int]:
    """Numbers between the best and its neighbors, where there is room."""
    numbers = sorted(tried)
    at = numbers.index(best)
    below = numbers[at - 1] if at else best
    above = numbers[at + 1] if at + 1 < len(numbers) else best
    return [(below + best) // 2, (best + above + 1) // 2]


def _trials(model: Estimator, X: Any, k: int, splits: Sequence[Any], seeds: np.ndarray) -> np.ndarray:
    """Held-out score, agreement and number of clusters found by each pair of fits, (resamples, 3)."""
    from sklearn.metrics import adjusted_rand_score

    params, result = model.get_params(deep=False), []
    starts = {"n_init": N_INIT} if params.get("n_init") == "auto" else {}
    for (one, two, rest), seed in zip(splits, seeds, strict=True):
        options = {"n_clusters": k} | ({"random_state": int(seed)} if "random_state" in params else {}) | starts
        fits = [fit_whole(clone(model).set_params(**options), take_rows(X, rows)) for rows in (one, two)]
        held_out = take_rows(X, rest)
        labels = [fit.predict(held_out) for fit in fits]
        scores = [_mean_score(fit, held_out) for fit in fits]
        found = [np.unique(each[each >= 0]).size for each in labels]
        result.append((float(np.mean(scores)), float(adjusted_rand_score(*labels)), float(np.mean(found))))
    return np.array(result)


def _mean_score(model: Any, X: Any) -> float:
    """Mean log likelihood, cosine or minus divergence of a row."""
    if hasattr(model, "score_samples"):
        return float(np.mean(model.score_samples(X)))
    return float(np.nanmean(model.assign(X).scores))


def _recommended(tried: dict[int, np.ndarray]) -> tuple[int, str]:
    numbers = sorted(tried)
    agreement = {k: float(tried[k][:, 1].mean()) for k in numbers}
    error = {k: float(tried[k][:, 1].std(ddof=1) / np.sqrt(len(tried[k]))) for k in numbers}
    best = max(numbers, key=lambda k: (agreement[k], k))
    close = [k for k in numbers if agreement[k] >= agreement[best] - max(error[best], 1e-3)]
    # Of a model that leaves clusters unused, numbers above what it uses are bounds that decide nothing.
    used_up = [k for k in close if tried[k][:, 2].mean() >= LEAST_USED * k]
    scores = {k: tried[k][:, 0] for k in numbers}
    chosen = _fewest_that_explain(used_up, scores) if used_up else min(close)
    reason = f"two fits to different rows agree best with {chosen} clusters (adjusted Rand {agreement[chosen]:.2f})"
    if not used_up:
        found = round(float(np.median(tried[chosen][:, 2])))
        reason = reason.replace("clusters", f"clusters allowed, of which they use {found}")
    if agreement[chosen] < 0.5:
        reason += "; no number is stable: treat any clustering of these rows with care"
    better = [k for k in numbers if _clearly_above(scores[k], scores[chosen])]
    if better:
        most = max(better, key=lambda k: scores[k].mean())
        reason += f"; {most} clusters explain held-out rows better, at the cost of stability"
    return chosen, reason


def _fewest_that_explain(stable: list[int], scores: dict[int, np.ndarray]) -> int:
    """Of numbers that are stable, the smallest that explains held-out rows as well as the best of them does.

    Clusters of a handful of rows cost no agreement, so the largest stable number has some too many; broad groups can be
    stable, too, so the smallest has too few. As well: not clearly worse, or by less than a hundredth of what clusters
    gain in all."""
    top = max(stable, key=lambda k: scores[k].mean())
    gained = scores[top].mean() - scores[min(scores)].mean()
    return min(
        k
        for k in stable
        if not _clearly_above(scores[top], scores[k]) or scores[top].mean() - scores[k].mean() <= LEAST_GAIN * gained
    )


def _clearly_above(one: np.ndarray, other: np.ndarray) -> bool:
    difference = one - other
    return bool(difference.mean() > 2 * difference.std(ddof=1) / np.sqrt(difference.size))
