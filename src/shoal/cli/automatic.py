"""``--model auto``: the model that suits a table, and the family of a mixture that suits its columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.cli.models import Model
from shoal.data.source_facts import inspect_columns, inspect_source
from shoal.errors import MissingColumn

if TYPE_CHECKING:
    from shoal.data import ReadOptions
    from shoal.data.mixed_columns import ColumnFacts
    from shoal.data.source_facts import SourceFacts

LARGEST_MEAN_COUNT, DISPERSION = 20.0, (0.5, 3.0)  # of counts of events; larger ones are measured like numbers


@dataclass
class AutomaticChoice:
    """A model with its settings, and why."""

    model: Model
    reason: str
    settings: dict[str, Any] = field(default_factory=dict)
    numeric: bool = False
    time: str | None = None


def choose_model(source: str, options: ReadOptions) -> AutomaticChoice:
    """By what describes a row: words, words with times, a set of features, counts, measurements, or mixed columns."""
    mixed = None
    try:
        facts = inspect_source(source, options)
    except MissingColumn:
        mixed = mixed_table(source, options)
        if mixed is None:
            raise
        return mixed
    recipe = facts.recipe
    column = repr(recipe.features or recipe.text)
    if recipe.shape == "numeric":
        return choose_for_numbers(source, options, facts)
    if recipe.shape == "text" and options.text is None:
        mixed = mixed_table(source, options, guessed=recipe.text)
    if mixed is not None:
        return mixed
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


def choose_for_numbers(source: str, options: ReadOptions, facts: SourceFacts) -> AutomaticChoice:
    """A mixture, of a table if there are gaps or other columns than those of numbers."""
    if not options.numeric and (mixed := mixed_table(source, options)) is not None:
        return mixed
    family, why = family_of_numbers(source, options)
    n_columns = len(facts.recipe.numeric or facts.numbers)
    what = "measurements" if family == "gaussian" else "numbers"
    reason = f"the rows are {what} ({n_columns:,} columns of numbers), family={family}: {why}"
    return AutomaticChoice(Model.mixture, reason, {"family": family}, numeric=True)


def mixed_table(source: str, options: ReadOptions, guessed: str | None = None) -> AutomaticChoice | None:
    """A mixture of mixed columns, if several columns describe a row and not all are numbers without gaps.

    ``guessed``: a column that was taken for text; if it holds sentences, or another text in every row, it is.
    """
    columns = [one for one in inspect_columns(source, options) if not one.tells_rows_apart]
    useful = [one for one in columns if one.n_known and one.kind in ("number", "text", "time")]
    if guessed is not None and not any(one.name == guessed and not one.is_sentences for one in useful):
        return None
    kinds = {kind: sum(one.kind == kind for one in useful) for kind in ("number", "text", "time")}
    n_gaps = sum(one.n_rows - one.n_known for one in useful)
    if len(useful) < 2 or not (kinds["text"] or (n_gaps and kinds["number"])):
        return None
    if not any(one.n_known > 2 * one.n_distinct for one in useful if one.kind == "text") and not kinds["number"]:
        return None
    words = {"number": "of numbers", "text": "of categories or text", "time": "of dates"}
    parts = [f"{n:,} {words[kind]}" for kind, n in kinds.items() if n]
    reason = f"the rows have mixed columns ({', '.join(parts)}; {n_gaps:,} values missing), family=mixed"
    return AutomaticChoice(Model.mixture, reason, {"family": "mixed"})


def family_of_numbers(source: str, options: ReadOptions) -> tuple[str, str]:
    """The family of a mixture for columns of numbers, and why: counts only where they plainly are."""
    columns = [one for one in inspect_columns(source, options) if one.kind == "number"]
    if any(one.n_known < one.n_rows for one in columns):
        return "mixed", "some values are missing"
    if not all(one.is_whole and one.least >= 0 for one in columns):
        return "gaussian", "some values are fractions or negative"
    if columns and all(one.most <= 1 for one in columns):
        return "bernoulli", "all values are 0 or 1"
    n_cells = sum(one.n_rows for one in columns)
    if 2 * sum(one.n_zero for one in columns) >= n_cells > 0:
        return "multinomial", "all values are whole, and most are 0, as in counts of words"
    if columns and all(is_count(one) for one in columns):
        return "poisson", "all values are small and whole, and vary as counts of events do"
    return "gaussian", "the values are not plainly counts"


def is_count(column: ColumnFacts) -> bool:
    """Whether numbers that are whole and 0 or more vary as counts of events do."""
    if not 0 < column.mean <= LARGEST_MEAN_COUNT:
        return False
    return DISPERSION[0] <= column.variance / column.mean <= DISPERSION[1]


def columns_of_numbers(source: str, options: ReadOptions) -> list[str]:
    """Their names, gaps or not."""
    return [one.name for one in inspect_columns(source, options) if one.kind == "number"]
