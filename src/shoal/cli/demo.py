"""``shoal demo``: the main job, on the sample that comes with the package."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Quiet, progress_bars


class Job(StrEnum):
    """What there is to try."""

    clusters = "clusters"
    auction = "auction"


def demo(
    job: Annotated[
        Job, typer.Argument(help="clusters of a sample data set, or reserve prices of a simulated market.")
    ] = (Job.clusters),
    out: Annotated[Path, typer.Option("--out", "-o", help="Output folder.")] = Path("shoal-demo"),
    quiet: Quiet = False,
) -> None:
    """Run shoal on sample data: clusters and suggestions, or an auction study, with a report.

    Example: shoal demo --out shoal-demo
    """
    from shoal.cli.output_files import make_folder

    make_folder(out)
    if job is Job.auction:
        from shoal.cli.auction import demo as auction_demo

        auction_demo(out, quiet=quiet)
    else:
        cluster_packages(out, quiet=quiet)


def cluster_packages(out: Path, *, quiet: bool) -> None:
    """Debian's packages by their tags: clusters, what goes with what, a model and a report."""
    from time import perf_counter

    from shoal import BernoulliMixture, cluster_cards, datasets, save
    from shoal.cli.output import print_cards
    from shoal.cli.suggest import print_suggestions
    from shoal.report import write_report

    timings = {}
    with progress_bars(quiet):
        began = perf_counter()
        dataset = datasets.load_debian_packages()
        timings["reading"] = perf_counter() - began
        began = perf_counter()
        model = BernoulliMixture(100, random_state=0).fit(dataset)
        timings["fitting"] = perf_counter() - began
        saved = out / "debian.shoal"
        save(saved, model, dataset=dataset)
        title = "Debian packages by their tags"
        page = write_report(out / "report.html", model, dataset, title=title, timings=timings)
        cards = cluster_cards(model, dataset)
    print_cards(cards, 25, caption=f"{len(dataset):,} Debian packages in {len(cards)} clusters, the largest first")
    observed = ["use::gameplaying", "interface::text-mode"]
    print(f"\nWhat goes with {' and '.join(observed)}:")
    print_suggestions(model.suggest(observed, n=6))
    print(f"\nmodel:   {saved}    (look around: shoal show {saved} --cluster {cards[0].id})")
    print(f"         shoal suggest {saved} {' '.join(observed)} --reject role::program")
    print(f"report:  {page.resolve()}    (opens in any browser, no network needed)")
