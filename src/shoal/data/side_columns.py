"""The columns that are not features: ids, times, owners, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.data.arrow import objects
from shoal.data.layout import Layout
from shoal.data.recipe import Recipe
from shoal.data.times import Times

if TYPE_CHECKING:
    import pyarrow as pa


TEXTS = ("item", "owner", "label", "title")
LONGEST_TITLE = 100  # characters: a title stands for a text, it does not repeat it


class SideColumns:
    """Collects them batch by batch."""

    def __init__(self, recipe: Recipe, layout: Layout, first_row: int = 0) -> None:
        self.layout = layout
        self.texts: dict[str, list[Any]] = {role: [] for role in TEXTS if role in layout.place}
        self.times = Times(recipe.time, recipe.time_unit, recipe.time_format) if recipe.time is not None else None
        self.n_rows = first_row  # for messages that name a row

    def add(self, batch: pa.RecordBatch, chosen: np.ndarray | None = None) -> None:
        """Take a batch's values, or those of its ``chosen`` rows."""
        if self.times is not None:
            self.times.refuse_unreadable(self.layout.column(batch, "time", "b"), self.n_rows)
            moments, numbers = (self.layout.column(batch, "time", letter) for letter in "cn")
            if chosen is not None:
                moments, numbers = moments.take(chosen), numbers.take(chosen)
            self.times.add(moments, numbers)
        for role, parts in self.texts.items():
            column = self.layout.column(batch, role)
            column = column if chosen is None else column.take(chosen)
            parts.append(_shortened(column) if role == "title" else column)
        self.n_rows += batch.num_rows

    def text(self, role: str) -> np.ndarray | None:
        """A column as an array of str, None where null; or None if it was not asked for."""
        import pyarrow as pa

        if role not in self.texts:
            return None
        return objects(pa.chunked_array(self.texts[role], pa.string()))

    def seconds(self) -> np.ndarray | None:
        return None if self.times is None else self.times.seconds()


def _shortened(column: pa.Array) -> pa.Array:
    """The beginning of each text, on one line."""
    import pyarrow.compute as pc

    flat = pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_slice_codeunits(column, 0, 400), r"\s+", " "))
    start = pc.utf8_slice_codeunits(flat, 0, LONGEST_TITLE)
    return pc.if_else(
        pc.greater(pc.utf8_length(flat), LONGEST_TITLE), pc.binary_join_element_wise(start, "…", ""), start
    )
