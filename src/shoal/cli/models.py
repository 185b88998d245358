"""The models a user can name on the command line, and how to build one from options."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.errors import BadInput

if TYPE_CHECKING:
    from shoal.base import Estimator


class Model(StrEnum):
    """Names for ``--model``."""

    kmeans = "kmeans"
    bernoulli = "bernoulli"
    mixture = "mixture"
    stream = "stream"


@dataclass(frozen=True)
class Choice:
    room: str
    name: str
    weighting: str  # what the model wants in the matrix when the user does not say


CHOICES = {
    Model.kmeans: Choice("shoal.kmeans", "SphericalKMeans", "tfidf"),
    Model.bernoulli: Choice("shoal.bernoulli", "BernoulliMixture", "binary"),
    Model.mixture: Choice("shoal.families", "ExponentialFamilyMixture", "count"),
    Model.stream: Choice("shoal.streams", "TimeSensitiveMixture", "count"),
}


def build(model: Model, settings: dict[str, Any]) -> Estimator:
    """The estimator with these parameters; an unknown one is named beside those that exist."""
    choice = CHOICES[model]
    estimator = getattr(import_module(choice.room), choice.name)()
    known = estimator.get_params(deep=False)
    for name in settings:
        if name not in known:
            raise BadInput(f"--set {name}: {choice.name} has no such parameter. It has: {', '.join(sorted(known))}.")
    estimator.set_params(**settings)
    return estimator  # type: ignore[no-any-return]


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
        except json.JSONDecodeError:
            settings[name.strip().replace("-", "_")] = value
    return settings
