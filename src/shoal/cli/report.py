"""``shoal report``: an HTML page about a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import ModelFile, Overwrite, Quiet, progress_bars


def report(
    model: ModelFile,
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="The rows it was fitted on, for their times and titles.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write it; MODEL.html otherwise.")] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write a self-contained HTML page about a saved MODEL: a map, cards, plots. It opens without a network.

    Example: shoal report clicks.shoal --out clicks.html
    """
    from shoal import load, read
    from shoal.cli.output_files import check_outputs
    from shoal.report import write_report

    path = out or model.with_suffix(".html")
    inputs: list[str | Path] = [model] if source is None else [model, source]
    check_outputs({"--report": path}, inputs=inputs, overwrite=overwrite)
    with progress_bars(quiet):
        loaded = load(model)
        dataset = None if source is None else read(source, recipe=loaded)
        print(write_report(path, loaded, dataset, title=title or f"Clusters of {model.name}"))
