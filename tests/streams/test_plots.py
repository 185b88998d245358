"""Plots: each draws what its data says, and says what is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from shoal.datasets import make_threads
from shoal.errors import BadInput, MissingExtra
from shoal.streams import ExponentialKernel, Inference, TimeSensitiveMixture, plots


@pytest.fixture(scope="module")
def data():
    data = make_threads(200, n_features=60, length=10, prior=0.05, decay=0.05, concentration=0.4, random_state=0)
    data.times[:] = 1554076800.0 + 86400.0 * data.times / 20.0
    return data


@pytest.fixture(scope="module")
def fitted(data):
    kernel = ExponentialKernel(half_life="6 hours")
    return TimeSensitiveMixture(kernel, inference=Inference(n_sweeps=30, burn_in=10), random_state=0).fit(data)


def test_every_plot_is_a_figure(data, fitted, tmp_path):
    figures = [
        plots.time_versus_cluster(fitted),
        plots.stream_graph(fitted, data),
        plots.same_cluster_plot(fitted, n_items=50),
        plots.number_of_clusters(fitted, truth=5),
        plots.top_stories_table(fitted),
    ]
    for at, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{at}.png", dpi=30)
        assert (tmp_path / f"{at}.png").stat().st_size > 1000
    rows = figures[0].axes[0].get_yticklabels()
    assert len(rows) == min(25, len(set(fitted.labels_)))


def test_top_stories_count_the_messages_of_each_day(data, fitted):
    stories = plots.top_stories(fitted, n=2)
    days = np.floor(data.times / 86400.0)
    first = stories[0]
    assert first.day == "2019-04-01"
    assert first.messages == ((fitted.labels_ == first.cluster) & (days == days[0])).sum()
    assert first.words[0] == fitted.name_features(fitted.top_features(first.cluster, 1).features)[0]


def test_a_stream_remembers_its_times(data):
    model = TimeSensitiveMixture(inference=Inference(window=60, batch=20), random_state=0).partial_fit(data)
    np.testing.assert_array_equal(model.all_times_, data.times)
    assert [title for title, _, _ in model.figures()] == ["Clusters over time", "The stream", "Top stories of each day"]
    with pytest.raises(BadInput, match="3 times"):
        plots.stream_graph(model, data.times[:3])
    plots.stream_graph(model, data.times)


def test_missing_matplotlib_is_named(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match="report"):
        plots.number_of_clusters(fitted)


def test_the_reports_top_stories_are_text(fitted):
    page = plots.top_stories_page(fitted, n=2)
    stories = plots.top_stories(fitted, n=2, n_words=4)
    assert page.count("<tr>") == len({story.day for story in stories})
    assert all(" ".join(story.words) in page for story in stories)
    assert "<svg" not in page
