"""``shoal report``: an HTML page about a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import ModelFile, Overwrite, Quiet, progress_bars


def report(
    model: ModelFile,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write it; MODEL.html otherwise.")] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write a self-contained HTML page about a saved MODEL: clusters, cards, plots. It opens without a network.

    Example: shoal report clicks.shoal --out clicks.html
    """
    from shoal import load
    from shoal.cli.output_files import check_outputs
    from shoal.report import write_report

    path = out or model.with_suffix(".html")
    check_outputs({"--report": path}, inputs=[model], overwrite=overwrite)
    with progress_bars(quiet):
        print(write_report(path, load(model), title=title or f"Clusters of {model.name}"))
