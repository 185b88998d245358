"""From the names or numbers of features to columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from shoal.base import Estimator
from shoal.errors import BadInput
from shoal.validation import check_features


class Columns(NamedTuple):
    """Columns, each once and ascending, and the names that are not known."""

    columns: np.ndarray
    unknown: list[str]


def columns_of(estimator: Estimator, features: Iterable[Any], what: str) -> Columns:
    """Features by name or by column number; unknown names are left out, a column number out of range is refused."""
    names, numbers = check_features(what, features, estimator.n_features_in_)  # type: ignore[attr-defined]
    places = _find(estimator, names, what)
    unknown = [name for name, place in zip(names, places, strict=True) if place < 0]
    known = [int(place) for place in places if place >= 0]
    return Columns(np.unique(np.array(numbers + known, dtype=np.int64)), unknown)


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
