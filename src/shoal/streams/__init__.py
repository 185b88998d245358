"""Threads and stories in a stream: time-sensitive Dirichlet process mixtures."""

from shoal.streams.evidence import Evidence, with_evidence
from shoal.streams.kernels_over_time import (
    ExponentialKernel,
    PeriodicKernel,
    PowerKernel,
    StepKernel,
    SumKernel,
    TimeKernel,
    seconds,
)
from shoal.streams.lives import Life
from shoal.streams.mixture import TimeSensitiveMixture
from shoal.streams.options import Inference

__all__ = [
    "TimeSensitiveMixture",
    "Inference",
    "Evidence",
    "with_evidence",
    "Life",
    "ExponentialKernel",
    "PeriodicKernel",
    "PowerKernel",
    "StepKernel",
    "SumKernel",
    "TimeKernel",
    "seconds",
]
