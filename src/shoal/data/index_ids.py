"""The index of a pandas table as names of its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from shoal.data.dataset import Dataset


def index_ids(source: Any) -> np.ndarray | None:
    """The index of a pandas table or Series as text, if it has a name or holds text; None if it only counts rows.

    >>> import pandas as pd
    >>> index_ids(pd.Series(["red fox", "red wine"], index=["d1", "d2"])).tolist()
    ['d1', 'd2']
    >>> index_ids(pd.Series(["red fox", "red wine"])) is None
    True
    """
    index: Any = getattr(source, "index", None)
    if type(source).__module__.split(".")[0] != "pandas" or not hasattr(index, "names"):
        return None
    is_text = index.nlevels == 1 and len(index) > 0 and all(isinstance(name, str) for name in index)
    if not is_text and all(name is None for name in index.names):
        return None
    parts = [", ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in index]
    ids = np.empty(len(parts), dtype=object)
    ids[:] = parts
    return ids


def named_by_index(dataset: Dataset, source: Any, *, title: str | None = None) -> Dataset:
    """The dataset with the index of its source for ids, where no column gave any; ``title``: the column asked for."""
    recipe = dataset.recipe
    if recipe.item is not None or recipe.shape in ("long", "matrix") or (ids := index_ids(source)) is None:
        return dataset
    if dataset.ids is not None:  # rows by their numbers, where some were left out
        ids = ids[dataset.ids.astype(np.int64)]
    if title is None and recipe.title is not None and recipe.title == recipe.text:
        return replace(dataset, ids=ids, titles=None, recipe=replace(recipe, title=None))
    return replace(dataset, ids=ids)
