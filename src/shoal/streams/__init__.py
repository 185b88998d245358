"""Threads and stories in a stream: time-sensitive Dirichlet process mixtures."""

from shoal.streams.kernels_over_time import (
    ExponentialKernel,
    PeriodicKernel,
    PowerKernel,
    StepKernel,
    SumKernel,
    TimeKernel,
    seconds,
)

__all__ = [
    "ExponentialKernel",
    "PeriodicKernel",
    "PowerKernel",
    "StepKernel",
    "SumKernel",
    "TimeKernel",
    "seconds",
]
