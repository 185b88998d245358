"""``shoal assign``: which cluster each new row belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Features, Item, Json, ModelFile, Quiet, Source, Text, Weight, given, watched


def assign(
    model: ModelFile,
    source: Source,
    item: Item = None,
    features: Features = None,
    text: Text = None,
    weight: Weight = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A .csv, .jsonl or .parquet file; standard output otherwise.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say for each row of SOURCE which cluster of MODEL it belongs to, and how well it fits.

    Columns: item, cluster (-1 belongs nowhere), score. Features the model has never seen are ignored and counted.

    Example: shoal assign clicks.shoal new.parquet --out assigned.csv
    """
    import numpy as np
    import pyarrow as pa

    from shoal import load, read
    from shoal.cli.tables import write_table
    from shoal.progress import say

    with watched(quiet):
        loaded = load(model)
        columns = given(item=item, features=features, text=text, weight=weight)
        dataset = read(source, recipe=loaded, **columns)
        unknown = dataset.summary.get("unknown_features", 0)
        if unknown:
            say(f"{unknown:,} features are not in the model's vocabulary and were ignored")
        labels, scores = loaded.assign(dataset)
        ids = dataset.ids if dataset.ids is not None else np.arange(len(dataset))
        table = pa.table({"item": pa.array(ids), "cluster": labels, "score": scores.astype(np.float64)})
        write_table(table, out, json_lines=as_json)
        nowhere = int((labels == -1).sum())
        say(f"assigned {len(dataset):,} items" + (f", {nowhere:,} of them nowhere" if nowhere else ""))
