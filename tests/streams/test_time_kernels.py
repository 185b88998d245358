"""Kernels over time: their formulas, their waves, their units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from shoal.errors import BadInput
from shoal.streams.time_kernels import (
    NAMED,
    ExponentialKernel,
    PeriodicKernel,
    PowerKernel,
    StepKernel,
    as_kernel,
    seconds,
)

GAPS = np.concatenate([[0.0], np.logspace(-3, 5, 300)])
# a power law is a quadrature of exponentials: 1e-6 of its value where it is still 1e-10 of its start
KERNELS = [
    (ExponentialKernel(0.5), 1e-14),
    (StepKernel(), 0.0),
    (PowerKernel(2.0, 1.5), 1e-7),
    (PowerKernel(0.1, 0.5), 1e-6),
    (PeriodicKernel(7.0, 0.02, 3.0), 1e-12),
    (PeriodicKernel(1.0, 0.1, 40.0), 1e-12),
    (ExponentialKernel(1.0) + 0.25 * StepKernel(), 1e-14),
]


def test_every_named_kernel_is_tested():
    assert set(NAMED.values()) <= {type(kernel) for kernel, _ in KERNELS}


@pytest.mark.parametrize(("kernel", "tolerance"), KERNELS)
def test_waves_are_the_kernel(kernel, tolerance):
    exact = kernel(GAPS)
    if isinstance(kernel, PowerKernel):
        np.testing.assert_allclose(kernel.waves()(GAPS), exact, rtol=tolerance)
    else:
        np.testing.assert_allclose(kernel.waves()(GAPS), exact, atol=tolerance)


@settings(max_examples=40, deadline=None)
@given(some.floats(0.01, 100.0), some.floats(0.3, 4.0), some.floats(0.0, 1e4))
def test_power_law_waves(scale, exponent, multiple):
    kernel = PowerKernel(scale, exponent)
    gap = scale * multiple
    assert kernel.waves()(gap) == pytest.approx(float(kernel(gap)), rel=2e-6)


def test_parameters_go_out_and_come_back():
    kernel = PowerKernel(2.0, 1.5) + 0.5 * ExponentialKernel(0.1) + StepKernel()
    assert kernel.parameters().tolist() == [2.0, 1.5, 0.1]
    again = kernel.with_parameters([4.0, 1.0, 0.2])
    assert again.parameters().tolist() == [4.0, 1.0, 0.2]
    assert again.weights == [1.0, 0.5, 1.0]


def test_units_and_half_lives():
    assert seconds("2 days") == 172800.0
    assert ExponentialKernel(half_life="1 hour")(3600.0) == pytest.approx(0.5)
    assert ExponentialKernel(half_life=3.0)([3.0, 6.0]) == pytest.approx([0.5, 0.25])
    assert PeriodicKernel("1 week").period == 604800.0


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: ExponentialKernel(-1.0), "rate"),
        (lambda: ExponentialKernel(1.0, half_life=2.0), "half_life"),
        (lambda: ExponentialKernel(half_life=0.0), "half_life"),
        (lambda: ExponentialKernel(half_life="nan"), "half_life|duration"),
        (lambda: PowerKernel(0.0), "scale"),
        (lambda: PeriodicKernel(7.0, sharpness=-1.0), "sharpness"),
        (lambda: seconds("three moons"), "duration"),
        (lambda: as_kernel(0.5), "ExponentialKernel"),
        (lambda: ExponentialKernel()(1.0), "learned"),
    ],
)
def test_mistakes_are_named(make, word):
    with pytest.raises(BadInput, match=word):
        make()
