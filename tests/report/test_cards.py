"""Cards say what is true of the clusters; small cases are checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.base import Estimator, Roster, TopFeatures
from shoal.report import FeatureFact, cluster_cards


class Known(Estimator):
    """A model whose answer is written down: cluster 7 holds items 0, 2, 3; cluster 4 item 1; item 4 is nowhere."""

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
