"""Clusters within limits of size, against the best there is and on rows that will not spread."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from oracles import kmeans as oracle
from oracles.kmeans import topics
from shoal.errors import BadInput
from shoal.kmeans import SphericalKMeans


@pytest.mark.parametrize(
    "limits", [{"max_cluster_size": 80}, {"min_cluster_size": 60}, {"min_cluster_size": 70, "max_cluster_size": 76}]
)
@pytest.mark.parametrize("options", [{}, {"algorithm": "sparse", "features_kept": 20}])
def test_limits_are_kept_at_little_cost(limits, options):
    X, _ = topics(0)
    free = SphericalKMeans(8, random_state=0, **options).fit(X)
    model = SphericalKMeans(8, random_state=0, **limits, **options).fit(X)
    sizes = np.bincount(model.labels_, minlength=8)
    np.testing.assert_array_equal(model.cluster_sizes_, sizes)
    assert sizes.min() >= limits.get("min_cluster_size", 0)
    assert sizes.max() <= limits.get("max_cluster_size", 600)
    cost = model.certificate_["cost_of_size_limits"]
    assert cost == pytest.approx(free.mean_similarity_ - model.mean_similarity_, abs=1e-6)
    assert 0 <= cost < 0.1
    own = (oracle.unit(X) * model.cluster_centers_.toarray()[model.labels_]).sum(axis=1)
    np.testing.assert_allclose(model.similarities_, own, atol=1e-6)


def test_as_good_as_the_best_assignment_to_the_same_centers():
    """Equal sizes are an assignment problem, which scipy solves exactly."""
    X, _ = topics(1, n=200, k=5)
    model = SphericalKMeans(5, random_state=0, max_cluster_size=40).fit(X)
    cosines = oracle.unit(X) @ model.cluster_centers_.toarray().T
    rows, columns = linear_sum_assignment(-np.repeat(cosines, 40, axis=1))
    best = cosines[rows, columns // 40].mean()
    assert model.mean_similarity_ >= 0.97 * best
    assert (model.cluster_sizes_ == 40).all()


def test_equal_rows_are_spread_too():
    X = np.repeat(np.eye(3), [50, 5, 5], axis=0) + 1e-3
    model = SphericalKMeans(3, random_state=0, min_cluster_size=15, max_cluster_size=25).fit(X)
    assert model.cluster_sizes_.min() >= 15
    assert model.cluster_sizes_.max() <= 25


def test_limits_that_cannot_be_kept_are_refused():
    X, _ = topics(2, n=100)
    for options, words in (
        ({"min_cluster_size": 30}, "at least 30 rows need 120"),
        ({"max_cluster_size": 20}, "at most 20 rows hold 80"),
        ({"min_cluster_size": 25, "max_cluster_size": 24}, "more than max_cluster_size"),
        ({"max_cluster_size": 0}, "max_cluster_size is 0"),
        ({"max_cluster_size": 30, "bisecting": True}, "no option of bisecting"),
    ):
        with pytest.raises(BadInput, match=words):
            SphericalKMeans(4, **options).fit(X)
    with pytest.raises(BadInput, match="all rows at once"):
        SphericalKMeans(4, max_cluster_size=30).fit([X[:50], X[50:]])
