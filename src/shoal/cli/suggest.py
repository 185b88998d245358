"""``shoal suggest``: what goes with these features."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
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
    from shoal.suggestion_records import Suggestion


@takes_flags
def suggest(
    model: ModelFile,
    flags: ColumnFlags,
    observed: Annotated[list[str] | None, typer.Argument(metavar="[FEATURE]...", help="Features of the item.")] = None,
    reject: Annotated[
        list[str] | None, typer.Option("--reject", "-r", help="Feature to exclude (may be repeated).")
    ] = None,
    number: Annotated[int, typer.Option("--top", "--number", "-n", min=1, help="Number of suggestions.")] = 10,
    hidden: Annotated[
        str,
        typer.Option(help="Assumed number of missing features: third, one, a share, or a number."),
    ] = "third",
    file: Annotated[str | None, typer.Option("--file", help="Source of items; suggest features for each.")] = None,
    reasons: Annotated[
        bool, typer.Option(help="With --file: include the main reason of each suggestion (slower).")
    ] = True,
    out: TableOut = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Suggest features for an item, each with its probability and the reason.

    With --file, write a table of item, rank, feature, probability and reason for all items of a source.

    Example: shoal suggest ads.shoal "window cleaner" "window cleaning" --reject "cleaning tips"
    """
    from shoal import load
    from shoal.cli.output import print_json
    from shoal.cli.output_files import check_outputs, check_table_format
    from shoal.errors import BadInput
    from shoal.progress import message

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
            "shoal fit ... --model bernoulli, or --model suggester."
        )
    amount = hidden_amount(hidden)
    if file:
        asked = Asked(loaded, reject or [], number, amount, reasons)
        with progress_bars(quiet):
            suggest_for_each(asked, file, flags, out, as_json=as_json)
        return
    with progress_bars(quiet):
        suggestions = loaded.suggest(observed, rejected=reject or (), n=number, hidden=amount)
        if suggestions.unknown:
            message(f"the model does not know {', '.join(map(repr, suggestions.unknown))}: left out")
    if as_json:
        print_json([asdict(suggestion) for suggestion in suggestions])
    else:
        print_suggestions(suggestions)


@dataclass(frozen=True)
class Asked:
    """A model, and what is asked of it for every item."""

    model: Any
    rejected: list[str]
    n: int
    hidden: str | float
    reasons: bool

    def table(self, batch: Any) -> Any:
        """One row per suggestion; items without a known feature get none, as nothing speaks for them."""
        import numpy as np
        import pyarrow as pa

        features, probabilities, reasons = self._with_reasons(batch) if self.reasons else self._alone(batch)
        is_one = (features >= 0) & (np.diff(batch.X.indptr) > 0)[:, None]
        rows, ranks = np.nonzero(is_one)
        columns = {
            "item": pa.array(np.asarray(batch.ids)[rows]),
            "rank": ranks + 1,
            "feature": batch.vocabulary.strings.take(pa.array(features[is_one])).cast(pa.string()),
            "probability": probabilities[is_one].astype(np.float64),
        }
        return pa.table(columns if reasons is None else columns | {"reason": pa.array(reasons, pa.string())})

    def _alone(self, batch: Any) -> tuple[Any, Any, None]:
        import numpy as np
        import scipy.sparse as sp

        rejected = None
        if self.rejected:
            row = np.zeros(len(self.model.vocabulary_))
            row[self.model.vocabulary_.columns(self.rejected)] = 1.0
            rejected = sp.csr_matrix(np.ones((len(batch), 1))) @ sp.csr_matrix(row)
            rejected = rejected - rejected.multiply(batch.X > 0)  # an item may have what is rejected
        return *self.model.suggest_batch(batch, rejected, self.n, hidden=self.hidden), None

    def _with_reasons(self, batch: Any) -> tuple[Any, Any, list[str]]:
        import numpy as np

        refused = self.model.vocabulary_.columns(self.rejected)
        features = np.full((len(batch), self.n), -1, dtype=np.int64)
        probabilities, reasons = np.zeros(features.shape), []
        for row, (start, end) in enumerate(pairwise(batch.X.indptr)):
            if start == end:
                continue
            given = batch.X.indices[start:end]
            found = self.model.suggest(given, np.setdiff1d(refused, given), self.n, hidden=self.hidden)
            features[row, : len(found)] = [suggestion.feature for suggestion in found]
            probabilities[row, : len(found)] = [suggestion.probability for suggestion in found]
            reasons += [main_reason(suggestion) for suggestion in found]
        return features, probabilities, reasons


def suggest_for_each(asked: Asked, file: str, flags: ColumnFlags, out: Any, *, as_json: bool) -> None:
    """A batch of items at a time, so that memory does not grow with the file."""
    from shoal import read_batches
    from shoal.cli.table_writer import open_table
    from shoal.progress import message

    n_items = n_unknown = n_without = 0
    with open_table(out, json_lines=as_json) as writer:
        for batch in read_batches(file, options=flags.options(recipe=asked.model), batch_rows=20_000):
            writer.write(asked.table(batch))
            n_items += len(batch)
            n_unknown += batch.summary["unknown_features"]
            n_without += batch.summary["empty_rows"]
    message(f"{writer.n_rows:,} suggestions for {n_items:,} items")
    if n_unknown:
        message(f"{n_unknown:,} features of items are not in the vocabulary and were ignored")
    if n_without:
        message(f"{n_without:,} items have no feature that is known, and no suggestions")


def hidden_amount(text: str) -> str | float:
    """``--hidden`` as the models take it; they refuse what is none."""
    try:
        return float(text)
    except ValueError:
        return text


def main_reason(suggestion: Suggestion) -> str:
    """The largest part of the probability, and what led there."""
    if not suggestion.reasons:
        return ""
    first = max(suggestion.reasons, key=lambda reason: reason.share)
    led = f", led by {', '.join(first.because[:3])}" if first.because and first.because != [first.name] else ""
    return f"{first.share:.0%} from {first.name}{led}"


def print_suggestions(suggestions: list[Suggestion]) -> None:
    """Probability, feature, and the main reason."""
    from shoal.cli.output import shown

    names = [shown(suggestion.name) for suggestion in suggestions]
    width = max(map(len, names), default=0)
    for name, suggestion in zip(names, suggestions, strict=True):
        print(f"{suggestion.probability:7.1%}  {name:<{width}}  {shown(main_reason(suggestion))}".rstrip())
