"""Two models fitted on halves and merged, beside one fitted on the whole: objective, NMI, sizes, order.

python benchmarks/contract_merging.py [rows]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from common import record
from shoal import BernoulliMixture, DensityKMeans, ExponentialFamilyMixture, SphericalKMeans
from shoal.metrics import normalized_mutual_information as nmi

N_ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
K = 50


def objective(model: Any, X: Any) -> float:
    if hasattr(model, "score_samples"):
        return float(np.mean(model.score_samples(X)))
    return float(np.mean(model.assign(X).scores))


def compare(name: str, make: Callable[..., Any], X: Any, start: Callable[[Any], dict[str, Any]] | None) -> None:
    rng = np.random.default_rng(0)
    held_out = rng.random(X.shape[0]) < 0.2
    train, test = X[~held_out], X[held_out]
    whole = make().fit(train)
    options = start(whole) if start else {}
    halves = [make().set_params(**options).fit(train[at::2]) for at in (0, 1, 0, 1)]
    merged, other_order = halves[0].merge(halves[1]), halves[3].merge(halves[2])
    sizes = [np.sort(np.asarray(model.cluster_sizes_))[::-1] for model in (merged, whole)]
    n = min(map(len, sizes))
    record(
        "contract_merging",
        model=name, rows=int(X.shape[0]), clusters_merged=len(sizes[0]), clusters_whole=len(sizes[1]),
        objective_merged=objective(merged, test), objective_whole=objective(whole, test),
        nmi_merged_whole=nmi(merged.predict(test), whole.predict(test)),
        nmi_orders=nmi(merged.predict(test), other_order.predict(test)),
        size_difference=float(np.abs(sizes[0][:n] - sizes[1][:n]).sum() / sizes[1].sum()),
    )  # fmt: skip


def main() -> None:
    from scipy import sparse

    rng = np.random.default_rng(1)
    labels = rng.integers(0, K, N_ROWS)
    lengths = rng.integers(8, 30, N_ROWS)
    own = rng.random(lengths.sum()) < 0.7
    features = np.where(
        own, labels.repeat(lengths) * 40 + rng.integers(0, 40, own.size), rng.integers(0, 2000, own.size)
    )
    X = sparse.csr_matrix((np.ones(own.size), features, np.append(0, np.cumsum(lengths))), (N_ROWS, 2000))
    X.sum_duplicates()
    binary = X.copy()
    binary.data[:] = 1.0

    def centers(model: Any) -> dict[str, Any]:
        return {"init": model.cluster_centers_, "n_init": 1}

    compare("SphericalKMeans", lambda: SphericalKMeans(K, random_state=0), X, centers)
    compare("BernoulliMixture adf", lambda: BernoulliMixture(K, random_state=0), binary, None)
    compare("BernoulliMixture em", lambda: BernoulliMixture(K, inference="em", random_state=0), binary, None)
    compare("ExponentialFamilyMixture", lambda: ExponentialFamilyMixture(K, random_state=0), X, None)
    points = np.hstack(
        [rng.normal(size=(K, 3))[labels] * 5 + rng.normal(size=(N_ROWS, 3)), rng.uniform(0.5, 2, (N_ROWS, 3))]
    )
    compare("DensityKMeans", lambda: DensityKMeans(K, random_state=0), points, centers)


if __name__ == "__main__":
    main()
