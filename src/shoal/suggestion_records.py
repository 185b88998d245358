"""What a suggestion is, in one form for every model that suggests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """One part of a suggestion's probability.

    ``kind`` says what the part comes from: "cluster" (rows of one cluster), "rows" (remembered rows, not grouped by
    cluster), "feature" (one of the given features) or "base" (what holds whatever is given: how common the feature is,
    and how much is hidden).
    """

    cluster: int | None  # its stable id; -1: rows that belong to no cluster; None: another kind of reason
    name: str
    share: float  # of the suggestion's probability; below 0 where the reason speaks against it
    because: list[str]  # what led there, most important first: given features, or ids of remembered rows
    kind: str = "cluster"


@dataclass(frozen=True)
class Suggestion:
    """A feature that probably belongs with those given."""

    feature: int
    name: str
    probability: float
    reasons: list[Reason]


class Suggestions(list[Suggestion]):
    """Suggestions, best first, and the given names that the model does not know.

    >>> found = Suggestions([Suggestion(3, "tea", 0.25, [])], unknown=["biscuit"])
    >>> found[0].name, found.unknown, found.n_unknown
    ('tea', ['biscuit'], 1)
    """

    def __init__(self, suggestions: Iterable[Suggestion] = (), unknown: Iterable[str] = ()) -> None:
        super().__init__(suggestions)
        self.unknown = list(unknown)

    @property
    def n_unknown(self) -> int:
        """How many of the given names the model does not know; they were left out."""
        return len(self.unknown)
