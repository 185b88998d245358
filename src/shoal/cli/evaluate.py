"""``shoal evaluate``: how well the clusters agree with known labels or owners."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options import ColumnFlags, Json, ModelFile, Quiet, Source, progress_bars, takes_flags


@takes_flags
def evaluate(
    model: ModelFile,
    source: Source,
    flags: ColumnFlags,
    bits: Annotated[bool, typer.Option("--bits", help="Variation of information in bits instead of nats.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Assign the rows of SOURCE and compare the clusters with a column of known labels, owners, or both.

    Example: shoal evaluate titles.shoal titles.parquet --label primary_cat
    """
    import numpy as np

    from shoal import load, metrics, read
    from shoal.cli.output import print_facts, print_json
    from shoal.errors import BadInput

    if flags.label is None and flags.owner is None:
        raise BadInput("nothing to compare with: give --label COLUMN, --owner COLUMN, or both.")
    with progress_bars(quiet):
        loaded = load(model)
        dataset = read(source, options=flags.options(recipe=loaded))
        labels, scores = loaded.assign(dataset)
    facts: dict[str, float] = {
        "items": len(dataset),
        "clusters": len(np.unique(labels[labels >= 0])),
        "unassigned": int((labels < 0).sum()),
    }
    if np.isfinite(scores).any():
        facts["mean_score"] = float(np.nanmean(scores))
    if flags.label is not None:
        unit = "bits" if bits else "nats"
        found = metrics.evaluate(dataset.labels, labels, base=unit)
        facts = {f"vi_{unit}" if name == "vi" else name: value for name, value in found.items()} | facts
    if flags.owner is not None:
        facts["owner_entropy"] = metrics.owner_entropy(dataset.owners, labels)
        facts["owner_information"] = metrics.owner_information(dataset.owners, labels)
        facts["effective_clusters"] = metrics.effective_number_of_clusters(labels)
    print_json(facts) if as_json else print_facts(facts)
