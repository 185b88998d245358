"""``shoal assign``: which cluster each new row belongs to."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options import (
    ColumnFlags,
    Json,
    ModelFile,
    Overwrite,
    Quiet,
    Source,
    TableOut,
    progress_bars,
    takes_flags,
)


@takes_flags
def assign(
    model: ModelFile,
    source: Source,
    flags: ColumnFlags,
    top: Annotated[
        int, typer.Option("--top", min=1, help="Number of most probable clusters per row, with probabilities.")
    ] = 1,
    out: TableOut = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Assign each row of SOURCE to a cluster of MODEL, and give how well it fits.

    Columns: item, cluster (-1: unassigned), score. Features the model does not know are ignored and counted; a row
    without any known feature is unassigned.

    Example: shoal assign clicks.shoal new.parquet --out assigned.csv
    """
    from shoal import load, read
    from shoal.cli.output_files import check_outputs, check_table_format
    from shoal.cli.table_writer import open_table
    from shoal.progress import message

    check_table_format(out, json_lines=as_json)
    check_outputs({"--out": out}, inputs=[model, source], overwrite=overwrite)
    with progress_bars(quiet):
        loaded = load(model)
        dataset = read(source, options=flags.options(recipe=loaded))
        table, n_unassigned = assignments(loaded, dataset, top)
        with open_table(out, json_lines=as_json) as writer:
            writer.write(table)
        message(
            f"assigned {len(dataset):,} items" + (f", {n_unassigned:,} of them unassigned (-1)" if n_unassigned else "")
        )


def assignments(model: object, dataset: object, top: int) -> tuple[object, int]:
    """Item, cluster and score as an Arrow table, and how many items are unassigned."""
    import numpy as np
    import pyarrow as pa

    ids = np.arange(len(dataset)) if dataset.ids is None else dataset.ids  # type: ignore[arg-type,attr-defined]
    lengths = np.diff(dataset.X.indptr)  # type: ignore[attr-defined]
    recipe = dataset.recipe  # type: ignore[attr-defined]
    # Of words and tags, a row without any says nothing. Of numbers, a row of zeros is a row like any other.
    empty = lengths == 0 if recipe.shape not in ("numeric", "matrix") else np.zeros(lengths.size, dtype=bool)
    if top > 1:
        found = model.memberships(dataset, top=top)  # type: ignore[attr-defined]
        counts = np.where(empty, 0, np.diff(found.indptr))
        rows = np.repeat(np.arange(lengths.size), np.diff(found.indptr))
        order = np.lexsort((-found.data, rows))
        order = order[~empty[rows[order]]]
        labels, scores = model.cluster_ids_[found.indices[order]], found.data[order]  # type: ignore[attr-defined]
        rows = rows[order]
        alone = np.flatnonzero(counts == 0)
        place = np.argsort(np.concatenate([rows, alone]), kind="stable")
        labels = np.concatenate([labels, np.full(alone.size, -1)])[place]
        scores = np.concatenate([scores, np.full(alone.size, np.nan)])[place]
        ids, n_unassigned = np.asarray(ids)[np.concatenate([rows, alone])[place]], int(alone.size)
    else:
        labels, scores = model.assign(dataset)  # type: ignore[attr-defined]
        labels, scores = np.where(empty, -1, labels), np.where(empty, np.nan, scores.astype(np.float64))
        n_unassigned = int((labels == -1).sum())
    score = pa.array(scores.astype(np.float64), from_pandas=True)  # no score is no value, not the text "nan"
    return pa.table({"item": pa.array(ids), "cluster": labels, "score": score}), n_unassigned
