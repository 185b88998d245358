"""From the names or numbers of features to columns."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from shoal.base import Estimator
from shoal.errors import BadInput, UnknownFeature


class Columns(NamedTuple):
    """Columns, each once and ascending, and the names that are not known."""

    columns: np.ndarray
    unknown: list[str]


def columns_of(estimator: Estimator, features: Iterable[Any], what: str) -> Columns:
    """Features by name or by column number; unknown names are left out, a column number out of range is refused."""
    if isinstance(features, str):
        raise BadInput(f"{what} is the text {features!r}; give a list of features, as in [{features!r}].")
    asked = list(features)
    names = [str(feature) for feature in asked if isinstance(feature, str)]
    numbers = [feature for feature in asked if not isinstance(feature, str)]
    n_features = estimator.n_features_in_  # type: ignore[attr-defined]
    for number in numbers:
        if not isinstance(number, Integral) or isinstance(number, bool):
            raise BadInput(f"{what} holds {number!r}; features are names or column numbers.")
        if not 0 <= int(number) < n_features:
            raise UnknownFeature(f"feature {number} of {what} is not a column; columns run from 0 to {n_features - 1}.")
    places = _find(estimator, names, what)
    unknown = [name for name, place in zip(names, places, strict=True) if place < 0]
    known = [int(place) for place in places if place >= 0]
    return Columns(np.unique(np.array([int(number) for number in numbers] + known, dtype=np.int64)), unknown)


def _find(estimator: Estimator, names: list[str], what: str) -> list[int]:
    if not names:
        return []
    vocabulary = getattr(estimator, "vocabulary_", None)
    if vocabulary is not None:
        return [int(place) for place in vocabulary.find(names)]
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        raise BadInput(
            f"{what} holds the name {names[0]!r}, but the model was fitted without names. Give column numbers, or fit "
            "on a Dataset (shoal.read)."
        )
    place_of = {str(name): at for at, name in enumerate(known)}
    return [place_of.get(name, -1) for name in names]
