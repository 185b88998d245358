"""Options that several commands share, each named once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="Parquet, CSV, TSV, JSON lines, .npz or svmlight file, a glob, a SELECT, or - for stdin."
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that 'shoal fit' saved.")]
Item = Annotated[str | None, typer.Option("--item", help="Column that names the item.", rich_help_panel="Columns")]
Features = Annotated[
    str | None, typer.Option("--features", help="Column with the features: a list, or text with a delimiter.")
]
Text = Annotated[str | None, typer.Option("--text", help="Column with text to cut into words.")]
Weight = Annotated[str | None, typer.Option("--weight", help="Column with weights (long tables).")]
Time = Annotated[str | None, typer.Option("--time", help="Column with the time: ISO, epoch seconds or milliseconds.")]
Owner = Annotated[str | None, typer.Option("--owner", help="Column with the owner of the item.")]
Label = Annotated[str | None, typer.Option("--label", help="Column with known labels.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Rows = Annotated[int, typer.Option("--rows", "-n", min=1, help="How many clusters to print.")]


@contextmanager
def watched(quiet: bool) -> Iterator[None]:
    """Progress on standard error for the work inside, unless ``quiet``."""
    from shoal import progress

    with nullcontext() if quiet else progress.shown():
        yield


def given(**options: Any) -> dict[str, Any]:
    """The options that the user did give.

    >>> given(item="id", text=None)
    {'item': 'id'}
    """
    return {name: value for name, value in options.items() if value is not None}
