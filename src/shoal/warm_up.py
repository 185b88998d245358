"""Small runs along every public path, so that the kernels behind them are compiled and kept.

``shoal warm-up`` does this on a machine, for images and for platforms without code in the wheel. The build of a wheel
does it to learn what to ship.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput

GROUPS = ("kmeans", "bernoulli", "mixture", "stream", "densities", "suggestion", "auction", "demo")
N_CLUSTERS = 5
WORDS_PER_CLUSTER = 12


class Job(NamedTuple):
    """One small run."""

    group: str  # one of GROUPS
    name: str
    run: Callable[[], Any]


class Variant(NamedTuple):
    """Options of an estimator that lead to kernels of their own."""

    group: str
    estimator: str
    options: dict[str, Any]

    def make(self) -> Any:
        """The estimator, not fitted."""
        import shoal

        return getattr(shoal, self.estimator)(**self.options, random_state=0)


def variants() -> list[Variant]:
    """The estimators whose kernels differ. The first of each group is the default one."""
    from shoal.streams import ExponentialKernel

    counts = [
        {"family": family, "sampler": sampler, "n_sweeps": 6}
        for family, sampler in itertools.product(
            ("multinomial", "bernoulli", "poisson"), ("auto", "indexed", "fastex", "gibbs")
        )
    ]
    options: dict[tuple[str, str], list[dict[str, Any]]] = {
        ("kmeans", "SphericalKMeans"): [
            {},
            *[{"algorithm": name} for name in ("exact", "sparse", "wand")],
            {"init": "random", "n_init": 2},
            {"init": "k-means||"},
            {"bisecting": True},
            {"algorithm": "wand", "top": 2},
        ],
        ("bernoulli", "BernoulliMixture"): [{}, {"inference": "em"}, {"n_passes": 2}, {"clutter": False}],
        ("mixture", "ExponentialFamilyMixture"): [
            {"n_sweeps": 6},
            *counts,
            {"concentration": "learn", "parallel": True},
        ],
    }
    found = [
        Variant(group, estimator, {"n_clusters": N_CLUSTERS, **one})
        for (group, estimator), several in options.items()
        for one in several
    ]
    streams: list[dict[str, Any]] = [{}, {"likelihood": "bernoulli"}, {"kernel": ExponentialKernel(1e-5)}]
    found += [Variant("stream", "TimeSensitiveMixture", one) for one in streams]
    ways = ("auto", "dense", "dual", "local")
    return found + [Variant("suggestion", "Suggester", {"ridge": ridge}) for ridge in ways]


def dense_variants() -> list[Variant]:
    """Estimators of rows of measurements."""
    gaussian = [
        Variant(
            "mixture",
            "ExponentialFamilyMixture",
            {"n_clusters": 4, "family": "gaussian", "covariance": covariance, "n_sweeps": 5},
        )
        for covariance in ("diagonal", "spherical", "full")
    ]
    families = ("gaussian", "beta", "gamma")
    return gaussian + [
        Variant("densities", "DensityKMeans", {"n_clusters": 4, "family": family}) for family in families
    ]


def jobs(folder: Path, groups: Iterable[str] = GROUPS) -> Iterator[Job]:
    """Every job of these groups; files are made in ``folder``."""
    wanted = set(groups)
    found = itertools.chain(_command_jobs(folder), _matrix_jobs(), _dense_jobs(), _file_jobs(folder))
    return (job for job in found if job.group in wanted)


def warm_up(groups: Iterable[str] = GROUPS, report: Callable[[Job], None] = lambda job: None) -> list[str]:
    """Run every job of these groups once, each after ``report(job)``; gives back what failed, in words."""
    failed = []
    with tempfile.TemporaryDirectory(prefix="shoal-warm-up-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for job in jobs(Path(folder), groups):
            report(job)
            try:
                job.run()
            except Exception as error:
                failed.append(f"{job.group}: {job.name}: {type(error).__name__}: {error}")
    return failed


# --- data -------------------------------------------------------------------------------------------------------------


def sample_rows(n_rows: int = 240) -> sp.csr_matrix:
    """Rows of small counts in five groups of columns."""
    rng = np.random.default_rng(0)
    rows = np.zeros((n_rows, N_CLUSTERS * WORDS_PER_CLUSTER))
    for at in range(n_rows):
        chosen = rng.choice(WORDS_PER_CLUSTER, rng.integers(4, 9), replace=False)
        rows[at, chosen + (at % N_CLUSTERS) * WORDS_PER_CLUSTER] = rng.integers(1, 4, chosen.size)
    return sp.csr_matrix(rows)


def sample_measurements() -> np.ndarray:
    """120 rows of four numbers in [0, 1], in four groups."""
    values = np.random.default_rng(0).normal(size=(120, 4)) + np.repeat(np.eye(4) * 6, 30, axis=0)
    return np.asarray(1 / (1 + np.exp(-values / 3)))


def write_files(folder: Path) -> dict[str, Path]:
    """The same rows as delimited text, as a long table and as JSON lines."""
    rows = sample_rows(100)
    words = [[f"w{at}" for at in rows[row].indices] for row in range(rows.shape[0])]
    stamps = [f"2024-01-{1 + row // 5:02d}T{row % 24:02d}:00:00" for row in range(len(words))]
    paths = {name: folder / name for name in ("tags.csv", "long.csv", "lists.jsonl")}
    lines = [f"a{row},{' '.join(found)},{stamps[row]},{row % N_CLUSTERS}" for row, found in enumerate(words)]
    paths["tags.csv"].write_text("\n".join(["id,tags,time,label", *lines]) + "\n")
    lines = [f"a{row},{word},{at + 1}" for row, found in enumerate(words) for at, word in enumerate(found)]
    paths["long.csv"].write_text("\n".join(["id,feature,count", *lines]) + "\n")
    records = [{"id": f"a{row}", "tags": found, "time": stamps[row]} for row, found in enumerate(words)]
    paths["lists.jsonl"].write_text("".join(json.dumps(one) + "\n" for one in records))
    return paths


def _typed(rows: sp.csr_matrix) -> Iterator[sp.csr_matrix]:
    """The matrices that users bring: float64 and float32, 32-bit and 64-bit indices."""
    for value, index in itertools.product((np.float64, np.float32), (np.int32, np.int64)):
        typed = sp.csr_matrix(rows.astype(value))
        typed.indices, typed.indptr = typed.indices.astype(index), typed.indptr.astype(index)
        yield typed


# --- jobs -------------------------------------------------------------------------------------------------------------


def _matrix_jobs() -> Iterator[Job]:
    for variant in variants():
        for rows in _typed(sample_rows()):
            name = f"{variant.estimator} {variant.options} {rows.dtype} {rows.indices.dtype}"
            yield Job(variant.group, name, partial(_learn_and_ask, variant, rows))


def _dense_jobs() -> Iterator[Job]:
    values = sample_measurements()
    for variant in dense_variants():
        name = f"{variant.estimator} {variant.options}"
        yield Job(variant.group, name, partial(_fit_and_ask, variant, values))


def _learn_and_ask(variant: Variant, rows: sp.csr_matrix) -> None:
    times = np.arange(rows.shape[0]) * 3600.0
    model = variant.make()
    if variant.group == "stream":
        steps: list[Callable[[], Any]] = [partial(model.fit, rows, times=times), *_questions(model, rows)]
        steps.append(partial(model.partial_fit, rows, times=times + times[-1]))
        steps.append(partial(model.forecast_arrivals, 3600.0))
    else:
        steps = [partial(model.fit, rows), *_questions(model, rows)]
        if hasattr(model, "partial_fit"):
            steps.append(partial(model.partial_fit, rows))
    _run_all(steps)


def _fit_and_ask(variant: Variant, values: np.ndarray) -> None:
    model = variant.make()
    _run_all([partial(model.fit, values), *_questions(model, values)])


def _questions(model: Any, rows: Any) -> list[Callable[[], Any]]:
    """Every question that a model answers about rows."""
    names = ("predict", "assign", "predict_proba", "memberships", "score_samples", "transform")
    found: list[Callable[[], Any]] = [partial(getattr(model, name), rows) for name in names if hasattr(model, name)]
    found.append(model.typicality)
    if hasattr(model, "predict_proba"):
        found.append(partial(model.same_cluster_probability, rows[:5], rows[:5]))
    if hasattr(model, "sampled_together"):
        found.append(partial(model.sampled_together, np.arange(5), np.arange(5)))
    if hasattr(model, "suggest_batch"):
        found += [partial(model.suggest_batch, rows[:3]), partial(model.suggest, [0, 1])]
    return found


def _run_all(steps: list[Callable[[], Any]]) -> None:
    """Every step, whatever became of the one before; what a model refuses has no kernel to compile."""
    failed: list[Exception] = []
    for step in steps:
        try:
            step()
        except BadInput:
            pass
        except Exception as error:
            failed.append(error)
    if failed:
        raise failed[0]


def _file_jobs(folder: Path) -> Iterator[Job]:
    paths = write_files(folder)
    layouts: list[tuple[str, dict[str, Any]]] = [
        ("tags.csv", {"item": "id", "features": "tags", "time": "time"}),
        ("tags.csv", {"item": "id", "text": "tags", "time": "time", "bigrams": True, "stop_words": "english"}),
        ("tags.csv", {"item": "id", "text": "tags", "time": "time", "tokens": "log"}),
        ("long.csv", {"item": "id", "features": "feature", "weight": "count"}),
        ("lists.jsonl", {"item": "id", "features": "tags", "time": "time"}),
    ]
    defaults = {variant.group: variant for variant in reversed(variants())}
    for (name, columns), (group, variant) in itertools.product(layouts, defaults.items()):
        suits = "time" in columns if group == "stream" else "tokens" not in columns
        if group != "suggestion" and suits:
            yield Job(group, f"{name} {columns}", partial(_from_file, paths[name], columns, variant))


def _from_file(path: Path, columns: dict[str, Any], variant: Variant) -> None:
    """Read, fit, save, load, and assign rows read in the same way."""
    import shoal

    dataset = shoal.read(path, **columns)
    model = variant.make().fit(dataset)
    shoal.cluster_cards(model, dataset)
    with tempfile.TemporaryDirectory() as folder:
        shoal.save(f"{folder}/model.shoal", model, dataset=dataset)
        loaded = shoal.load(f"{folder}/model.shoal")
        places = {name: value for name, value in columns.items() if name in ("item", "features", "text", "weight")}
        loaded.assign(shoal.read(path, recipe=loaded, **places))


def _command_jobs(folder: Path) -> Iterator[Job]:
    tags = write_files(folder)["tags.csv"]
    for group in ("kmeans", "bernoulli", "mixture", "stream"):
        model, page, table = (folder / f"{group}.{ending}" for ending in ("shoal", "html", "csv"))
        n_clusters = [] if group == "stream" else ["-k", str(N_CLUSTERS)]
        fit = ["fit", tags, "-m", group, "--item", "id", "--time", "time", *n_clusters]
        commands: list[list[Any]] = [
            [*fit, "--features", "tags", "--out", model],
            [*fit, "--text", "tags", "--report", page],
            ["assign", model, tags, "--out", table],
            ["show", model, "--json"],
            ["report", model, "--out", page, "--overwrite"],
            ["learn", model, tags],
        ]
        if group == "bernoulli":
            commands.append(["suggest", model, "w1", "w2"])
        for command in commands:
            yield Job(group, f"shoal {command[0]}", partial(_command, command))
    model = folder / "suggester.shoal"
    fit = ["fit", tags, "-m", "suggester", "--item", "id", "--features", "tags", "--out", model]
    for command in (fit, ["suggest", model, "w1", "w2"]):
        yield Job("suggestion", f"shoal {command[0]}", partial(_command, command))
    yield Job("demo", "shoal demo", partial(_command, ["demo", "--out", folder / "demo", "-q"]))
    auction = ["demo", "auction", "--out", folder / "auction", "-q"]
    yield Job("auction", "shoal demo auction", partial(_command, auction))


def _command(words: list[Any]) -> None:
    """Run a command in this process, with its output thrown away."""
    from typer.testing import CliRunner

    from shoal.cli.main import app

    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exit_code:
        raise result.exception or RuntimeError(result.output)
