"""A part of a source, written to a file: for trials that say what the whole will cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.data.batches import read_batches
from shoal.data.matrix_source import Matrix
from shoal.data.read_options import ReadOptions, ReadPlan
from shoal.data.reading import choose
from shoal.data.recipe import Recipe
from shoal.data.sources import opened
from shoal.data.sql import literal, quoted
from shoal.progress import task


class Size(NamedTuple):
    """How much a source holds, read in a certain way."""

    items: int
    features: int
    non_zeros: int


def size_of(source: Any, options: ReadOptions) -> Size:
    """Count without keeping: memory is that of a batch and the vocabulary."""
    items = features = non_zeros = 0
    with task("counting") as counting:
        for batch in read_batches(source, batch_rows=50_000, memory_mb=250, options=options):
            items, non_zeros, features = items + len(batch), non_zeros + batch.X.nnz, batch.X.shape[1]
            counting.advance(len(batch), rows=items)
    return Size(items, features, non_zeros)


def write_samples(source: Any, options: ReadOptions, paths: dict[Path, float]) -> Recipe:
    """To each path write a random share of the items, as Parquet (or .npz for a matrix); how the source is read."""
    plan = ReadPlan.of(options)
    with opened(source, options) as table:
        if isinstance(table, Matrix):
            for path, share in paths.items():
                chosen = np.random.default_rng(0).random(table.X.shape[0]) < share
                sp.save_npz(path, table.X[chosen])
            return Recipe(shape="matrix")
        recipe = choose(table, plan).recipe
        for path, share in paths.items():
            # Of a long table whole items are taken, since an item's rows belong together.
            key = (
                f"hash(CAST({quoted(recipe.item)} AS VARCHAR))"
                if recipe.shape == "long" and recipe.item
                else "random()"
            )
            test = f"{key} < {share}" if key == "random()" else f"{key} % 1000000 < {round(share * 1_000_000)}"
            query = f"SELECT * FROM ({table.query}) WHERE {test}"
            table.run_statement(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet)")
        return recipe
