"""Random fits and questions: every suggested probability in [0, 1], falling, and every membership a probability.

python benchmarks/bernoulli_probabilities.py [cases]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from common import peak_mb, record
from shoal.bernoulli import BernoulliMixture


def broken(seed: int) -> int:
    """How many numbers of one random case are no probabilities."""
    rng = np.random.default_rng(seed)
    k, density = int(rng.integers(1, 6)), rng.random()
    n, d = int(rng.integers(k, 60)), int(rng.integers(2, 30))
    X = (rng.random((n, d)) < density * rng.random((3, d))[rng.integers(3, size=n)] * 1.5).astype(float)
    inference = "em" if seed % 4 == 0 else "adf"
    model = BernoulliMixture(k, inference=inference, features_kept=int(rng.integers(1, 30)), random_state=0).fit(X)
    asked = (rng.random((8, d)) < rng.random()).astype(float)
    rejected = (rng.random((8, d)) < 0.1) * (1 - asked)
    wrong = 0
    for hidden in ("third", "one", 0.2, 3):
        features, p = model.suggest_batch(asked, rejected=rejected, hidden=hidden)
        wrong += int((~np.isfinite(p) | (p < 0) | (p > 1)).sum())
        wrong += int((np.diff(np.where(features >= 0, p, -1.0), axis=1) > 1e-12).sum())
    shares = model.predict_proba(asked)
    return wrong + int((~(shares >= 0)).sum()) + int((np.abs(shares.sum(axis=1) - 1) > 1e-9).sum())


def main(cases: int) -> None:
    began = time.process_time()
    wrong = sum(broken(seed) for seed in range(cases))
    record("bernoulli", workload="probabilities", model="BernoulliMixture", seconds=time.process_time() - began,
           peak_mb=peak_mb(), quality=wrong, cases=cases)  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
