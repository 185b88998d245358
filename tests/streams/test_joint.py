"""What ``fit`` reaches against the labels that made the data, for every likelihood, base and kernel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.datasets import make_threads
from shoal.streams import (
    ExponentialKernel,
    Inference,
    PeriodicKernel,
    PowerKernel,
    StepKernel,
    TimeSensitiveMixture,
)
from shoal.streams.inference.batch import Batch, Learned
from shoal.streams.inference.posterior import by_birth

N = 60
KERNELS = {
    "exponential": ExponentialKernel(0.3),
    "step": StepKernel(),
    "power": PowerKernel(2.0, 1.5),
    "periodic": PeriodicKernel(7.0, 0.05, 3.0),
    "sum": ExponentialKernel(1.0) + 0.3 * StepKernel(),
}
BASES = [
    ("multinomial", "background"),
    ("multinomial", "uniform"),
    ("bernoulli", "background"),
    ("gaussian", "background"),
]
CASES = [(family, base, name) for family, base in BASES for name in KERNELS]


def messages(family):
    """Rows whose clusters are plain enough for the truth to be near the best labelling, and harder than trivial."""
    data = make_threads(N, n_features=12, length=15, decay=0.3, concentration=0.3, random_state=4)
    truth, rng = by_birth(np.asarray(data.labels)), np.random.default_rng(4)
    if family == "multinomial":
        return data.X.astype(float), data.times, truth
    if family == "bernoulli":
        shares = rng.beta(0.4, 0.4, (truth.max() + 1, 24))
        return sp.csr_matrix((rng.random((N, 24)) < shares[truth]).astype(float)), data.times, truth
    means = rng.normal(0.0, 3.0, (truth.max() + 1, 4))
    return sp.csr_matrix(means[truth] + rng.normal(size=(N, 4))), data.times, truth


@pytest.mark.parametrize(("family", "base", "name"), CASES)
def test_fit_reaches_the_joint_of_the_labels_that_made_the_data(family, base, name):
    X, times, truth = messages(family)
    model = TimeSensitiveMixture(
        KERNELS[name], concentration=0.3, likelihood=family, base=base, random_state=0,
        inference=Inference(n_sweeps=100, burn_in=50, thin=1),
    )  # fmt: skip
    model.fit(X, times=times)

    def joint(labels):
        """Under the parameters that were learned, which are the same for both."""
        state = model.stream_.state.empty_copy(0)
        state.append(X, times, first_number=0)
        state.place(by_birth(labels))
        return Batch(state, times, Learned(False, False, False, False)).log_joint()

    assert joint(model.labels_) > joint(truth) - 2.0
