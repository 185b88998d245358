"""``shoal reproduce``: tables and figures of the papers, compared with the published values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Json, Quiet, progress_bars


class Which(StrEnum):
    """The papers."""

    all = "all"
    kmeans = "kmeans"
    bernoulli = "bernoulli"
    fastex = "fastex"
    tdpm = "tdpm"
    landscapes = "landscapes"


def reproduce(
    paper: Annotated[Which, typer.Argument(help="Paper to reproduce.")] = Which.all,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick/--full", help="Reduced sizes (five minutes on two cores), or the sizes of the papers (hours)."
        ),
    ] = True,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="A folder with real data: documents.*, ads.*, messages.*, and a folder auctions."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the page, the figures and the JSON.")] = Path(
        "shoal-reproduced"
    ),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the experiments of the five papers and compare the results with the published ones.

    Data are generated as each paper describes; the page lists the differences.

    Example: shoal reproduce tdpm --quick --out reproduced
    """
    from shoal.cli.output import print_json
    from shoal.reproduce import PAPERS, Size, run, write

    with progress_bars(quiet):
        papers = run(PAPERS if paper is Which.all else [paper.value], Size(quick, data))
        page = write(papers, out)
    if as_json:
        print_json([one.as_json() for one in papers])
        return
    for one in papers:
        print(f"{one.name:<11} {len(one.tables)} tables, {len(one.pictures)} pictures, {one.seconds:.0f} s")
    print(f"page: {page.resolve()}    (with results.json and pictures/)")
