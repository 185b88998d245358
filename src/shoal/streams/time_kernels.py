"""Kernels over time: how much a past message still weighs when a new one arrives.

Every kernel is a function of the gap between two times, 1 at a gap of 0 (a sum of kernels adds up to more). Inference
sees each of them as a sum of damped waves, ``sum_q amplitude_q exp(-decay_q x) cos(frequency_q x)``, because such a sum
can be carried from one member of a cluster to the next in a few multiplications. For the exponential and the step
kernel that form is exact; a periodic kernel is exact to 1e-12, a power law to about 1e-8.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gamma, ive

from shoal.base import storable
from shoal.errors import BadInput

SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0, "year": 31557600.0}
SHORT = {"s": "second", "sec": "second", "min": "minute", "m": "minute", "h": "hour", "d": "day", "w": "week"}


def seconds(text: str) -> float:
    """A duration in words, in seconds.

    Parameters
    ----------
    text : str
        A number and a unit.

    Examples
    --------
    >>> seconds("6 hours"), seconds("1 week"), seconds("2h")
    (21600.0, 604800.0, 7200.0)
    """
    found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([a-z]+)\s*", text.lower())
    name = found.group(2) if found else ""
    name = SHORT.get(name, name if name in SECONDS else name.removesuffix("s"))
    try:
        return float(found.group(1)) * SECONDS[name]  # type: ignore[union-attr]
    except (ValueError, KeyError, AttributeError):
        raise BadInput(
            f"cannot read {text!r} as a duration; write a number and one of {', '.join(SECONDS)}, such as '6 hours'."
        ) from None


def _duration(value: float | str) -> float:
    return seconds(value) if isinstance(value, str) else float(value)


class Waves(NamedTuple):
    """A kernel as ``sum amplitude exp(-decay x) cos(frequency x)``."""

    amplitude: np.ndarray
    decay: np.ndarray
    frequency: np.ndarray

    def __call__(self, gaps: Any) -> np.ndarray:
        x = np.asarray(gaps, dtype=np.float64)[..., None]
        return np.asarray((self.amplitude * np.exp(-self.decay * x) * np.cos(self.frequency * x)).sum(-1))


class TimeKernel:
    """Base class of time kernels; see :class:`ExponentialKernel` for the usual choice.

    Examples
    --------
    >>> isinstance(ExponentialKernel(0.5), TimeKernel)
    True
    """

    def __call__(self, gaps: Any) -> np.ndarray:
        """The weight that is left after each of these gaps."""
        raise NotImplementedError

    def waves(self) -> Waves:
        """The same kernel in the form that inference uses."""
        raise NotImplementedError

    def learned_names(self) -> list[str]:
        """The positive numbers that learning may move."""
        return [each.name for each in fields(self) if each.metadata.get("learned")]  # type: ignore[arg-type]

    def parameters(self) -> np.ndarray:
        """Their present values."""
        return np.array([getattr(self, name) for name in self.learned_names()], dtype=np.float64)

    def with_parameters(self, values: Sequence[float] | np.ndarray) -> TimeKernel:
        """A copy with other values."""
        changed = {name: float(value) for name, value in zip(self.learned_names(), values, strict=True)}
        return replace(self, **changed)  # type: ignore[type-var]

    def __add__(self, other: TimeKernel) -> SumKernel:
        return SumKernel([*_parts(self), *_parts(other)], [*_weights(self), *_weights(other)])

    def __mul__(self, weight: float) -> SumKernel:
        return SumKernel(_parts(self), [weight * each for each in _weights(self)])

    __rmul__ = __mul__


def _parts(kernel: TimeKernel) -> list[TimeKernel]:
    return list(kernel.parts) if isinstance(kernel, SumKernel) else [kernel]


def _weights(kernel: TimeKernel) -> list[float]:
    return list(kernel.weights) if isinstance(kernel, SumKernel) else [1.0]


def _need_positive(kernel: TimeKernel, *names: str) -> None:
    for name in names:
        value = getattr(kernel, name)
        if not (np.isfinite(value) and value > 0):
            raise BadInput(f"{type(kernel).__name__}({name}={value!r}): {name} must be a number above 0.")


def _learned() -> Any:
    return field(metadata={"learned": True})


@storable
@dataclass(frozen=True)
class ExponentialKernel(TimeKernel):
    """``exp(-rate x)``: the weight of a message halves with each half-life.

    With neither parameter, the model learns the rate from the data.

    Parameters
    ----------
    rate : float, optional
        Decay rate per unit of time.
    half_life : float or str, optional
        Half-life in units of time, or in words (``"6 hours"``) if times are in seconds.

    Examples
    --------
    >>> ExponentialKernel(0.5)([0, 1, 2]).round(3)
    array([1.   , 0.607, 0.368])
    >>> round(float(ExponentialKernel(half_life="1 day")(86400.0)), 3)
    0.5
    """

    rate: float | None = None
    half_life: InitVar[float | str | None] = None

    def __post_init__(self, half_life: float | str | None) -> None:
        if half_life is not None:
            if self.rate is not None:
                raise BadInput(
                    f"ExponentialKernel got rate={self.rate!r} and half_life={half_life!r}; give one of them."
                )
            duration = _duration(half_life)
            if not (np.isfinite(duration) and duration > 0):
                raise BadInput(f"ExponentialKernel(half_life={half_life!r}): half_life must be above 0.")
            object.__setattr__(self, "rate", math.log(2.0) / duration)
        if self.rate is not None and not (np.isfinite(self.rate) and self.rate >= 0):
            raise BadInput(f"ExponentialKernel(rate={self.rate!r}): the rate must be 0 or more (0 never forgets).")

    def learned_names(self) -> list[str]:
        return ["rate"]

    def with_parameters(self, values: Sequence[float] | np.ndarray) -> ExponentialKernel:
        return ExponentialKernel(float(values[0]))

    def __call__(self, gaps: Any) -> np.ndarray:
        return np.exp(-self._rate() * np.asarray(gaps, dtype=np.float64))

    def waves(self) -> Waves:
        return Waves(np.ones(1), np.array([self._rate()]), np.zeros(1))

    def _rate(self) -> float:
        if self.rate is None:
            raise BadInput("this ExponentialKernel has no rate yet: it is learned by fit or partial_fit.")
        return float(self.rate)


@storable
@dataclass(frozen=True)
class StepKernel(TimeKernel):
    """1 for ever: the model is then the ordinary Dirichlet process mixture, without time.

    >>> StepKernel()([0, 5, 500])
    array([1., 1., 1.])
    """

    def __call__(self, gaps: Any) -> np.ndarray:
        return np.ones_like(np.asarray(gaps, dtype=np.float64))

    def waves(self) -> Waves:
        return Waves(np.ones(1), np.zeros(1), np.zeros(1))


@storable
@dataclass(frozen=True)
class PowerKernel(TimeKernel):
    """``(1 + x / scale) ** -exponent``: fast decay at first, slow decay later.

    Parameters
    ----------
    scale : float
        Time after which decay follows the power law.
    exponent : float
        Exponent of the decay.

    Examples
    --------
    >>> PowerKernel(scale=2.0, exponent=1.0)([0, 2, 6])
    array([1.  , 0.5 , 0.25])
    """

    scale: float = _learned()
    exponent: float = field(default=1.0, metadata={"learned": True})

    def __post_init__(self) -> None:
        if isinstance(self.scale, str):
            object.__setattr__(self, "scale", seconds(self.scale))
        _need_positive(self, "scale", "exponent")

    def __call__(self, gaps: Any) -> np.ndarray:
        return np.asarray((1.0 + np.asarray(gaps, dtype=np.float64) / self.scale) ** -self.exponent)

    def waves(self) -> Waves:
        # (1+x)^-a is the Laplace transform of s^(a-1) e^-s / Gamma(a). The trapezoid rule in y = log s converges like
        # exp(-pi^2 / h); nodes below the least are so slow that one node with their whole mass stands for them.
        step, a = 0.42, self.exponent
        y = np.arange(math.log(1e-10), math.log(60.0), step)
        nodes = np.exp(y)
        amplitude = step * np.exp(a * y - nodes) / gamma(a)
        rest = step * math.exp(a * (y[0] - step)) / (1.0 - math.exp(-a * step)) / gamma(a)
        amplitude, nodes = np.append(amplitude, rest), np.append(nodes, nodes[0] * math.exp(-step))
        return Waves(amplitude, nodes / self.scale, np.zeros(amplitude.size))


@storable
@dataclass(frozen=True)
class PeriodicKernel(TimeKernel):
    """``exp(-rate x) exp(sharpness (cos(2 pi x / period) - 1))``: large after each whole period.

    For example, for weekly announcements: ``PeriodicKernel(period="1 week", rate=...)``.

    Parameters
    ----------
    period : float or str
        Length of a period.
    rate : float
        Decay rate per unit of time.
    sharpness : float
        Larger values give narrower peaks.

    Examples
    --------
    >>> PeriodicKernel(period=7.0, rate=0.01, sharpness=3.0)([0, 3.5, 7]).round(3)
    array([1.   , 0.002, 0.932])
    """

    period: float = _learned()
    rate: float = field(default=1e-9, metadata={"learned": True})
    sharpness: float = field(default=3.0, metadata={"learned": True})

    def __post_init__(self) -> None:
        if isinstance(self.period, str):
            object.__setattr__(self, "period", seconds(self.period))
        _need_positive(self, "period", "rate", "sharpness")

    def __call__(self, gaps: Any) -> np.ndarray:
        x = np.asarray(gaps, dtype=np.float64)
        return np.asarray(np.exp(-self.rate * x + self.sharpness * (np.cos(2 * math.pi * x / self.period) - 1.0)))

    def waves(self) -> Waves:
        # The Fourier series of the von Mises bump; ive(m) falls faster than any power of 1/m.
        order = np.arange(400)
        amplitude = ive(order, self.sharpness) * np.where(order == 0, 1.0, 2.0)
        kept = order[: max(1, int(np.flatnonzero(amplitude > 1e-13)[-1]) + 1)]
        return Waves(amplitude[kept], np.full(kept.size, self.rate), 2 * math.pi * kept / self.period)


@storable
@dataclass(frozen=True)
class SumKernel(TimeKernel):
    """A weighted sum of kernels; also written ``fast + 0.1 * slow``.

    Parameters
    ----------
    parts : list of TimeKernel
        The kernels.
    weights : list of float
        The weight of each.

    Examples
    --------
    >>> kernel = ExponentialKernel(1.0) + 0.5 * StepKernel()
    >>> kernel([0.0, 100.0])
    array([1.5, 0.5])
    """

    parts: list[TimeKernel]
    weights: list[float]

    def __call__(self, gaps: Any) -> np.ndarray:
        return np.asarray(sum(weight * part(gaps) for part, weight in zip(self.parts, self.weights, strict=True)))

    def waves(self) -> Waves:
        each = [part.waves() for part in self.parts]
        return Waves(
            np.concatenate([w * part.amplitude for part, w in zip(each, self.weights, strict=True)]),
            np.concatenate([part.decay for part in each]),
            np.concatenate([part.frequency for part in each]),
        )

    def parameters(self) -> np.ndarray:
        return np.concatenate([part.parameters() for part in self.parts])

    def learned_names(self) -> list[str]:
        return [f"{at}.{name}" for at, part in enumerate(self.parts) for name in part.learned_names()]

    def with_parameters(self, values: Sequence[float] | np.ndarray) -> SumKernel:
        parts, at = [], 0
        for part in self.parts:
            n = len(part.learned_names())
            parts.append(part.with_parameters(values[at : at + n]) if n else part)
            at += n
        return SumKernel(parts, list(self.weights))


NAMED: dict[str, type[TimeKernel]] = {
    "exponential": ExponentialKernel,
    "step": StepKernel,
    "power": PowerKernel,
    "periodic": PeriodicKernel,
}


def as_kernel(kernel: Any, half_life: float | str | None = None) -> TimeKernel | None:
    """Validate the ``kernel`` and ``half_life`` options; None means that the rate of an exponential one is learned.

    >>> as_kernel("exponential:half_life=2h") == as_kernel("exponential", "2h") == ExponentialKernel(half_life=7200.0)
    True
    >>> as_kernel("periodic:period=1 week,rate=1e-7").period
    604800.0
    """
    if half_life is not None:
        if not (kernel is None or kernel == "exponential"):
            raise BadInput(f"half_life={half_life!r} belongs to the exponential kernel; kernel is {kernel!r}.")
        return ExponentialKernel(half_life=half_life)
    if kernel is None or isinstance(kernel, TimeKernel):
        return kernel
    if isinstance(kernel, str):
        return _named(kernel)
    raise BadInput(
        f"kernel={kernel!r} is not a time kernel. Use a name ({', '.join(NAMED)}), ExponentialKernel(rate), "
        "StepKernel(), PowerKernel(scale), PeriodicKernel(period), a sum of these, or None to learn the rate."
    )


def _named(text: str) -> TimeKernel:
    name, _, rest = text.partition(":")
    if name.strip() not in NAMED:
        raise BadInput(f"kernel={text!r} is not a time kernel; the names are {', '.join(NAMED)}.")
    options: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise BadInput(f"kernel={text!r}: write options as NAME=VALUE, as in exponential:half_life=2h.")
        try:
            options[key.strip()] = float(value)
        except ValueError:
            options[key.strip()] = seconds(value)
    kind = NAMED[name.strip()]
    try:
        return kind(**options)
    except TypeError:
        known = ", ".join(inspect.signature(kind).parameters) or "no parameters"
        raise BadInput(f"kernel={text!r}: {name.strip()} takes {known}.") from None
