"""The distributions a column of a table can have, by the names that users give them. Nothing else knows the list."""

from shoal.families.distributions.columns.base import Column, Imputed
from shoal.families.distributions.columns.categories import CategoryColumn, SetsColumn, WordsColumn
from shoal.families.distributions.columns.counts import CountColumn
from shoal.families.distributions.columns.numbers import DateColumn, LogNormalColumn, NumberColumn
from shoal.families.distributions.columns.proportions import ProportionsColumn
from shoal.families.distributions.columns.vectors import FullColumn, TiedColumn

COLUMNS: dict[str, type[Column]] = {
    column.family: column
    for column in (
        NumberColumn, LogNormalColumn, DateColumn, CountColumn, CategoryColumn, ProportionsColumn, FullColumn,
        TiedColumn, WordsColumn, SetsColumn,
    )
}  # fmt: skip

__all__ = ["COLUMNS", "Column", "Imputed"]
