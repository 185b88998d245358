"""Pictures of a stream, as matplotlib figures: what lived when, how heavy it was, who is with whom, how many."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.errors import BadInput
from shoal.plotting import figure as new_figure
from shoal.plotting import plain_text
from shoal.streams.events import LOOKS_LIKE_SECONDS

if TYPE_CHECKING:
    from shoal.streams.mixture import TimeSensitiveMixture

GREY = "#9aa0a6"
FAR_MORE, FEWEST_IN_BURST = 3.0, 5  # a burst: three times the busiest day before, and no fewer than five messages


class Story(NamedTuple):
    """One of the top stories of a day."""

    day: str
    cluster: int
    messages: int  # on that day
    words: list[str]
    born: float  # when it first weighed three messages
    burst: bool  # whether it had far more messages than on any day before


def colours(n: int) -> Any:
    """As many colours, strong ones first."""
    from matplotlib import colormaps

    shades = [colormaps["tab20"](at) for at in range(20)]
    return [*shades[::2], *shades[1::2]] * (1 + n // 20)


def times_of(model: TimeSensitiveMixture, times: Any) -> np.ndarray:
    """Times of the model's messages: given, or as the model saw them."""
    if times is None:
        times = model.all_times_
    times = np.asarray(getattr(times, "times", times), dtype=np.float64)
    if len(times) != len(model.all_labels_):
        raise BadInput(f"{len(times)} times were given for {len(model.all_labels_)} messages; give one for each.")
    return times


def largest(labels: np.ndarray, n: int) -> np.ndarray:
    """Ids of the n largest clusters, largest first."""
    ids, counts = np.unique(labels, return_counts=True)
    return np.asarray(ids[np.argsort(-counts, kind="stable")[:n]])


def figures_of(model: TimeSensitiveMixture) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """What a report shows of a stream."""
    if model.stream_.n_seen > 1:
        caption = "Each tick is a message; clusters in the order of their birth."
        yield "Clusters over time", caption, lambda: time_versus_cluster(model)
        yield "The stream", "How many messages each of the largest clusters had.", lambda: stream_graph(model)
        if 2 <= np.ptp(model.all_times_) / 86400.0 <= 400:
            caption = "Bold if born that day, ↑ if it burst."
            yield "Top stories of each day", caption, lambda: top_stories_page(model)
    if getattr(model, "samples_", None) is not None and len(model.samples_) > 1:
        yield "How many clusters", "In the kept samples.", lambda: number_of_clusters(model)
        caption = "Dark where two messages are together in most samples."
        yield "Who is with whom", caption, lambda: same_cluster_plot(model)


def words_for(model: TimeSensitiveMixture, cluster: int, n: int) -> list[str]:
    """What a cluster is about, or nothing if it was too small to be remembered."""
    try:
        return model.name_features(model.top_features(int(cluster), n).features)
    except BadInput:
        return []


def title_of(model: TimeSensitiveMixture, cluster: int, n: int = 3) -> str:
    name = model.roster_.names.get(int(cluster))
    return name or f"{cluster}  {' '.join(words_for(model, cluster, n))}"


def show_clock(axis: Any, times: np.ndarray) -> tuple[np.ndarray, str]:
    """Times as the axis wants them, and its label: dates if they look like seconds since 1970."""
    if times.size and times.min() > LOOKS_LIKE_SECONDS:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

        locator = AutoDateLocator()
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        return np.asarray(date2num(times.astype("datetime64[s]"))), ""
    return times, "time"


def time_versus_cluster(model: TimeSensitiveMixture, times: Any = None, *, n_clusters: int = 25) -> Any:
    """A row of ticks for each of the largest clusters, in order of birth: when each message came."""
    clock, labels = times_of(model, times), model.all_labels_
    figure, axis = new_figure(10, 1.5 + 0.26 * n_clusters)
    chosen = largest(labels, n_clusters)
    chosen = chosen[np.argsort([clock[labels == id_].min() for id_ in chosen], kind="stable")]
    shown, word = show_clock(axis, clock)
    for row, (id_, colour) in enumerate(zip(chosen, colours(len(chosen)), strict=False)):
        at = shown[labels == id_]
        axis.plot([at.min(), at.max()], [row, row], color=colour, linewidth=0.8, alpha=0.6)
        axis.plot(at, np.full(at.size, row), "|", color=colour, markersize=9, alpha=0.8)
    axis.set_yticks(range(len(chosen)), [title_of(model, int(id_)) for id_ in chosen], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel(word)
    axis.set_title(f"Messages of the {len(chosen)} largest clusters, in order of birth", loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    return plain_text(figure)


def stream_graph(model: TimeSensitiveMixture, times: Any = None, *, n_clusters: int = 12, n_steps: int = 120) -> Any:
    """How many messages each of the largest clusters had over time, stacked about the middle, smoothed a little."""
    clock, labels = times_of(model, times), model.all_labels_
    figure, axis = new_figure(10, 4.5)
    chosen = largest(labels, n_clusters)
    edges = np.linspace(clock.min(), clock.max() if clock.max() > clock.min() else clock.min() + 1, n_steps + 1)
    bump = np.exp(-0.5 * (np.arange(-4, 5) / 1.5) ** 2)
    heights = [np.convolve(np.histogram(clock[labels == id_], edges)[0], bump / bump.sum(), "same") for id_ in chosen]
    shown, word = show_clock(axis, (edges[:-1] + edges[1:]) / 2)
    names = [title_of(model, int(id_)) for id_ in chosen]
    axis.stackplot(shown, heights, labels=names, colors=colours(len(chosen))[: len(chosen)], baseline="sym")
    axis.set_yticks([])
    axis.set_xlabel(word)
    axis.set_title("Messages over time", loc="left")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
    axis.spines[["top", "right", "left"]].set_visible(False)
    return plain_text(figure)


def same_cluster_plot(model: TimeSensitiveMixture, *, n_items: int = 500, random_state: int = 0) -> Any:
    """The share of samples in which two messages are together, messages ordered by cluster and time; after ``fit``."""
    labels = model.labels_
    items = np.arange(len(labels))
    if items.size > n_items:
        items = np.sort(np.random.default_rng(random_state).choice(items, n_items, replace=False))
    sizes = np.bincount(np.unique(labels[items], return_inverse=True)[1])[
        np.unique(labels[items], return_inverse=True)[1]
    ]
    items = items[np.lexsort((model.all_times_[items], labels[items], -sizes))]
    figure, axis = new_figure(6.4, 5.6)
    image = axis.imshow(model.same_cluster_matrix(items), cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
    for edge in np.flatnonzero(np.diff(labels[items])) + 0.5:
        axis.axhline(edge, color=GREY, linewidth=0.4)
        axis.axvline(edge, color=GREY, linewidth=0.4)
    axis.set_xlabel("messages, by cluster and time")
    axis.set_title("How often two messages share a cluster", loc="left")
    figure.colorbar(image, ax=axis, shrink=0.8, label="share of samples")
    return figure


def number_of_clusters(model: TimeSensitiveMixture, *, truth: int | None = None) -> Any:
    """Posterior of the number of clusters; after ``fit``."""
    posterior = model.n_clusters_posterior_
    figure, axis = new_figure(5.5, 3.2)
    seen = np.flatnonzero(posterior)
    axis.bar(np.arange(posterior.size), posterior, color="#3b6fb6", width=0.85)
    axis.set_xlim(max(0, seen[0] - 3), seen[-1] + 3)
    if truth is not None:
        axis.axvline(truth, color="#c0392b", linestyle="--", label=f"true number, {truth}")
        axis.set_xlim(min(truth, seen[0]) - 3, max(truth, seen[-1]) + 3)
        axis.legend(frameon=False)
    axis.set_xlabel("number of clusters")
    axis.set_ylabel("share of samples")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def top_stories(
    model: TimeSensitiveMixture, times: Any = None, *, n: int = 3, step: float = 86400.0, n_words: int = 6
) -> list[Story]:
    """The clusters with the most messages in each day (or other step of the clock), largest first."""
    clock, labels = times_of(model, times), model.all_labels_
    days = np.floor(clock / step)
    begun = {life.id: life.born if life.established_at is None else life.established_at for life in model.clusters_}
    busiest: dict[int, int] = {}  # most messages on a day so far
    stories = []
    for day in np.unique(days):
        at_day, counts = np.unique(labels[days == day], return_counts=True)
        for at in np.argsort(-counts, kind="stable")[:n]:
            cluster = int(at_day[at])
            born = begun.get(cluster, float(day * step))
            before = busiest.get(cluster, 0)
            burst = 0 < before < counts[at] / FAR_MORE and counts[at] >= FEWEST_IN_BURST
            words = words_for(model, cluster, n_words)
            stories.append(Story(name_of_day(day * step), cluster, int(counts[at]), words, born, bool(burst)))
        for id_, count in zip(at_day.tolist(), counts.tolist(), strict=True):
            busiest[id_] = max(busiest.get(id_, 0), count)
    return stories


def top_stories_table(model: TimeSensitiveMixture, times: Any = None, *, n: int = 3, step: float = 86400.0) -> Any:
    """The same as a figure: one row a day, its top stories side by side."""
    stories = top_stories(model, times, n=n, step=step, n_words=4)
    days = list(dict.fromkeys(story.day for story in stories))
    figure, axis = new_figure(3.0 + 3.2 * n, 0.8 + 0.3 * len(days))
    axis.axis("off")
    axis.set_xlim(0, 1 + 3 * n)
    axis.set_ylim(len(days), -1)
    for row, day in enumerate(days):
        axis.text(0, row, day, fontsize=8, va="center", color=GREY)
        for column, story in enumerate(story for story in stories if story.day == day):
            fresh = name_of_day(np.floor(story.born / step) * step) == day
            text = f"{story.messages:,}{' ↑' if story.burst else ''}  "
            text += " ".join(story.words) or f"cluster {story.cluster}"
            axis.text(
                1 + 3 * column,
                row,
                text[:44],
                fontsize=8,
                va="center",
                parse_math=False,
                weight="bold" if fresh else "normal",
            )
    title = "Top stories of each day: messages and words; bold if born that day, ↑ if far more than ever before"
    axis.text(0, -0.9, title, fontsize=9, weight="bold")
    return figure


def top_stories_page(model: TimeSensitiveMixture, times: Any = None, *, n: int = 3, step: float = 86400.0) -> str:
    """The same as an HTML table, whose text can be read on a phone, searched and copied."""
    stories = top_stories(model, times, n=n, step=step, n_words=4)
    lines = []
    for day in dict.fromkeys(story.day for story in stories):
        cells = []
        for story in (story for story in stories if story.day == day):
            kind = "b" if name_of_day(np.floor(story.born / step) * step) == day else "span"
            words = escape(" ".join(story.words) or f"cluster {story.cluster}")
            cells.append(f"<{kind}>{story.messages:,}{' ↑' if story.burst else ''} {words}</{kind}>")
        lines.append(f"<tr><th>{escape(day)}</th><td>{'<br>'.join(cells)}</td></tr>")
    return f"<table class=facts>{''.join(lines)}</table>"


def name_of_day(at: float) -> str:
    """A date if the clock looks like seconds since 1970, otherwise the number.

    >>> name_of_day(1555286400.0), name_of_day(12.0)
    ('2019-04-15', '12')
    """
    if at > LOOKS_LIKE_SECONDS:
        return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d")
    return f"{at:g}"
