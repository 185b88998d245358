"""``shoal suggest``: what goes with these features."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import (
    ColumnFlags,
    Json,
    ModelFile,
    Overwrite,
    Quiet,
    TableOut,
    progress_bars,
    takes_flags,
)

if TYPE_CHECKING:
    from shoal.bernoulli import Suggestion


@takes_flags
def suggest(
    model: ModelFile,
    flags: ColumnFlags,
    observed: Annotated[list[str] | None, typer.Argument(metavar="[FEATURE]...", help="What is there already.")] = None,
    reject: Annotated[list[str] | None, typer.Option("--reject", "-r", help="What is not wanted; repeatable.")] = None,
    number: Annotated[int, typer.Option("--top", "--number", "-n", min=1, help="How many suggestions.")] = 10,
    file: Annotated[str | None, typer.Option("--file", help="A source of items: suggestions for each of them.")] = None,
    out: TableOut = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Suggest features that go with those given, each with its probability and the reason for it.

    With --file, for every item of a source: a table of item, rank, feature, probability.

    Example: shoal suggest ads.shoal "window cleaner" "window cleaning" --reject "cleaning tips"
    """
    from shoal import load
    from shoal.cli.output import print_json
    from shoal.cli.output_files import check_outputs, check_table_format
    from shoal.errors import BadInput

    if bool(observed) == bool(file):
        raise BadInput("give either features (shoal suggest MODEL FEATURE ...) or --file SOURCE.")
    if out is not None and not file:
        raise BadInput("--out is for the table of --file; the suggestions for a few features go to standard output.")
    check_table_format(out, json_lines=as_json)
    check_outputs({"--out": out}, inputs=[model, *([file] if file else [])], overwrite=overwrite)
    loaded = load(model)
    if not hasattr(loaded, "suggest"):
        raise BadInput(
            f"{model} holds a {type(loaded).__name__}, which does not suggest. Fit one that does: "
            "shoal fit ... --model bernoulli."
        )
    if file:
        with progress_bars(quiet):
            suggest_for_each(loaded, file, flags, reject or [], number, out, as_json=as_json)
        return
    suggestions = loaded.suggest(observed, rejected=reject or (), n=number)
    if as_json:
        print_json([asdict(suggestion) for suggestion in suggestions])
    else:
        print_suggestions(suggestions)


def suggest_for_each(
    model: Any, file: str, flags: ColumnFlags, reject: list[str], number: int, out: Any, *, as_json: bool
) -> None:
    """A batch of items at a time, so that memory does not grow with the file."""
    import numpy as np
    import scipy.sparse as sp

    from shoal import read_batches
    from shoal.cli.table_writer import open_table
    from shoal.progress import message

    columns = model.vocabulary_.columns(reject) if reject else None
    n_items = n_unknown = n_without = 0
    with open_table(out, json_lines=as_json) as writer:
        for batch in read_batches(file, options=flags.options(recipe=model), batch_rows=20_000):
            rejected = None
            if columns is not None:
                row = np.zeros(len(model.vocabulary_))
                row[columns] = 1.0
                rejected = sp.csr_matrix(np.ones((len(batch), 1))) @ sp.csr_matrix(row)
            writer.write(suggestion_table(batch, *model.suggest_batch(batch, rejected, number)))
            n_items += len(batch)
            n_unknown += batch.summary["unknown_features"]
            n_without += batch.summary["empty_rows"]
    message(f"{writer.n_rows:,} suggestions for {n_items:,} items")
    if n_unknown:
        message(f"{n_unknown:,} features of items are not in the vocabulary and were ignored")
    if n_without:
        message(f"{n_without:,} items have no feature that is known, and no suggestions")


def suggestion_table(batch: Any, features: Any, probabilities: Any) -> Any:
    """One row per suggestion; items without a known feature get none, as nothing speaks for them."""
    import numpy as np
    import pyarrow as pa

    is_one = (features >= 0) & (np.diff(batch.X.indptr) > 0)[:, None]
    rows, ranks = np.nonzero(is_one)
    return pa.table(
        {
            "item": pa.array(np.asarray(batch.ids)[rows]),
            "rank": ranks + 1,
            "feature": batch.vocabulary.strings.take(pa.array(features[is_one])).cast(pa.string()),
            "probability": probabilities[is_one].astype(np.float64),
        }
    )


def print_suggestions(suggestions: list[Suggestion]) -> None:
    """Probability, feature, and the cluster and given features that led to it."""
    from shoal.cli.output import shown

    names = [shown(suggestion.name) for suggestion in suggestions]
    width = max(map(len, names), default=0)
    for name, suggestion in zip(names, suggestions, strict=True):
        why = ""
        if suggestion.reasons:
            first = suggestion.reasons[0]
            led = f", led by {', '.join(first.because[:3])}" if first.because else ""
            why = shown(f"{first.share:.0%} from {first.name}{led}")
        print(f"{suggestion.probability:7.1%}  {name:<{width}}  {why}".rstrip())
