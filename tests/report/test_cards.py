"""Cards say what is true of the clusters; small cases are checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import SphericalKMeans
from shoal.base import Estimator, Roster, TopFeatures
from shoal.report import FeatureFact, cluster_cards


class Known(Estimator):
    """A model whose answer is written down: cluster 7 holds items 0, 2, 3; cluster 4 item 1; item 4 is unassigned."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit(self, X=None, y=None):
        self.labels_ = np.array([7, 4, 7, 7, -1])
        self.roster_ = Roster(ids=np.array([4, 7]), next_id=8, names={4: "the small one"})
        return self

    def top_features(self, cluster, n=10):
        return TopFeatures(np.arange(3)[:n], np.array([0.9, 0.5, 0.1])[:n], "made up", np.zeros(3), np.ones(3))

    def typicality(self):
        return np.array([0.2, 0.9, 0.8, 0.5, 0.0])

    def cluster_uncertainty(self):
        return np.array([0.25, 0.75])


class Data:
    X = vocabulary = None
    ids = np.array(["a", "b", "c", "d", "e"])
    times = np.array([10.0, 20.0, 30.0, 5.0, 0.0])


def test_a_card_says_what_is_true():
    large, small = cluster_cards(Known().fit(), Data(), n_items=2)
    assert (large.id, large.size, large.share) == (7, 3, 0.6)
    assert large.items == (("c", 0.8), ("d", 0.5))
    assert large.cohesion == pytest.approx((0.2 + 0.8 + 0.5) / 3)
    assert large.uncertainty == 0.75
    assert (large.born, large.last_seen) == (5.0, 30.0)
    assert large.name == "feature 0, feature 1, feature 2"
    assert large.features[0] == FeatureFact("feature 0", 0.9, 0.0, 1.0)
    assert (small.id, small.name, small.size) == (4, "the small one", 1)


def test_without_data_items_are_numbered_and_have_no_life():
    large, _ = cluster_cards(Known().fit())
    assert [name for name, _ in large.items] == ["2", "3", "0"]
    assert large.born is None


def test_an_unfitted_model_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        cluster_cards(Known())


def test_names_say_what_distinguishes_not_what_all_share():
    """Every cluster is half "the"; its name is made of the other half."""
    X = np.zeros((30, 4))
    X[:, 0] = 5
    X[np.arange(30), 1 + np.arange(30) // 10] = 4
    from shoal import SphericalKMeans

    cards = cluster_cards(SphericalKMeans(3, random_state=0).fit(X), n_items=1)
    assert sorted(card.name for card in cards) == ["feature 1", "feature 2", "feature 3"]
    assert all(card.features[0].name == "feature 0" for card in cards)


def test_times_keep_their_seconds_and_missing_ones_are_left_out():
    class Late(Data):
        times = np.array([1.7e9 + 0.25, np.nan, 1.7e9 + 7, np.nan, 0.0])

    large, small = cluster_cards(Known().fit(), Late())
    assert (large.born, large.last_seen) == (1.7e9 + 0.25, 1.7e9 + 7)
    assert (small.born, small.last_seen) == (None, None)


def test_items_of_a_series_are_taken_by_row():
    import pandas as pd

    class Shuffled(Data):
        ids = pd.Series(["a", "b", "c", "d", "e"], index=[4, 3, 2, 1, 0])

    large, _ = cluster_cards(Known().fit(), Shuffled(), n_items=1)
    assert large.items[0][0] == "c"


def test_a_dataset_of_another_length_is_refused():
    class Short(Data):
        ids = np.array(["a"])

    with pytest.raises(ValueError, match="dataset has 1 items, but the model learned 5"):
        cluster_cards(Known().fit(), Short())


def test_a_notebook_shows_whole_words_and_escapes_them():
    words = [[f"<b>{kind} {'long ' * 12}{n}" for n in range(4)] for kind in ("tea", "rum") for _ in range(10)]
    html = SphericalKMeans(2, random_state=0).fit(words)._html_repr()
    assert "…" in html
    assert "&lt;b&gt;tea" in html
    assert "<b>tea" not in html
