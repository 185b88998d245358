"""``shoal demo``: the main job, on the sample that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Quiet, watched


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model and the report.")] = Path("shoal-demo"),
    clusters: Annotated[int, typer.Option("--clusters", "-k", min=1, help="How many clusters.")] = 60,
    quiet: Quiet = False,
) -> None:
    """Cluster the shipped sample (Debian packages by their tags), show the clusters, write a model and a report.

    Example: shoal demo --out shoal-demo
    """
    from time import perf_counter

    from shoal import SphericalKMeans, cluster_cards, datasets, read, save
    from shoal.cli.output import print_cards
    from shoal.report import write_report

    timings = {}
    with watched(quiet):
        began = perf_counter()
        dataset = read(
            datasets.sample_path(),
            item="package",
            features="tags",
            owner="maintainer",
            label="section",
            weighting="tfidf",
        )
        timings["reading"] = perf_counter() - began
        began = perf_counter()
        model = SphericalKMeans(clusters, random_state=0).fit(dataset)
        timings["fitting"] = perf_counter() - began
        out.mkdir(parents=True, exist_ok=True)
        saved = out / "debian.shoal"
        save(saved, model, dataset=dataset)
        title = "Debian packages by their tags"
        page = write_report(out / "report.html", model, dataset, title=title, timings=timings)
        cards = cluster_cards(model, dataset)
    print_cards(cards, 25, says=f"{len(dataset):,} Debian packages in {clusters} clusters, the largest first")
    print(f"\nmodel:   {saved}    (look around: shoal show {saved} --cluster {cards[0].id})")
    print(f"report:  {page.resolve()}    (opens in any browser, no network needed)")
