"""``shoal fit``: from a file to a model."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.memory import peak_mb
from shoal.cli.models import CHOICES, Model, build, settings_of
from shoal.cli.options import EngineFlags, Overwrite, PrintFlags, ReadFlags, Source, progress_bars, takes_flags

if TYPE_CHECKING:
    from shoal.data import Dataset, ReadOptions

LEARNS_IN_ORDER = "TimeSensitiveMixture"  # the one model that does not merge


@takes_flags
def fit(
    source: Source,
    flags: ReadFlags,
    shown: PrintFlags,
    where: EngineFlags,
    model: Annotated[
        Model, typer.Option("--model", "-m", help="Model; auto chooses one for the table and reports it.")
    ] = Model.kmeans,
    clusters: Annotated[int | None, typer.Option("--clusters", "-k", min=1, help="Number of clusters.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Random seed.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="NAME=VALUE", help="Any other parameter of the model.")
    ] = None,
    batch_rows: Annotated[
        int | None, typer.Option("--batch-rows", min=1, help="Read this many rows at a time, to bound memory.")
    ] = None,
    stability: Annotated[
        int,
        typer.Option(
            "--stability",
            min=0,
            help="Estimate each cluster's stability by this many fits to halves of the rows.",
        ),
    ] = 0,
    identity_from: Annotated[
        Path | None,
        typer.Option("--identity-from", metavar="MODEL", help="Keep ids and names of this model."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Save the model here.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report here.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Cluster the rows of SOURCE, show the clusters, and save the model.

    --model suggester learns to suggest features; --set clusters=MODEL groups its explanations by clusters of a model.

    Example: shoal fit clicks.parquet --model kmeans -k 500 --item id --features tags --out clicks.shoal

    Example: shoal fit 'clicks/*.parquet' --engine dask --scheduler tcp://head:8786 --checkpoint run -k 500 -o c.shoal
    """
    from shoal.cli.output_files import check_outputs
    from shoal.cli.source import rereadable
    from shoal.errors import BadInput, InterruptedWarning
    from shoal.progress import message

    check_outputs({"--out": out, "--report": report}, inputs=[source], overwrite=overwrite)
    wanted = drop_unset(random_state=seed, n_clusters=clusters) | settings_of(settings or [])
    if report is not None and model is Model.suggester:
        raise BadInput("--report: a suggester has no clusters to report; leave --report out.")
    if model is not Model.auto:
        estimator = build(model, wanted)  # a wrong option is refused before anything is read
    check_engine(where)
    reader = rereadable(source) if where.engine == "threads" else nullcontext(source)
    with progress_bars(shown.quiet), reader as again, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if model is Model.auto:
            model, more = automatic_model(again, flags)
            wanted = more | wanted
            estimator = build(model, wanted)
        elif more := family_for_numbers(model, again, flags, wanted):
            wanted = more | wanted
            estimator = build(model, wanted)
        work = Work(estimator, reading_options(model, flags, wanted, again), again)
        described = {"source": source, "model": str(model), "batch_rows": batch_rows, "options": repr(work.options)}
        with passes_on(where, described | {"parameters": repr(estimator)}):
            if where.engine == "dask":
                work.fit_partitions()
            elif batch_rows is None:
                work.fit_whole()
            else:
                work.fit_batches(batch_rows, at_once=CHOICES[model].fits_batches)
            if stability:
                work.measure_stability(stability, seed)
            if identity_from is not None:
                work.take_identity(identity_from)
            if out is not None:
                work.save(out)
        cards = work.finish(report, title=f"Clusters of {source}")
        for warning in dict.fromkeys(str(w.message) for w in caught):
            message(f"note: {warning}")
    show_result(work, cards, work.facts(cards, out, report), shown)
    if any(issubclass(w.category, InterruptedWarning) for w in caught):
        raise typer.Exit(1)


def check_engine(where: EngineFlags) -> None:
    """Refuse engine options that contradict one another, before anything is read."""
    from shoal.errors import BadInput

    if where.engine not in ("threads", "dask"):
        raise BadInput(f"--engine is {where.engine!r}; it must be threads or dask.")
    if where.scheduler is not None and where.engine != "dask":
        raise BadInput("--scheduler is the address of a Dask cluster; give --engine dask, too.")
    if where.resume and where.checkpoint is None:
        raise BadInput("--resume needs the folder that the stopped fit wrote to; give --checkpoint FOLDER.")


@contextmanager
def passes_on(where: EngineFlags, work: dict[str, Any]) -> Iterator[None]:
    """Run the passes inside on the engine that was asked for, written down if asked."""
    from shoal.engine import checkpointed, using

    keeping = checkpointed(where.checkpoint, resume=where.resume, work=work) if where.checkpoint else nullcontext()
    with using(where.scheduler or where.engine), keeping:
        yield


def drop_unset(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def automatic_model(source: str, flags: ReadFlags) -> tuple[Model, dict[str, Any]]:
    """The model that suits the table, reported with the reason."""
    from shoal.cli.automatic import choose_model
    from shoal.progress import message

    choice = choose_model(source, flags.options())
    message(f"--model auto takes {choice.model}: {choice.reason}")
    if choice.numeric:
        flags.numeric = True
    if choice.time is not None:
        flags.time = choice.time
    return choice.model, choice.settings


def family_for_numbers(model: Model, source: str, flags: ReadFlags, wanted: dict[str, Any]) -> dict[str, Any]:
    """A mixture's family where columns of numbers are asked for and no family is, reported with the reason."""
    if model is not Model.mixture or "family" in wanted or not (flags.numeric or flags.columns):
        return {}
    from shoal.cli.automatic import family_of_numbers
    from shoal.progress import message

    family, why = family_of_numbers(source, flags.options())
    message(f"family={family} is taken: {why} (pass --set family= to choose another)")
    return {"family": family}


def reading_options(model: Model, flags: ReadFlags, wanted: dict[str, Any], source: str) -> ReadOptions:
    """As the user says; else weighted as the model prefers, and by number columns where the family is for numbers."""
    by_name = flags.features or flags.text or flags.feature
    family = wanted.get("family")
    if model is Model.mixture and not by_name and (family == "mixed" or isinstance(family, dict)):
        return flags.options(table=table_columns(source, flags, family), numeric=None)
    if wanted.get("family") == "gaussian" and flags.numeric is None and not by_name:
        flags.numeric = True
    numeric = flags.numeric or flags.columns
    weighting = flags.weighting or ("count" if numeric else CHOICES[model].weighting)
    return flags.options(weighting=weighting)


def table_columns(source: str, flags: ReadFlags, family: Any) -> list[str] | bool:
    """The columns of a table of mixed columns: those named, or of numbers if asked for, or True for all."""
    from shoal.cli.automatic import columns_of_numbers

    if isinstance(family, dict) and "*" not in family:
        return [name for name, value in family.items() if value is not None]
    if flags.columns:
        return list(flags.options().numeric)  # type: ignore[arg-type]
    return columns_of_numbers(source, flags.options()) if flags.numeric else True


class Work:
    """A fit with its timings, and what there is to say about it afterwards."""

    def __init__(self, estimator: Any, options: ReadOptions, source: str) -> None:
        self.estimator, self.options, self.source = estimator, options, source
        self.timings: dict[str, float] = {}
        self.dataset: Dataset | None = None  # the rows; of a fit in batches the last of them
        self.n_items = self.n_empty = 0
        self.in_batches = False

    def fit_whole(self) -> None:
        from shoal import read
        from shoal.progress import message

        with self.timed("reading"):
            self.dataset = read(self.source, options=self.options)
        self.n_items, self.n_empty = len(self.dataset), self.dataset.summary.get("empty_rows", 0)
        seconds = self.timings["reading"]
        message(f"read {self.n_items:,} items x {self.dataset.X.shape[1]:,} features in {seconds:.1f} s")
        with self.timed("fitting"):
            self.estimator.fit(self.dataset)

    def fit_batches(self, batch_rows: int, *, at_once: bool) -> None:
        """One batch in memory at a time: all given to ``fit``, which keeps them on disk for its passes, or one after
        another to ``partial_fit``."""
        self.in_batches = True
        with self.timed("fitting"):
            if at_once:
                self.estimator.fit(self._batches(batch_rows))
                return
            for batch in self._batches(batch_rows):
                self.estimator.partial_fit(batch)

    def fit_partitions(self) -> None:
        """Files that the workers read, each into the same columns."""
        from shoal.engine import read_partitions
        from shoal.errors import BadInput
        from shoal.progress import message

        if self.options.table:
            raise BadInput("--engine dask: a table of mixed columns is read by one process. Leave --engine out.")
        if type(self.estimator).__name__ == LEARNS_IN_ORDER:
            raise BadInput(
                "--engine dask: one stream is learned in the order of its times, by one process. Leave --engine out; "
                "independent streams are fitted side by side by shoal.engine.fit_by_key."
            )
        self.in_batches = True
        with self.timed("reading"):
            parts = read_partitions(self.source, options=self.options)
        message(f"found {parts}")
        with self.timed("fitting"):
            self.estimator.fit(parts)
        self.n_items, self.dataset = parts.n_items, parts[0].load(*parts[0].needs())

    def _batches(self, batch_rows: int) -> Iterator[Dataset]:
        from shoal import read_batches

        for batch in read_batches(self.source, batch_rows=batch_rows, memory_mb=250, options=self.options):
            yield batch
            self.n_items += len(batch)
            self.n_empty += batch.summary["empty_rows"]
            batch.summary |= {"rows": self.n_items, "empty_rows": self.n_empty}
            self.dataset = batch

    def measure_stability(self, n_resamples: int, seed: int | None) -> None:
        """How surely each cluster is found again, kept with the model for its cards."""
        import numpy as np

        from shoal import cluster_stability
        from shoal.errors import BadInput

        if self.dataset is None or self.in_batches:
            raise BadInput("--stability needs all rows at once: leave out --batch-rows.")
        with self.timed("stability"):
            found = cluster_stability(self.estimator, self.dataset, n_resamples=n_resamples, random_state=seed)
        self.estimator.stability_ = np.array([self.estimator.cluster_ids_, found])

    def take_identity(self, path: Path) -> None:
        """The ids, names and pins of an older model, for the clusters found again in the rows (or the last batch)."""
        from shoal import load, match_clusters

        older = load(path)
        match_clusters(older, self.estimator, self.dataset).carry(older, self.estimator)

    def save(self, out: Path) -> None:
        """A model that cannot be saved where it was asked for is saved elsewhere rather than lost."""
        from shoal import save
        from shoal.cli.rescue import rescued

        with self.timed("saving"), rescued(self.estimator, self.dataset):
            save(out, self.estimator, dataset=self.dataset)

    def finish(self, report: Path | None, title: str) -> list[Any]:
        from shoal.report import cluster_cards, write_report

        rows = None if self.in_batches else self.dataset
        if report is not None:
            write_report(report, self.estimator, rows, title=title, timings=self.timings)
        return cluster_cards(self.estimator, rows)

    def timed(self, what: str) -> Timer:
        return Timer(what, self.timings)

    def facts(self, cards: list[Any], out: Path | None, report: Path | None) -> dict[str, Any]:
        facts = {
            "model": type(self.estimator).__name__,
            "items": self.n_items,
            "features": self.dataset.X.shape[1] if self.dataset is not None else None,
            "clusters": sum(card.size > 0 for card in cards) if hasattr(self.estimator, "labels_") else None,
            "mean_similarity": getattr(self.estimator, "mean_similarity_", None),
            "iterations": getattr(self.estimator, "n_iter_", None),
            "converged": getattr(self.estimator, "converged_", None),
            "empty_rows": self.n_empty,
            "unassigned": int((self.estimator.labels_ < 0).sum()) if hasattr(self.estimator, "labels_") else None,
            **{f"seconds_{name}": round(seconds, 3) for name, seconds in self.timings.items()},
            "peak_mb": peak_mb(),
            "saved": str(out) if out else None,
            "report": str(report) if report else None,
        }
        return {name: value for name, value in facts.items() if value is not None}


class Timer:
    """Adds the seconds of a block to a table of timings."""

    def __init__(self, what: str, timings: dict[str, float]) -> None:
        self.what, self.timings = what, timings

    def __enter__(self) -> None:
        self.began = clock.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.timings[self.what] = clock.perf_counter() - self.began


def show_result(work: Work, cards: list[Any], facts: dict[str, Any], shown: PrintFlags) -> None:
    from shoal.cli.output import print_cards, print_facts, print_json

    if shown.as_json:
        print_json(facts)
        return
    if cards:
        print_cards(cards, shown.rows, cohesion=work.estimator.typicality_meaning)
        print()
    print_facts(facts)
