"""Keyword suggestion, as methods of the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from shoal.base import Estimator, Roster, as_rows
from shoal.bernoulli.exemplars import Exemplars, suggest_by_exemplars
from shoal.bernoulli.profiles import Profiles
from shoal.bernoulli.scoring import as_presence
from shoal.bernoulli.suggestion import memberships, reasons_for, suggest_many
from shoal.errors import BadInput, UnknownFeature
from shoal.records import Reason, Suggestion
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS = 4096


class Suggesting(Estimator):
    """Features that probably belong with those given; all not given are unknown, not absent."""

    profiles_: Profiles
    roster_: Roster

    def suggest(self, observed: Iterable[Any], rejected: Iterable[Any] = (), n: int = 10) -> list[Suggestion]:
        """The ``n`` features that most probably go with ``observed``, each with its reasons.

        Features are given by name when the model was fitted to a Dataset, or by column number. To refine, call again:
        a suggestion the user accepts joins ``observed``, one the user rejects joins ``rejected`` and counts as absent.
        """
        check_is_fitted(self)
        given, refused = self._columns(observed), self._columns(rejected)
        both = np.intersect1d(given, refused)
        if both.size:
            raise BadInput(
                f"{self.name_features(both[:1])[0]!r} is both observed and rejected; keep it in one of them."
            )
        width = self.profiles_.n_features
        features, probabilities = self._likeliest(_one_row(given, width), _one_row(refused, width), n)
        shares = memberships(self.profiles_, given, refused)
        names = self.name_features(given)
        found = []
        for feature, probability in zip(features[0], probabilities[0], strict=True):
            if feature >= 0:
                reasons = self._reasons(int(feature), given, names, shares)
                found.append(Suggestion(int(feature), self.name_features([feature])[0], float(probability), reasons))  # type: ignore[arg-type]
        return found

    def _reasons(self, feature: int, given: np.ndarray, names: list[str], shares: np.ndarray) -> list[Reason]:
        reasons = []
        for row, share, led in reasons_for(self.profiles_, feature, given, shares):
            id_ = -1 if row < self.profiles_.n_clutter else int(self.roster_.ids[row - self.profiles_.n_clutter])
            name = self.roster_.names.get(id_, "clutter" if id_ == -1 else f"cluster {id_}")
            reasons.append(Reason(id_, name, share, [names[at] for at in led]))
        return reasons

    def suggest_batch(self, X: Any, rejected: Any = None, n: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """For every row of ``X``, the ``n`` likeliest features it does not have, and their probabilities.

        Both are (n_rows, n), padded with feature -1. ``rejected`` is a matrix like ``X``, above 0 where refused.
        """
        check_is_fitted(self)
        rows = as_presence(as_rows(self, X, fitting=False))
        no = None if rejected is None else as_presence(as_rows(self, rejected, fitting=False))
        if no is not None and no.shape[0] != rows.shape[0]:
            raise BadInput(f"rejected has {no.shape[0]} rows, X has {rows.shape[0]}; give one row for each.")
        blocks = row_blocks(rows.shape[0], BLOCK_ROWS)
        parts = list(
            ordered_map(
                lambda block: self._likeliest(
                    rows[block[0] : block[1]], None if no is None else no[block[0] : block[1]], n
                ),
                blocks,
            )
        )
        return np.concatenate([features for features, _ in parts]), np.concatenate([probs for _, probs in parts])

    def _likeliest(
        self, observed: sp.csr_matrix, rejected: sp.csr_matrix | None, n: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """From the rows and features remembered, if any, else from the clusters."""
        memory: Exemplars | None = getattr(self, "exemplars_", None)
        if memory is not None:
            return suggest_by_exemplars(memory, observed, rejected, n)
        return suggest_many(self.profiles_, observed, rejected, n)

    def _columns(self, features: Iterable[Any]) -> np.ndarray:
        """Names or column numbers as column numbers, each once."""
        asked = list(features)
        named = [feature for feature in asked if isinstance(feature, str)]
        numbers = [int(feature) for feature in asked if not isinstance(feature, str)]
        wrong = [number for number in numbers if not 0 <= number < self.profiles_.n_features]
        if wrong:
            raise UnknownFeature(
                f"feature {wrong[0]} is not a column; columns run from 0 to {self.profiles_.n_features - 1}."
            )
        return np.unique(np.array(numbers + self._find(named), dtype=np.int64))

    def _find(self, names: list[str]) -> list[int]:
        if not names:
            return []
        vocabulary = getattr(self, "vocabulary_", None)
        if vocabulary is None:
            known = {str(name): at for at, name in enumerate(getattr(self, "feature_names_in_", []))}
            places = [known.get(name, -1) for name in names]
        else:
            places = vocabulary.find(names).tolist()
        for name, place in zip(names, places, strict=True):
            if place < 0:
                near = list(vocabulary.near(name, 3)) if vocabulary is not None else []
                hint = f" Did you mean {', '.join(repr(str(one)) for one in near)}?" if near else ""
                source = "the vocabulary" if vocabulary is not None else "the model, which was fitted without names"
                raise UnknownFeature(f"{name!r} is not in {source}.{hint}")
        return [int(place) for place in places]


def _one_row(columns: np.ndarray, width: int) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(columns.size), columns, np.array([0, columns.size])), shape=(1, width))
