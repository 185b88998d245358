"""Topics: stories merged upward by their words."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln

from shoal.errors import BadInput
from shoal.streams import TimeSensitiveMixture
from shoal.streams.inference.topics import knee, merged_stories


def nested(n_topics: int = 4, n_stories: int = 8, n_messages: int = 25, seed: int = 0):
    """Messages of stories with words of their own and of their topic, in a random order."""
    rng = np.random.default_rng(seed)
    width, rows, topic, story = 40 * n_topics + 10 * n_topics * n_stories, [], [], []
    for at in range(n_topics * n_stories):
        of_topic = 40 * (at % n_topics) + np.arange(40)
        own = 40 * n_topics + 10 * at + np.arange(10)
        for _ in range(n_messages):
            rows.append(np.bincount(np.append(rng.choice(of_topic, 5), rng.choice(own, 7)), minlength=width))
            topic.append(at % n_topics)
            story.append(at)
    order = rng.permutation(len(rows))
    return sp.csr_matrix(np.array(rows, dtype=float)[order]), np.array(topic)[order], np.array(story)[order]


def test_topics_are_fewer_and_larger_than_stories():
    X, topic, story = nested()
    stories = TimeSensitiveMixture(random_state=0).fit(X).labels_
    model = TimeSensitiveMixture(granularity="topics", random_state=0).fit(X)
    topics = model.labels_
    assert 1 < len(set(topics)) < len(set(stories))
    assert len(set(zip(story, stories, strict=True))) == len(set(story)) == len(set(stories))
    # no topic mixes stories of different planted topics, and every story is in one topic
    assert len(set(zip(topic, topics, strict=True))) == len(set(topics))
    assert len(set(zip(story, topics, strict=True))) == len(set(story))
    assert model.n_clusters_ == len(set(topics))
    assert not hasattr(model, "samples_")
    before = len(model.all_labels_)
    model.partial_fit(X[:5])
    assert len(model.all_labels_) == before + 5


def test_short_texts_keep_several_topics():
    """Few words each, all of one vocabulary: what used to become a single cluster."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(120, 0.05), 20)
    X = sp.csr_matrix(np.array([rng.multinomial(4, shares[at % 20]) for at in range(1200)], dtype=float))
    stories = TimeSensitiveMixture(random_state=0).fit(X).labels_
    sizes = np.unique(TimeSensitiveMixture(granularity="topics", random_state=0).fit(X).labels_, return_counts=True)[1]
    assert 1 < sizes.size < len(set(stories))
    assert sizes.max() < 600


def slow_merges(counts: np.ndarray, bases: np.ndarray) -> tuple[list[set[int]], list[float]]:
    """Every pair scored anew before every merge; the sides of each merge and the evidence it adds."""
    strength = bases.sum()

    def log_evidence(words: np.ndarray) -> float:
        rise = (gammaln(bases + words) - gammaln(bases)).sum()
        return float(rise + gammaln(strength) - gammaln(strength + words.sum()))

    groups = [({at}, row) for at, row in enumerate(counts)]
    unions, won = [], []
    while len(groups) > 1:
        best = (-np.inf, 0.0, 0, 0)
        for i, (_, a) in enumerate(groups):
            for j, (_, b) in enumerate(groups[:i]):
                gain = log_evidence(a + b) - log_evidence(a) - log_evidence(b)
                best = max(best, (gain * (1 / a.sum() + 1 / b.sum()), gain, i, j))
        _, gain, i, j = best
        union = (groups[i][0] | groups[j][0], groups[i][1] + groups[j][1])
        groups = [group for at, group in enumerate(groups) if at not in (i, j)] + [union]
        unions.append(union[0])
        won.append(gain)
    return unions, won


def test_merges_are_those_of_scoring_every_pair():
    rng = np.random.default_rng(1)
    counts = rng.poisson(0.7, (14, 30)).astype(float) + rng.poisson(3.0, (14, 30)) * (rng.random((14, 30)) < 0.15)
    bases = rng.gamma(1.0, 0.5, 30) + 0.05
    unions, won = slow_merges(counts, bases)
    expected = np.arange(14)
    for union in unions[: knee(np.array(won))]:
        expected[list(union)] = min(union)
    found = merged_stories(sp.csr_matrix(counts), bases, float(bases.sum()), most=2000)
    assert len(set(zip(expected, found, strict=True))) == len(set(expected)) == len(set(found)) < 14


def test_small_stories_follow_the_nearest_large_one():
    counts = np.zeros((9, 12))
    for at in range(8):
        counts[at, 3 * (at % 4) : 3 * (at % 4) + 3] = 50 if at < 4 else 2
    topic = merged_stories(sp.csr_matrix(counts), np.full(12, 0.1), 1.2, most=4)
    assert (topic[:4] == topic[4:8]).all()
    assert topic[8] == 8  # without words


def test_the_knee_is_at_neither_end():
    assert knee(np.array([-1.0, -1.0, -10.0])) == 2
    assert knee(np.full(5, -3.0)) == 0


@pytest.mark.parametrize("options", [{"likelihood": "bernoulli"}, {"drift": 0.1}, {"inference": {"method": "sample"}}])
def test_topics_refuse_what_they_are_not_defined_for(options):
    with pytest.raises(BadInput, match="topics"):
        TimeSensitiveMixture(granularity="topics", **options).fit(np.eye(4))


def test_topics_begin_no_stream():
    with pytest.raises(BadInput, match="call fit first"):
        TimeSensitiveMixture(granularity="topics").partial_fit(np.eye(4))
