"""Time-sensitive Dirichlet process mixtures (CMU, 2005): number of clusters, who is with whom, VI over many sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.plotting import BLUE, figure
from shoal.reproduce.result import Paper, Picture, Size, Table

PUBLISHED = {"hard": (20, 0.927, 1.863, 12), "easy": (50, 0.125, 0.663, 14)}  # words, VI of tDPM, VI of DPM, true K


def reproduce(size: Size) -> Paper:
    """The paper's experiment on one set, as it shows it, and over many."""
    n_sets = size.of(4, 30)
    paper = Paper(
        "tdpm",
        "Time-sensitive Dirichlet process mixtures",
        f"The paper's recipe: 100 messages, Poisson arrivals, decay 0.5, alpha 0.2, three words, 20 words a message "
        f"(hard) or 50 (easy). The paper shows one set of each kind; here are {n_sets}, since one proves little: the "
        "difference between two sets is larger than that between two methods.",
    )
    rows = []
    for name, (length, *_rest) in PUBLISHED.items():
        rows += _one_kind(paper, name, length, n_sets)
    columns = ["messages", "model", "VI, nats", "sd over sets", "VI (paper)", "VI of consensus", "mode of K", "true K",
               "sets where tDPM is nearer"]  # fmt: skip
    note = "VI: mean over the kept samples (100 sweeps of burn-in, 109 samples, 11 sweeps apart). DPM: a step kernel."
    paper.tables.append(Table("Variation of information to the truth", columns, rows, note))
    real = size.real("messages")
    if real is not None:
        _real_stream(paper, real)
    return paper


def _one_kind(paper: Paper, name: str, length: int, n_sets: int) -> list[list[Any]]:
    from shoal.datasets import make_threads
    from shoal.metrics import variation_of_information

    found: dict[str, list[tuple[float, float, int]]] = {"tDPM": [], "DPM": []}
    true_numbers, first = [], {}
    for seed in range(n_sets):
        data = make_threads(100, length=length, random_state=seed)
        truth = np.asarray(data.labels)
        true_numbers.append(np.unique(truth).size)
        for model in found:
            fitted = sampled(model, data, seed)
            vi = float(np.mean([variation_of_information(sample, truth) for sample in fitted.samples_]))
            mode = int(np.argmax(fitted.n_clusters_posterior_))
            found[model].append((vi, variation_of_information(fitted.labels_, truth), mode))
            if seed == 0:
                first[model] = fitted
    paper.pictures.append(_numbers(name, first, true_numbers[0]))
    paper.pictures.append(_matrices(name, first, data_of=make_threads(100, length=length, random_state=0)))
    results = {model: np.array(values) for model, values in found.items()}
    better = int((results["tDPM"][:, 0] < results["DPM"][:, 0]).sum())
    published = dict(zip(("tDPM", "DPM"), PUBLISHED[name][1:3], strict=True))
    return [
        [f"{name}, {length} words", model, values[:, 0].mean(), values[:, 0].std(), published[model],
         values[:, 1].mean(), values[:, 2].mean(), float(np.mean(true_numbers)),
         f"{better} of {n_sets}" if model == "tDPM" else None]
        for model, values in results.items()
    ]  # fmt: skip


def sampled(model: str, data: Any, seed: int) -> Any:
    """The paper's sampler with its parameters given."""
    from shoal.streams import ExponentialKernel, Inference, StepKernel, TimeSensitiveMixture

    return TimeSensitiveMixture(
        ExponentialKernel(0.5) if model == "tDPM" else StepKernel(),
        concentration=0.2,
        base="uniform",
        strength=3.0,
        inference=Inference(n_sweeps=100 + 109 * 11, burn_in=100, thin=11),
        random_state=seed,
    ).fit(data.X, times=data.times)


def _numbers(name: str, models: dict[str, Any], truth: int) -> Picture:
    drawn, _ = figure(9.6, 2.8)
    drawn.clf()
    for axes, (model, fitted) in zip(drawn.subplots(1, 2, sharey=True), models.items(), strict=True):
        posterior = fitted.n_clusters_posterior_
        axes.bar(np.arange(posterior.size), posterior, color=BLUE)
        axes.axvline(truth, color="#c8553d", linestyle="--", label=f"truth: {truth}")
        axes.set(xlabel="clusters", title=model, xlim=(0, 25))
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    drawn.axes[0].set_ylabel("share of samples")
    caption = f"One set, as in the paper ({PUBLISHED[name][3]} true clusters there)."
    return Picture(f"Number of clusters, {name}", caption, drawn)


def _matrices(name: str, models: dict[str, Any], data_of: Any) -> Picture:
    """Messages in order of time, as the paper draws them."""
    from shoal.metrics import same_cluster_matrix

    truth = np.asarray(data_of.labels)
    drawn, _ = figure(9.6, 3.5)
    drawn.clf()
    shown = {"truth": same_cluster_matrix(truth)}
    shown |= {model: same_cluster_matrix(np.asarray(fitted.samples_)) for model, fitted in models.items()}
    for axes, (title, matrix) in zip(drawn.subplots(1, 3), shown.items(), strict=True):
        axes.imshow(matrix, cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
        axes.set(title=title, xlabel="message, by time")
    caption = "How often two messages share a cluster; messages in order of time."
    return Picture(f"Who is with whom, {name}", caption, drawn)


def _real_stream(paper: Paper, source: Any) -> None:
    import shoal
    from shoal.streams import TimeSensitiveMixture, plots

    messages = shoal.read(str(source), weighting="count")
    model = TimeSensitiveMixture(random_state=0).fit(messages)
    drawn = plots.time_versus_cluster(model, n_clusters=20)
    caption = f"{len(messages):,} messages, {model.n_clusters_:,} clusters; kernel and concentration learned."
    paper.pictures.append(Picture(f"Time against cluster, {source.name}", caption, drawn))
