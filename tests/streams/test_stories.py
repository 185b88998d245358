"""Stories over arrival clusters, and fits that are ended early."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.datasets import make_threads
from shoal.errors import InterruptedWarning
from shoal.metrics import b_cubed
from shoal.streams import Inference, TimeSensitiveMixture
from shoal.streams.inference.stories import Stories


def test_stories_resolve_to_one_cluster():
    stories = Stories()
    for gone, into in [(3, 1), (4, 3), (1, 0), (7, 6)]:
        stories.merge(gone, into)
    ids = np.arange(9)
    assert stories.roots(ids).tolist() == [stories.root(id_) for id_ in ids.tolist()] == [0, 0, 2, 0, 0, 5, 6, 6, 8]


def test_pieces_of_a_story_are_told_as_one():
    """Two halves of a vocabulary that arrive apart, and then messages that hold both: one story of two clusters."""
    rng = np.random.default_rng(0)
    n, width = 1500, 300
    X = np.zeros((n, width))
    for i in range(n):
        words = rng.choice(20, 6, replace=False) if i % 3 == 0 else 20 + rng.integers(0, width - 20, 6)
        X[i, words] = 1.0
    model = TimeSensitiveMixture(inference=Inference(window=100, batch=50), random_state=0)
    model.partial_fit(sp.csr_matrix(X))
    arrival, labels = model.stream_.all_labels(), model.all_labels_
    assert len(set(labels)) < len(set(arrival))
    assert b_cubed(np.arange(n) % 3 == 0, labels).recall > b_cubed(np.arange(n) % 3 == 0, arrival).recall
    # a story keeps the id of one of its clusters, whose messages may since have moved to another of them
    assert labels.max() < model.stream_.state.status[0].next_id
    assert set(labels[labels >= 0]) >= set(model.cluster_ids_)
    for story in model.clusters_[:3]:
        assert story.size == (labels == story.id).sum()
        assert story.pieces >= 1
    merged = {event["id"] for event in model.events_ if event["kind"] == "merge"}
    assert merged.isdisjoint(labels)


@pytest.mark.parametrize("after", [0.02, 0.3])
def test_an_interrupted_fit_is_usable(after):
    data = make_threads(3000, n_features=400, length=15, prior=0.02, decay=0.02, concentration=0.5, random_state=0)
    timer = threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT))
    model = TimeSensitiveMixture(random_state=0, inference=Inference(method="sample", n_sweeps=100_000))
    timer.start()
    with pytest.warns(InterruptedWarning):
        model.fit(data.X, times=data.times)
    assert not model.converged_
    stream = TimeSensitiveMixture(random_state=0).partial_fit(data.X, times=data.times)
    assert b_cubed(data.labels, model.labels_).f1 > b_cubed(data.labels, stream.labels_).f1 - 0.02
    assert model.predict(data.X[:5], times=data.times[:5]).shape == (5,)
    model.partial_fit(data.X[:5], times=data.times[-5:])
