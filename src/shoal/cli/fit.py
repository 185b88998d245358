"""``shoal fit``: from a file to a model."""

from __future__ import annotations

import time as clock
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.models import CHOICES, Model, build, settings_of
from shoal.cli.options import (
    Features,
    Item,
    Json,
    Label,
    Owner,
    Quiet,
    Rows,
    Source,
    Text,
    Time,
    Weight,
    watched,
)


def fit(
    source: Source,
    model: Annotated[Model, typer.Option("--model", "-m", help="Which model.")] = Model.kmeans,
    clusters: Annotated[int | None, typer.Option("--clusters", "-k", help="How many clusters.")] = None,
    item: Item = None,
    features: Features = None,
    text: Text = None,
    weight: Weight = None,
    time: Time = None,
    owner: Owner = None,
    label: Label = None,
    delimiter: Annotated[str | None, typer.Option(help="What separates features in a text column.")] = None,
    weighting: Annotated[str | None, typer.Option(help="binary, count or tfidf; else what the model wants.")] = None,
    min_items: Annotated[int, typer.Option(min=1, help="Drop features seen in fewer items.")] = 1,
    max_features: Annotated[int | None, typer.Option(min=1, help="Drop items with more features.")] = None,
    stop_words: Annotated[str | None, typer.Option(help="'english' drops its common words.")] = None,
    bigrams: Annotated[bool, typer.Option("--bigrams", help="Pairs of neighbouring words are features too.")] = False,
    seed: Annotated[int | None, typer.Option(help="Makes the answer repeatable.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="NAME=VALUE", help="Any other parameter of the model.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Save the model here.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report here.")] = None,
    rows: Rows = 20,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the rows of SOURCE, show the clusters, and save the model.

    Example: shoal fit clicks.parquet --model kmeans -k 500 --item id --features tags --out clicks.shoal
    """
    from shoal import read, save
    from shoal.cli.output import print_cards, print_facts, print_json
    from shoal.errors import Interrupted
    from shoal.progress import say
    from shoal.report import cluster_cards, write_report

    wanted: dict[str, Any] = {"random_state": seed} | settings_of(settings or [])
    if clusters is not None:
        wanted["n_clusters"] = clusters
    estimator = build(model, wanted)
    timings: dict[str, float] = {}
    with watched(quiet), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = clock.perf_counter()
        dataset = read(
            source,
            item=item,
            features=features,
            text=text,
            weight=weight,
            time=time,
            owner=owner,
            label=label,
            delimiter=delimiter,
            weighting=weighting or CHOICES[model].weighting,
            min_items=min_items,
            max_features=max_features,
            stop_words=stop_words,
            bigrams=bigrams,
        )
        timings["reading"] = clock.perf_counter() - began
        say(f"read {len(dataset):,} items x {dataset.X.shape[1]:,} features in {timings['reading']:.1f} s")
        began = clock.perf_counter()
        estimator.fit(dataset)  # type: ignore[attr-defined]
        timings["fitting"] = clock.perf_counter() - began
        if out is not None:
            began = clock.perf_counter()
            save(out, estimator, dataset=dataset)
            timings["saving"] = clock.perf_counter() - began
        cards = cluster_cards(estimator, dataset)
        if report is not None:
            write_report(report, estimator, dataset, title=f"Clusters of {source}", timings=timings)
        for warning in {str(w.message) for w in caught}:
            say(f"note: {warning}")

    facts = {
        "model": type(estimator).__name__,
        "items": len(dataset),
        "features": dataset.X.shape[1],
        "clusters": sum(card.size > 0 for card in cards),
        "mean_similarity": getattr(estimator, "mean_similarity_", None),
        "iterations": getattr(estimator, "n_iter_", None),
        "converged": getattr(estimator, "converged_", None),
        "empty_rows": dataset.summary.get("empty_rows"),
        **{f"seconds_{name}": round(seconds, 3) for name, seconds in timings.items()},
        "saved": str(out) if out else None,
        "report": str(report) if report else None,
    }
    facts = {name: value for name, value in facts.items() if value is not None}
    if as_json:
        print_json(facts)
    else:
        print_cards(cards, rows)
        print()
        print_facts(facts)
    if any(issubclass(w.category, Interrupted) for w in caught):
        raise typer.Exit(1)
