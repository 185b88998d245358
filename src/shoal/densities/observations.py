"""From raw observations, one per row, to one distribution per key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.data.named_tables import NamedTables, require_columns
from shoal.data.sql import quoted
from shoal.errors import BadInput

COUNTED = ("categorical", "dirichlet")


@dataclass
class Densities:
    """One distribution per key, ready for :class:`~shoal.densities.DensityKMeans`."""

    X: np.ndarray  # (n_keys, n_parameters), arranged as the family wants
    keys: np.ndarray  # (n_keys,) what each row describes
    n_observations: np.ndarray  # (n_keys,) how many observations (or how much weight) stand behind it
    family: str
    parameters: list[str]  # the names of the columns of X
    components: list[str]  # components of a mixture or outcomes of a categorical, in order
    dropped: dict[str, int]  # observations left out, by reason


def read_observations(
    source: Any,
    *,
    key: str,
    value: str | Sequence[str] | None = None,
    component: str | None = None,
    weight: str | None = None,
    family: str = "gaussian",
    pseudo_count: float = 5.0,
) -> Densities:
    """Group raw observations by ``key`` and describe each group by a distribution, in one pass of DuckDB.

    Parameters
    ----------
    source : a Parquet, CSV or JSON file, a folder or pattern of files, a SELECT, a data frame or an Arrow table.
    key : the column that says what an observation belongs to.
    value : the observed number; several columns for several dimensions (gaussian families).
    component : the labelled component (gaussian_mixture) or the outcome (categorical, dirichlet).
    weight : how often the observation counts; 1 each if not given. For ``beta`` the number of trials and for ``gamma``
        the exposure that ``value`` successes or events were counted over.
    family : "gaussian" and "gaussian_mixture" fit the observations' own density; "poisson" their mean count; "beta" and
        "gamma" are what is known about a group's success share or event rate, and "dirichlet" about its shares.
    pseudo_count : every group is drawn towards all groups together as if it held this many typical observations more.

    Examples
    --------
    Who clicks how often, and how sure is that?

    >>> clicks = {"user": ["ann", "ann", "bob", "bob", "bob", "bob"], "clicked": [1, 1, 0, 0, 1, 0]}
    >>> users = read_observations(clicks, key="user", value="clicked", family="beta", pseudo_count=2)
    >>> dict(zip(users.keys.tolist(), users.X.tolist()))     # half of all were clicks: a prior of Beta(1, 1)
    {'ann': [3.0, 1.0], 'bob': [2.0, 4.0]}
    """
    values = [value] if isinstance(value, str) else list(value or [])
    _check_options(values, component, family)
    used = [key, *values, *([component] if component else []), *([weight] if weight else [])]
    with NamedTables() as tables:
        require_columns(tables.add("observations", source), used, "the source")
        connection = tables.connection
        dropped = _keep_complete(connection, key, values, component, weight)
        if family in COUNTED:
            return _shares(connection, family, pseudo_count, dropped)
        if family in ("beta", "gamma", "poisson"):
            return _rates(connection, family, values[0], pseudo_count, dropped)
        return _gaussians(connection, family, values, pseudo_count, dropped)


def _check_options(values: list[str], component: str | None, family: str) -> None:
    from shoal.densities.density_kmeans import FAMILIES

    if family not in FAMILIES:
        raise BadInput(f"family is {family!r}; choose one of {', '.join(FAMILIES)}.")
    if family in (*COUNTED, "gaussian_mixture") and component is None:
        raise BadInput(f"family {family!r} needs component=, the column that holds the component or outcome.")
    if family not in COUNTED and not values:
        raise BadInput(f"family {family!r} needs value=, the column that holds the observed number.")
    if family in ("beta", "gamma", "poisson") and len(values) > 1:
        raise BadInput(f"family {family!r} takes one value column, got {len(values)}: {', '.join(values)}.")


def _keep_complete(
    connection: Any, key: str, values: list[str], component: str | None, weight: str | None
) -> dict[str, int]:
    """Build the view ``kept`` (key, component, weight, v0, v1 ...) without unusable rows; count those."""
    numbers = [f"try_cast({quoted(name)} AS DOUBLE) AS v{at}" for at, name in enumerate(values)]
    fields = [
        f"{quoted(key)} AS key",
        f"CAST({quoted(component)} AS VARCHAR) AS component" if component else "'' AS component",
        f"try_cast({quoted(weight)} AS DOUBLE) AS weight" if weight else "1.0 AS weight",
        *numbers,
    ]
    connection.execute(f"CREATE TEMP VIEW read AS SELECT {', '.join(fields)} FROM observations")
    faults = {
        "no key": "key IS NULL",
        "weight missing, negative or not finite": "weight IS NULL OR NOT (weight >= 0 AND isfinite(weight))",
    }
    if component:
        faults["no component"] = "component IS NULL"
    for at, name in enumerate(values):
        faults[f"{name} missing or not finite"] = f"v{at} IS NULL OR NOT isfinite(v{at})"
    # A row with several faults is counted under the first.
    case = " ".join(f"WHEN {test} THEN {at}" for at, test in enumerate(faults.values()))
    counted = connection.execute(f"SELECT CASE {case} ELSE -1 END AS fault, count(*) FROM read GROUP BY 1").fetchall()
    names = list(faults)
    good = " AND ".join(f"NOT coalesce({test}, true)" for test in faults.values())
    connection.execute(f"CREATE TEMP VIEW kept AS SELECT * FROM read WHERE {good}")
    if not any(fault == -1 for fault, _ in counted):
        raise BadInput("no usable observation is left: " + "; ".join(f"{names[f]}: {n} rows" for f, n in counted))
    return {names[fault]: int(n) for fault, n in counted if fault >= 0}


def _shares(connection: Any, family: str, pseudo_count: float, dropped: dict[str, int]) -> Densities:
    table = connection.execute("SELECT key, component, sum(weight) AS n FROM kept GROUP BY ALL").fetchnumpy()
    keys, row = np.unique(np.asarray(table["key"]), return_inverse=True)
    outcomes, column = np.unique(np.asarray(table["component"]).astype(str), return_inverse=True)
    counts = np.zeros((keys.size, outcomes.size))
    np.add.at(counts, (row, column), np.asarray(table["n"], dtype=float))
    typical = counts.sum(0) / counts.sum()
    X = counts + pseudo_count * typical
    if family == "categorical":
        X = X / X.sum(1, keepdims=True)
    names = outcomes.tolist()
    return Densities(X, keys, counts.sum(1), family, names, names, dropped)


def _rates(connection: Any, family: str, name: str, pseudo_count: float, dropped: dict[str, int]) -> Densities:
    sql = "SELECT key, sum(v0) AS total, sum(weight) AS n FROM kept GROUP BY key ORDER BY key"
    table = connection.execute(sql).fetchnumpy()
    total, n = np.asarray(table["total"], dtype=float), np.asarray(table["n"], dtype=float)
    wrong = np.flatnonzero((total < 0) | ((total > n) if family == "beta" else False))
    if wrong.size:
        at = wrong[0]
        limit = f" and at most {n[at]:g}" if family == "beta" else ""
        raise BadInput(
            f"the sum of {name!r} for key {table['key'][at]!r} is {total[at]:g}; for family {family!r} it must be 0 or "
            f"more{limit}. {wrong.size} keys break this."
        )
    mean = total.sum() / n.sum()
    events, trials = total + pseudo_count * mean, n + pseudo_count
    if family == "beta":
        X, names = np.column_stack([events, trials - events]), ["a", "b"]
    elif family == "gamma":
        X, names = np.column_stack([events, trials]), ["shape", "rate"]
    else:
        X, names = (events / trials)[:, None], ["rate"]
    return Densities(X, np.asarray(table["key"]), n, family, names, [], dropped)


def _gaussians(
    connection: Any, family: str, values: list[str], pseudo_count: float, dropped: dict[str, int]
) -> Densities:
    # Two passes: group means first, then squares about them, so that no digits are lost to large values.
    at = range(len(values))
    means = ", ".join(f"sum(weight * v{i}) / sum(weight) AS m{i}" for i in at)
    squares = ", ".join(f"sum(weight * (v{i} - m{i}) ** 2) / sum(weight) AS s{i}" for i in at)
    first = ", ".join(f"first(m{i}) AS m{i}" for i in at)
    table = connection.execute(
        f"WITH means AS (SELECT key, component, {means} FROM kept WHERE weight > 0 GROUP BY ALL) "
        f"SELECT key, component, sum(weight) AS n, {first}, {squares} "
        "FROM kept JOIN means USING (key, component) WHERE weight > 0 GROUP BY ALL"
    ).fetchnumpy()
    keys, row = np.unique(np.asarray(table["key"]), return_inverse=True)
    components, column = np.unique(np.asarray(table["component"]).astype(str), return_inverse=True)
    shape = (keys.size, components.size)
    n, mean, variance = np.zeros(shape), np.zeros((*shape, len(values))), np.zeros((*shape, len(values)))
    n[row, column] = table["n"]
    for i in at:
        mean[row, column, i], variance[row, column, i] = table[f"m{i}"], table[f"s{i}"]
    weights, mean, variance = smoothed_components(n, mean, variance, pseudo_count)
    parts = [mean.reshape(keys.size, -1), variance.reshape(keys.size, -1)]
    labels = [f"{name} of {component}" if component else name for component in components for name in values]
    names = [f"mean {label}" for label in labels] + [f"variance {label}" for label in labels]
    if family == "gaussian_mixture":
        parts, names = [weights, *parts], [f"weight {component}" for component in components] + names
    elif len(components) > 1:
        raise BadInput("family 'gaussian' takes no component=; use 'gaussian_mixture'.")
    return Densities(np.concatenate(parts, 1), keys, n.sum(1), family, names, components.tolist(), dropped)


def smoothed_components(
    n: np.ndarray, mean: np.ndarray, variance: np.ndarray, pseudo_count: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw thin components to the component's overall moments, and keep every weight and variance above 0.

    Parameters
    ----------
    n : array of shape (n_keys, n_components)
        Number of observations.
    mean, variance : array of shape (n_keys, n_components, n_dimensions)
        Their moments. The first percentile of the non-zero variances is added to every variance, so that groups of
        equal values do not get infinite weight.
    pseudo_count : float
        Weight of the overall moments, in observations.

    Returns
    -------
    weights, mean, variance : arrays
        The smoothed mixture of each key; its weights sum to 1.

    Examples
    --------
    The second key has one observation, so its mean moves towards the mean of the others:

    >>> import numpy as np
    >>> n, mean = np.array([[9.0], [1.0]]), np.array([[[0.0]], [[4.0]]])
    >>> smoothed_components(n, mean, np.full((2, 1, 1), 0.5), pseudo_count=1.0)[1].ravel()
    array([0., 2.])
    """
    share = np.divide(n, n.sum(1, keepdims=True), out=np.zeros_like(n), where=n.sum(1, keepdims=True) > 0)
    typical = n.sum(0) / n.sum()
    total = n.sum(1, keepdims=True)
    weights = (share * total + pseudo_count * typical) / (total + pseudo_count)
    mean, variance = mean.copy(), variance.copy()
    for component in range(n.shape[1]):
        thick = n[:, component] >= 2 if (n[:, component] >= 2).any() else n[:, component] > 0
        counts = n[thick, component]
        keep = (n[:, component] / np.maximum(n[:, component] + pseudo_count, 1e-300))[:, None]
        overall = np.average(mean[thick, component], axis=0, weights=counts)
        inside = np.average(variance[thick, component], axis=0, weights=counts)
        between = np.average((mean[thick, component] - overall) ** 2, axis=0, weights=counts)
        for d in range(mean.shape[2]):
            seen = variance[thick, component, d]
            seen = seen[seen > 0]
            floor = np.percentile(seen, 1) if seen.size else max(1e-6, 1e-3 * float(between[d]))
            variance[:, component, d] = (keep * variance[:, component] + (1 - keep) * inside)[:, d] + floor
        mean[:, component] = keep * mean[:, component] + (1 - keep) * overall
    return weights, mean, variance
