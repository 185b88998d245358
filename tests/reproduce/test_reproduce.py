"""Parts of the reproductions that can be checked by hand, and the page they are written to."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import trapezoid
from scipy.stats import beta

from shoal.errors import BadSource
from shoal.reproduce import PAPERS, Paper, Picture, Size, Table, bernoulli, fastex, kmeans, landscapes, write


def a_paper() -> Paper:
    table = Table(
        "VI", ["model", "ours", "ours (paper)"], [["a<b", np.float64(0.125), 0.25], ["b", None, np.nan]], "1 & 2"
    )
    return Paper("tdpm", "A paper", "made data", [table], [bernoulli.moment_matching(), Picture("P", "c", "<b>x</b>")])


def test_a_page_holds_tables_pictures_and_json(tmp_path):
    page = write([a_paper()], tmp_path / "out")
    text = page.read_text()
    assert "<td>a&lt;b</td><td>0.125</td><td class=theirs>0.25</td>" in text
    assert "1 &amp; 2" in text
    assert text.count("<svg") == 1
    assert "<b>x</b>" in text
    (paper,) = json.loads((page.parent / "results.json").read_text())["papers"]
    assert paper["tables"][0]["rows"] == [
        {"model": "a<b", "ours": 0.125, "ours (paper)": 0.25},
        {"model": "b", "ours": None, "ours (paper)": None},
    ]
    assert [path.name for path in (page.parent / "pictures").iterdir()] == ["tdpm-figure-3-moment-matching.png"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(BadSource, match="taken"):
        write([a_paper()], tmp_path / "taken")


def test_the_curve_of_moment_matching_has_the_mean_and_variance_of_the_mixture():
    picture = bernoulli.moment_matching()
    left, right = picture.drawn.axes
    for mixture, one in zip(left.lines[::2], left.lines[1::2], strict=True):
        t = mixture.get_xdata()
        means = [trapezoid(t * line.get_ydata(), t) for line in (mixture, one)]
        assert means[0] == pytest.approx(means[1], abs=0.005)
    has = right.lines[0]
    assert has.get_ydata().min() < 9.1  # less sure than before
    assert has.get_xdata()[has.get_ydata().argmin()] == pytest.approx(0.4, abs=0.05)
    assert beta.mean(1, 9) == 0.1


def test_psi_is_the_mean_cosine_to_the_centers():
    X = sp.csr_matrix(np.array([[3.0, 0, 0], [3, 4, 0], [0, 0, 2], [0, 0, 0]]))
    unit = np.array([[1.0, 0], [0.6, 0.8]])
    center = unit.sum(axis=0) / np.linalg.norm(unit.sum(axis=0))
    expected = ((unit @ center).sum() + 1) / 4
    assert kmeans.psi_of(X, np.array([0, 0, 1, -1])) == pytest.approx(expected)


def test_plain_k_means_is_as_fast_as_itself():
    assert kmeans._line("k-means", 1.0, 0.5, 0.0) == [1.0, 1.0, 1.0, 0.5, 0.7804, 0.2856, 0.0]
    assert kmeans._line("l=10 p=50", 3.0, 0.5, 0.01)[2] == pytest.approx(705.21 / 1.39)


def test_a_curve_reaches_a_quality_at_its_first_sweep_below():
    curve = fastex.Curve([10.0, 20.0, 30.0], [2.0, 0.5, 0.7], {})
    assert (curve.time_to(2.0), curve.time_to(0.6), curve.time_to(0.1)) == (10.0, 20.0, None)


def test_changes_of_the_split_of_traffic():
    control = np.array([[0.1, 10.0, 1.0]] * 7)
    clicks, interval, revenue, per_click, mainline = landscapes._changes(control, control * [1.1, 1.0, 1.05])
    assert (clicks, revenue, mainline) == (pytest.approx(10), pytest.approx(0), pytest.approx(5))
    assert per_click == pytest.approx(100 / 1.1 - 100)
    assert interval == "10.0 to 10.0"


class Order(NamedTuple):
    features: np.ndarray


class FakeProfiles:
    """Two features of one cluster, the first with few rows behind it."""

    cluster, feature, n_entries, n_clutter = np.array([0, 0]), np.array([7, 8]), 2, 0

    def alphas(self) -> np.ndarray:
        return np.array([2.0, 90.0])

    def betas(self) -> np.ndarray:
        return np.array([1.0, 60.0])


def test_a_feature_that_only_the_mean_puts_on_top_is_found():
    from types import SimpleNamespace

    model = SimpleNamespace(
        profiles_=FakeProfiles(),
        roster_=SimpleNamespace(ids=np.array([5]), row_of=lambda cluster: 0),
        top_features=lambda cluster, n, by: Order(np.array([7, 8]) if by == "mean" else np.array([8])),
    )
    assert bernoulli.beliefs_of(model, 5) == {7: (2.0, 1.0), 8: (90.0, 60.0)}
    assert bernoulli.spurious(model) == (5, 7)


def test_real_data_are_looked_for_by_name(tmp_path):
    (tmp_path / "ads.csv").write_text("a")
    size = Size(data=tmp_path)
    assert size.real("ads") == tmp_path / "ads.csv"
    assert size.real("documents") is None
    with pytest.raises(BadSource, match="no such folder"):
        Size(data=tmp_path / "none").real("ads")


def test_the_command_names_every_paper():
    from shoal.cli.reproduce import Which

    assert {which.value for which in Which} == {"all", *PAPERS}
