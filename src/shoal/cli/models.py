"""The models a user can name on the command line, and how to build one from options."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.errors import BadInput

if TYPE_CHECKING:
    from shoal.base import Estimator

SECONDS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
KERNELS = {
    "exponential": "ExponentialKernel",
    "step": "StepKernel",
    "power": "PowerKernel",
    "periodic": "PeriodicKernel",
}


class Model(StrEnum):
    """Names for ``--model``."""

    auto = "auto"
    kmeans = "kmeans"
    bernoulli = "bernoulli"
    mixture = "mixture"
    stream = "stream"


@dataclass(frozen=True)
class ModelChoice:
    """Where a model's class is, and how it wants its matrix weighted when the user does not say."""

    package: str
    name: str
    weighting: str
    fits_batches: bool = False  # whether `fit` takes batches and passes over them several times


CHOICES = {
    Model.kmeans: ModelChoice("shoal.kmeans", "SphericalKMeans", "tfidf", fits_batches=True),
    Model.bernoulli: ModelChoice("shoal.bernoulli", "BernoulliMixture", "binary"),
    Model.mixture: ModelChoice("shoal.families", "ExponentialFamilyMixture", "count"),
    Model.stream: ModelChoice("shoal.streams", "TimeSensitiveMixture", "count"),
}


def build(model: Model, settings: dict[str, Any]) -> Estimator:
    """The estimator with these parameters; an unknown one is named with those that exist."""
    choice = CHOICES[model]
    estimator = getattr(import_module(choice.package), choice.name)()
    known = estimator.get_params(deep=False)
    for name in settings:
        if name not in known:
            raise BadInput(f"--set {name}: {choice.name} has no such parameter. It has: {', '.join(sorted(known))}.")
    if isinstance(settings.get("kernel"), str):
        settings = settings | {"kernel": time_kernel(settings["kernel"])}
    estimator.set_params(**settings)
    return estimator  # type: ignore[no-any-return]


def time_kernel(text: str) -> Any:
    """A kernel over time from its name and parameters.

    >>> time_kernel("exponential:half_life=2h").rate == time_kernel("exponential:half_life=7200").rate
    True
    """
    name, _, rest = text.partition(":")
    if name not in KERNELS:
        raise BadInput(f"kernel {name!r}: there are {', '.join(KERNELS)}, as in kernel=exponential:half_life=2h.")
    kind = getattr(import_module("shoal.streams"), KERNELS[name])
    given: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        parameter, equals, value = part.partition("=")
        if not equals:
            raise BadInput(f"kernel {text!r}: write parameters as NAME=VALUE, as in exponential:half_life=2h.")
        given[parameter.strip().replace("-", "_")] = _amount(value)
    try:
        return kind(**given)
    except TypeError:
        known = [field.name for field in fields(kind)] if is_dataclass(kind) else []
        extra = ["half_life"] if name == "exponential" else []
        raise BadInput(f"kernel {text!r}: {name} takes {', '.join([*known, *extra]) or 'no parameters'}.") from None


def _amount(text: str) -> float:
    """A number, or a duration such as 2h or 30min in seconds."""
    match = re.fullmatch(r"\s*([-+0-9.eE]+?)\s*(s|min|m|h|d|w)?\s*", text)
    try:
        return float(match[1]) * SECONDS[match[2] or "s"]  # type: ignore[index]
    except (TypeError, ValueError):
        raise BadInput(f"{text!r} is neither a number nor a duration such as 90s, 30min, 2h, 1d.") from None


def settings_of(texts: list[str]) -> dict[str, Any]:
    """``["tol=0.001", "init=random"]`` as parameters: JSON values where they parse, else text.

    >>> settings_of(["tol=0.001", "init=random", "clutter=false"])
    {'tol': 0.001, 'init': 'random', 'clutter': False}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"--set {text}: write it as NAME=VALUE, for example --set max_iter=50.")
        try:
            settings[name.strip().replace("-", "_")] = json.loads(value)
        except (json.JSONDecodeError, RecursionError):
            settings[name.strip().replace("-", "_")] = value
    return settings
