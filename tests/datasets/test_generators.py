"""Generators: the seed decides, the shape is as asked, and the statistics are those of the recipe."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.datasets import make_bernoulli_profiles, make_threads, make_zipf_ads, make_zipf_topics
from shoal.errors import BadInput

SMALL = [
    (make_bernoulli_profiles, {"n_items": 300, "n_clusters": 4, "n_features": 30}),
    (make_zipf_topics, {"n_items": 300, "n_clusters": 4, "n_features": 500}),
    (make_zipf_ads, {"n_items": 300, "n_clusters": 4, "n_features": 500}),
    (make_threads, {"n_items": 300, "n_features": 50}),
]
names = [generate.__name__ for generate, _ in SMALL]


def same(a, b):
    return (a.X != b.X).nnz == 0 and np.array_equal(a.labels, b.labels)


@pytest.mark.parametrize(("generate", "options"), SMALL, ids=names)
def test_the_laws_of_every_generator(generate, options, monkeypatch):
    one = generate(**options, random_state=3)
    assert one.X.shape == (options["n_items"], options["n_features"])
    assert one.X.dtype == np.float32
    assert one.X.has_canonical_format
    assert one.X.indices.max() < options["n_features"]
    assert one.labels.shape == (options["n_items"],)
    assert len(one.vocabulary) == options["n_features"]
    assert one.vocabulary[11].endswith("11")
    assert one.summary["rows"] == options["n_items"]
    monkeypatch.setenv("SHOAL_NUM_THREADS", "1")
    assert same(one, generate(**options, random_state=3))
    assert not same(one, generate(**options, random_state=4))
    assert same(
        generate(**options, random_state=np.random.RandomState(1)),
        generate(**options, random_state=np.random.RandomState(1)),
    )
    empty = generate(**(options | {"n_items": 0}), random_state=0)
    assert empty.X.shape == (0, options["n_features"])


def zipf_shares(n, exponent):
    edges = np.linspace(2.7, n + 2.7, n + 1)
    cumulative = np.log(edges) if exponent == 1 else edges ** (1 - exponent) / (1 - exponent)
    return np.diff(cumulative) / (cumulative[-1] - cumulative[0])


def test_bernoulli_profiles_are_coin_tosses():
    ads = make_bernoulli_profiles(random_state=0)
    assert ads.X.shape == (10_000, 100)
    assert ads.recipe.weighting == "binary"
    means = np.vstack([np.asarray(ads.X[ads.labels == c].mean(axis=0)).ravel() for c in range(10)])
    assert means.min() < 0.05
    assert means.max() > 0.95
    assert abs(means.mean() - 0.5) < 0.05


def test_topics_share_and_length():
    documents = make_zipf_topics(4000, n_features=50_000, n_clusters=20, length=60, random_state=0)
    lengths = np.asarray(documents.X.sum(axis=1)).ravel()
    assert abs(lengths.mean() - 60) < 1
    common = documents.X[:, :50].sum() / documents.X.sum()
    assert abs(common - 0.7 * zipf_shares(50_000, 1.05)[:50].sum()) < 0.01, "topic words avoid the 50 commonest ranks"
    binary = make_zipf_topics(100, n_features=500, counts=False, random_state=0)
    assert set(binary.X.data) == {1.0}
    skewed = make_zipf_topics(4000, n_features=500, n_clusters=10, skew=1.0, random_state=0)
    assert np.argmax(np.bincount(skewed.labels)) == 0


def test_words_follow_the_zipf_law():
    """With no topics, ranks fall as the integral of (x + shift)^-exponent over each rank."""
    for exponent in (1.0, 1.05, 0.0):
        words = make_zipf_topics(20_000, n_features=1000, topic_share=0.0, zipf=exponent, length=50, random_state=0)
        found = np.asarray(words.X.sum(axis=0)).ravel()
        expected = zipf_shares(1000, exponent) * found.sum()
        assert (np.abs(found - expected) < 5 * np.sqrt(expected)).all()  # 5 standard deviations of a count


def test_ads_have_different_keywords_owners_and_clutter():
    ads = make_zipf_ads(20_000, n_features=2000, n_clusters=50, clutter_share=0.1, random_state=0)
    assert set(ads.X.data) == {1.0}
    assert abs(ads.X.nnz / 20_000 - 10) < 0.1
    assert abs((ads.labels == -1).mean() - 0.1) < 0.01
    clean = make_zipf_ads(20_000, n_features=2000, n_clusters=50, n_owners=200, random_state=0)
    at_home = [np.bincount(clean.labels[clean.owners == owner]).max() for owner in np.unique(clean.owners)]
    assert abs(sum(at_home) / 20_000 - 0.9) < 0.03


def test_few_keywords_to_choose_from_end_the_draw():
    ads = make_zipf_ads(
        50, n_features=5, n_clusters=2, keywords_per_item=5, words_per_topic=2, topic_share=1.0, random_state=0
    )
    assert ads.X.nnz <= 250
    assert np.diff(ads.X.indptr).min() >= 1


def test_threads_follow_the_urn():
    """Expected number of threads is sum alpha / (T_i + alpha), whatever the labels; words per message as asked."""
    found = [make_threads(random_state=seed) for seed in range(200)]
    counts = [len(np.unique(stream.labels)) for stream in found]
    weights = []
    for stream in found:
        total, expected = 0.0, 0.0
        for at, now in enumerate(stream.times):
            if at:
                total = (total + 1) * np.exp(-0.5 * (now - stream.times[at - 1]))
            expected += 0.2 / (total + 0.2)
        weights.append(expected)
    spread = np.std(np.array(counts) - weights) / np.sqrt(200)
    assert abs(np.mean(counts) - np.mean(weights)) < 4 * spread
    assert (found[0].X.sum(axis=1) == 20).all()
    births = np.unique(found[0].labels, return_index=True)[1]
    assert (np.diff(births) > 0).all(), "threads are numbered in order of birth"


def test_thread_words_are_dirichlet_multinomial():
    """Two words of one message are equal with chance (1 + 1) / (V + 1) under Dirichlet(1, ..., 1)."""
    stream = make_threads(20_000, n_features=3, length=2, concentration=1e6, random_state=0)  # each message alone
    assert len(np.unique(stream.labels)) > 19_000
    assert abs((stream.X.max(axis=1).toarray() == 2).mean() - 2 / 4) < 0.015
    together = make_threads(400, n_features=1000, length=10, decay=0.0, concentration=1e-9, prior=0.01, random_state=0)
    assert len(np.unique(together.labels)) == 1
    assert len(np.unique(together.X.indices)) < 200, "one thread keeps to its own few words"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_zipf_topics(-1), "n_items is -1"),
        (lambda: make_zipf_topics(10, topic_share=1.5), "topic_share is 1.5"),
        (lambda: make_zipf_topics(10, n_clusters=0), "n_clusters is 0"),
        (lambda: make_zipf_ads(10, n_features=5), "only 5 features"),
        (lambda: make_zipf_ads(10, keywords_per_item=float("nan")), "keywords_per_item is nan"),
        (lambda: make_threads(10, decay=-1.0), "decay is -1.0"),
        (lambda: make_threads(10, concentration=0.0), "concentration is 0.0"),
        (lambda: make_bernoulli_profiles(10, n_features=0), "n_features is 0"),
    ],
)
def test_errors_name_the_option(call, message):
    with pytest.raises(BadInput, match=message):
        call()
