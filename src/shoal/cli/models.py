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

    auto = "auto"
    kmeans = "kmeans"
    bernoulli = "bernoulli"
    mixture = "mixture"
    stream = "stream"
    suggester = "suggester"


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
    Model.suggester: ModelChoice("shoal.suggestion", "Suggester", "binary"),
}


def build(model: Model, settings: dict[str, Any]) -> Estimator:
    """The estimator with these parameters; an unknown one is named with those that exist."""
    choice = CHOICES[model]
    estimator = getattr(import_module(choice.package), choice.name)()
    known = estimator.get_params(deep=False)
    if settings.get("n_clusters") is not None and "n_clusters" not in known:
        raise BadInput(f"--clusters: --model {model} finds the number of clusters by itself. Leave --clusters out.")
    for name in settings:
        if name not in known:
            raise BadInput(f"--set {name}: {choice.name} has no such parameter. It has: {', '.join(sorted(known))}.")
    if isinstance(settings.get("clusters"), str):  # the file of a fitted model
        from shoal.store import load  # here, so that `shoal --help` imports no numpy

        settings = settings | {"clusters": load(settings["clusters"])}
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
        except (json.JSONDecodeError, RecursionError):
            settings[name.strip().replace("-", "_")] = value
    return settings
