"""``shoal plan``: what a fit will need, before it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.fit import automatic_model, drop_unset, reading_options
from shoal.cli.models import Model, build, settings_of
from shoal.cli.options import Json, Quiet, ReadFlags, Source, progress_bars, takes_flags
from shoal.errors import BadInput

if TYPE_CHECKING:
    from shoal.data import ReadOptions, Recipe
    from shoal.data.sampling import Size

SMALL_ROWS = 20_000  # a source of no more items is fitted whole
SHARES = (0.08, 0.2)  # of the items, for two trials of a larger one
MOST_TRIAL_ROWS = 150_000
BYTES_PER_CELL = 50  # of a matrix while it is read, weighted and fitted


@takes_flags
def plan(
    source: Source,
    flags: ReadFlags,
    model: Annotated[Model, typer.Option("--model", "-m", help="Model.")] = Model.kmeans,
    clusters: Annotated[int | None, typer.Option("--clusters", "-k", min=1, help="Number of clusters.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="NAME=VALUE", help="Any other parameter of the model.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the memory and time that 'shoal fit' needs with the same options.

    Items are counted in one pass, two small samples are fitted, and their costs are extrapolated. A source of 20,000
    items or fewer is fitted completely.

    Example: shoal plan clicks.parquet --model kmeans -k 500 --item id --features tags
    """
    from shoal.cli.output import print_facts, print_json
    from shoal.cli.source import rereadable

    wanted = drop_unset(n_clusters=clusters) | settings_of(settings or [])
    with progress_bars(quiet), rereadable(source) as again:
        if model is Model.auto:
            model, more = automatic_model(again, flags)
            settings = [f"{name}={value}" for name, value in more.items()] + (settings or [])
            wanted = more | wanted
        build(model, wanted)
        facts = needs(
            again, reading_options(model, flags, wanted, again), flags, fit_arguments(model, clusters, settings or [])
        )
    print_json(facts) if as_json else print_facts(facts)


def fit_arguments(model: Model, clusters: int | None, settings: list[str]) -> list[str]:
    arguments = ["--model", str(model)]
    if clusters is not None:
        arguments += ["--clusters", str(clusters)]
    return arguments + [part for text in settings for part in ("--set", text)]


def needs(source: str, options: ReadOptions, flags: ReadFlags, arguments: list[str]) -> dict[str, Any]:
    """Items, features, non-zeros, memory and seconds of a fit."""
    from shoal.data.sampling import size_of

    size = size_of(source, options)
    facts: dict[str, Any] = size._asdict()
    trials = run_trials(source, options, flags, arguments, shares_for(size))
    facts |= {"seconds": extrapolated(trials, "seconds", size), "peak_mb": peak_of(trials, size)}
    available = available_mb()
    if available is not None:
        facts["available_mb"] = available
        if facts["peak_mb"] > available:
            facts["advice"] = "this is more than there is: fit with --batch-rows, or fewer clusters"
    return facts | {"trials": ", ".join(f"{trial['items']:,}" for trial in trials) + " items"}


def shares_for(size: Size) -> tuple[float, ...]:
    """One trial of everything, or two of parts."""
    if size.items <= SMALL_ROWS:
        return (1.0,)
    least = min(0.5 * SMALL_ROWS / size.items, 0.4)  # so few items that a second size says something
    most = MOST_TRIAL_ROWS / size.items
    return tuple(min(max(share, least * (at + 1)), most * (at + 1) / len(SHARES)) for at, share in enumerate(SHARES))


def run_trials(
    source: str, options: ReadOptions, flags: ReadFlags, arguments: list[str], shares: tuple[float, ...]
) -> list[dict[str, float]]:
    """``shoal fit`` on samples, each in a process of its own, whose peak memory is then its own too."""
    from shoal.data.sampling import write_samples
    from shoal.progress import task

    with tempfile.TemporaryDirectory(prefix="shoal-") as folder, task("trials", 2 * len(shares) - 1) as trying:
        suffix = ".npz" if source.endswith((".npz", ".svm", ".svmlight", ".libsvm")) else ".parquet"
        paths = {Path(folder, f"{number}{suffix}"): share for number, share in enumerate(shares)}
        recipe = write_samples(source, options, paths)
        trials: list[dict[str, float]] = []
        # The first run may have to compile, which takes memory and time of its own: it is made twice, for two trials.
        for path in [*list(paths)[: len(paths) - 1], *paths]:
            command = [str(path), *arguments, *flag_arguments(flags, recipe), "--out", f"{path}.shoal"]
            trials.append(one_trial(command))
            trying.advance()
        return trials[-len(shares) :]


def one_trial(arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "shoal", "fit", *arguments, "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "utf-8"})
    if done.returncode:
        raise BadInput(f"a trial fit of a sample failed: {done.stderr.strip().removeprefix('shoal: ')}")
    facts = json.loads(done.stdout)
    seconds = sum(value for name, value in facts.items() if name.startswith("seconds_"))
    return {name: facts[name] for name in ("items", "features", "peak_mb")} | {"seconds": seconds}


def flag_arguments(flags: ReadFlags, recipe: Recipe) -> list[str]:
    """The user's flags once more, but for what a sample in Parquet no longer needs; columns as they were found."""
    arguments = []
    for field in fields(flags):
        value = getattr(flags, field.name)
        if field.name in ("format", "encoding") or value == field.default:
            continue
        if field.name == "text" and value == "-":
            value = recipe.text
        option = "--" + field.name.replace("_", "-")
        arguments += [option] if value is True else [option, str(value)]
    return arguments


def extrapolated(trials: list[dict[str, float]], name: str, size: Size) -> float:
    """The line through the trials, drawn on to all items; never less than the largest trial took."""
    last = trials[-1]
    if len(trials) == 1 or last["items"] >= size.items or last["items"] <= trials[0]["items"]:
        return round(last[name], 2)
    slope = (last[name] - trials[0][name]) / (last["items"] - trials[0]["items"])
    return round(last[name] + max(slope, 0.0) * (size.items - last["items"]), 2)


def peak_of(trials: list[dict[str, float]], size: Size) -> float:
    """Memory grows with the cells by a known amount, and else with the features, which grow ever more slowly.

    A line through the items alone would draw the first, steep growth of the vocabulary on to the end.
    """
    first, last = trials[0], trials[-1]
    new_features = last["features"] - first["features"]
    if len(trials) == 1 or new_features <= 0:
        return extrapolated(trials, "peak_mb", size)
    mb_per_item = BYTES_PER_CELL * size.non_zeros / max(size.items, 1) / 1e6
    rest = last["peak_mb"] - first["peak_mb"] - mb_per_item * (last["items"] - first["items"])
    by_items = mb_per_item * max(size.items - last["items"], 0)
    by_features = max(rest, 0.0) / new_features * max(size.features - last["features"], 0)
    return round(last["peak_mb"] + by_items + by_features, 2)


def available_mb() -> int | None:
    """Memory that is free for a new process, where the system says so."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) // 1024
    except (OSError, KeyError, ValueError):
        return None
