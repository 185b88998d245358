"""``shoal learn``: update a saved model with new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.options import ColumnFlags, Json, ModelFile, ModelOut, Quiet, Source, progress_bars, takes_flags


@takes_flags
def learn(
    model: ModelFile,
    source: Source,
    flags: ColumnFlags,
    batch_rows: Annotated[int, typer.Option("--batch-rows", min=1, help="Rows per batch.")] = (50_000),
    out: ModelOut = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Update a saved MODEL with the rows of SOURCE, in batches; new features are added.

    MODEL is replaced when all rows have been learned, and is unchanged if that fails.

    Example: shoal learn clicks.shoal today.parquet
    """
    from shoal import load, save
    from shoal.cli.lock import locked
    from shoal.cli.output import print_facts, print_json
    from shoal.cli.output_files import check_outputs

    check_outputs({"--out": out or model}, inputs=[source], overwrite=out is None)
    with progress_bars(quiet), locked(model):
        loaded = load(model)
        learned = learn_batches(loaded, source, flags, batch_rows, model)
        save(out or model, loaded, dataset=learned.pop("last"))
    facts = {"model": type(loaded).__name__, **learned, "saved": str(out or model)}
    print_json(facts) if as_json else print_facts(facts)


def learn_batches(model: Any, source: str, flags: ColumnFlags, batch_rows: int, path: Path) -> dict[str, Any]:
    """``partial_fit`` on one batch after another; what was learned, and the last batch."""
    from shoal import read_batches
    from shoal.errors import BadInput

    if not hasattr(model, "partial_fit"):
        raise BadInput(f"{path} holds a {type(model).__name__}, which cannot learn more rows. Fit it on all of them.")
    before = len(model.vocabulary_) if hasattr(model, "vocabulary_") else 0
    options = flags.options(recipe=model)
    facts: dict[str, Any] = {"items": 0, "new_features": 0, "last": None}
    for batch in read_batches(source, batch_rows=batch_rows, grow=True, options=options):
        model.partial_fit(batch)
        facts["items"] += len(batch)
        facts |= {"new_features": len(batch.vocabulary) - before, "last": batch}
    facts["features"] = before + facts["new_features"]
    facts["clusters"] = len(model.cluster_ids_)
    return facts
