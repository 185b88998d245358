"""``--model auto``: the model that suits a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.cli.models import Model

if TYPE_CHECKING:
    from shoal.data import ReadOptions


@dataclass
class AutomaticChoice:
    """A model with its settings, and why."""

    model: Model
    reason: str
    settings: dict[str, Any] = field(default_factory=dict)
    numeric: bool = False
    time: str | None = None


def choose_model(source: str, options: ReadOptions) -> AutomaticChoice:
    """By what describes a row: words, words with times, a set of features, counts, or measurements."""
    from shoal.data.source_facts import inspect_source

    facts = inspect_source(source, options)
    recipe = facts.recipe
    column = repr(recipe.features or recipe.text)
    if recipe.shape == "numeric":
        reason = f"the rows are measurements ({len(recipe.numeric or facts.numbers):,} columns of numbers)"
        return AutomaticChoice(Model.mixture, reason, {"family": "gaussian"}, numeric=True)
    if recipe.shape == "text" and facts.time is not None:
        reason = f"the rows are texts (column {column}) with times (column {facts.time!r})"
        return AutomaticChoice(Model.stream, reason, time=facts.time)
    if recipe.shape == "text":
        return AutomaticChoice(Model.kmeans, f"the rows are texts (column {column})")
    if recipe.weight is not None:
        return AutomaticChoice(
            Model.mixture, f"the rows are features with counts or weights (column {recipe.weight!r})"
        )
    if recipe.shape == "matrix":
        return AutomaticChoice(Model.kmeans, "the rows are those of a matrix")
    return AutomaticChoice(Model.bernoulli, f"each row is a set of features (column {column})")
