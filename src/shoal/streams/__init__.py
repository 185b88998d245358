"""Threads and stories in a stream: time-sensitive Dirichlet process mixtures."""

from shoal.streams.events import Event
from shoal.streams.evidence import Evidence, with_evidence
from shoal.streams.history import ClusterHistory
from shoal.streams.mixture import TimeSensitiveMixture
from shoal.streams.options import Inference
from shoal.streams.time_kernels import (
    ExponentialKernel,
    PeriodicKernel,
    PowerKernel,
    StepKernel,
    SumKernel,
    TimeKernel,
    seconds,
)

__all__ = [
    "TimeSensitiveMixture",
    "Inference",
    "Evidence",
    "with_evidence",
    "ClusterHistory",
    "Event",
    "ExponentialKernel",
    "PeriodicKernel",
    "PowerKernel",
    "StepKernel",
    "SumKernel",
    "TimeKernel",
    "seconds",
]
