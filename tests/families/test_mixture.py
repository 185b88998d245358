"""The estimator: what it finds, what it says, and that a chain can stop and go on."""

from __future__ import annotations

import re
import signal
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import is_valid_linkage
from sklearn.metrics import adjusted_rand_score

import shoal
from shoal.errors import BadInput, InterruptedWarning
from shoal.families import ExponentialFamilyMixture, StuckSampler
from shoal.families.plots import MOST_LEAVES, tree_plot
from shoal.families.samplers.schedule import Schedule


def topics(n: int = 300, seed: int = 0, length: int = 12) -> tuple[sp.csr_matrix, np.ndarray]:
    """Three topics of ten words each, and ten common words."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    own = truth[:, None] * 10 + rng.integers(0, 10, (n, length))
    words = np.where(rng.random((n, length)) < 0.3, 30 + rng.integers(0, 10, (n, length)), own)
    rows = np.repeat(np.arange(n), length)
    return sp.csr_matrix((np.ones(n * length), (rows, words.ravel())), shape=(n, 40)), truth


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "poisson"])
@pytest.mark.parametrize("sampler", ["gibbs", "indexed"])
def test_finds_the_topics_and_their_number(family: str, sampler: str) -> None:
    X, truth = topics()
    model = ExponentialFamilyMixture(12, family=family, sampler=sampler, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert model.n_clusters_ <= 5
    held_out, truth_out = topics(seed=1)
    assert adjusted_rand_score(truth_out, model.predict(held_out)) > 0.95
    one_cluster = ExponentialFamilyMixture(1, family=family, random_state=0).fit(X)
    assert model.score(held_out) > one_cluster.score(held_out) + 1


def test_few_short_texts_do_not_end_in_one_cluster() -> None:
    """Learned smoothing and merges by the log joint drove one another there: a label weighs as much as the words."""
    rng = np.random.default_rng(3)
    topics = rng.gamma(0.6, size=(4, 800)) / (np.arange(800) + 10.0)
    topics /= topics.sum(axis=1, keepdims=True)
    truth = rng.integers(0, 4, 1200)
    X = sp.csr_matrix(np.array([rng.multinomial(5, topics[topic]) for topic in truth]), dtype=np.float64)
    model = ExponentialFamilyMixture(4, random_state=0).fit(X)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(truth, model.labels_) > 0.5


def test_labels_are_where_rows_were_most_often() -> None:
    X, _ = topics(length=3)
    model = ExponentialFamilyMixture(4, random_state=0).fit(X)
    agreed = np.mean(model.samples_[:, :, None] == np.arange(4), axis=0)
    np.testing.assert_array_equal(model.agreement_, agreed.max(axis=1))
    assert (agreed.max(axis=1) < 1).any()


def test_attributes_keep_their_definitions() -> None:
    X, _ = topics()
    model = ExponentialFamilyMixture(8, n_sweeps=20, n_samples=5, random_state=0).fit(X)
    assert len(model.log_joint_history_) == model.n_iter_ == 20
    assert model.log_joint_ == max(model.log_joint_history_[10:])
    assert model.samples_.shape == (5, 300)
    assert model.n_clusters_ == len(np.unique(model.labels_)) == len(model.cluster_ids_)
    size = np.bincount(model.labels_)
    assert (np.diff(size) <= 0).all()
    np.testing.assert_array_equal(model.stats_.size, size)
    assert model.stats_.sums.sum() == X.sum()
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (300, model.n_clusters_)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    together = model.sampled_together([0, 1, 2], [0, 5, 9])
    expected = [np.mean(model.samples_[:, a] == model.samples_[:, b]) for a, b in [(0, 0), (1, 5), (2, 9)]]
    np.testing.assert_allclose(together, expected)
    numbers, probability = model.n_clusters_posterior_
    assert probability.sum() == pytest.approx(1)
    assert set(numbers) == {len(np.unique(sample)) for sample in model.samples_}
    assert len(np.unique(model.consensus_labels_)) in numbers
    assert model.typicality().shape == (300,)
    assert model.cluster_uncertainty().shape == (model.n_clusters_,)


def test_top_features_are_the_topic_words() -> None:
    X, truth = topics()
    model = ExponentialFamilyMixture(8, random_state=0).fit(X)
    for cluster in range(3):
        topic = np.bincount(truth[model.labels_ == cluster]).argmax()
        top = model.top_features(cluster, 8)
        assert set(top.features // 10) == {topic}
        assert (top.low < top.values).all()
        assert (top.values < top.high).all()


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "poisson"])
@pytest.mark.parametrize(
    ("sampler", "parallel"), [("gibbs", False), ("indexed", False), ("indexed", True), ("fastex", False)]
)
@pytest.mark.parametrize("n_before", [1, 3, 6])
def test_interrupted_and_resumed_is_uninterrupted(
    family: str, sampler: str, parallel: bool, n_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = topics(length=6)
    options = {"family": family, "sampler": sampler, "parallel": parallel, "n_sweeps": 14, "random_state": 3}
    whole = ExponentialFamilyMixture(10, **options).fit(X)
    stopped = ExponentialFamilyMixture(10, **options)
    seen = []

    planned = Schedule.adapts

    def stop_in_burn_in(schedule: Schedule, sweep: int) -> bool:
        seen.append(sweep)
        if len(seen) == n_before:
            signal.raise_signal(signal.SIGINT)
        return planned(schedule, sweep)

    with monkeypatch.context() as patch:
        patch.setattr(Schedule, "adapts", stop_in_burn_in)
        with pytest.warns(InterruptedWarning):
            stopped.fit(X)
    assert stopped.n_iter_ == n_before
    stopped.resume(X)
    assert stopped.log_joint_history_ == whole.log_joint_history_
    np.testing.assert_array_equal(stopped.labels_, whole.labels_)
    np.testing.assert_array_equal(stopped.samples_, whole.samples_)
    assert whole.n_iter_ == 14


def test_seed_decides() -> None:
    X, _ = topics()
    one = ExponentialFamilyMixture(10, random_state=5, n_threads=1).fit(X)
    two = ExponentialFamilyMixture(10, random_state=5, n_threads=2).fit(X)
    np.testing.assert_array_equal(one.samples_, two.samples_)
    assert one.log_joint_history_ == two.log_joint_history_
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_lists_made_on_threads_are_the_same() -> None:
    X, truth = topics(n=9000)
    options = {"sampler": "indexed", "n_sweeps": 4, "init": "one-pass", "random_state": 1}
    one = ExponentialFamilyMixture(10, n_threads=1, **options).fit(X)
    two = ExponentialFamilyMixture(10, n_threads=2, **options).fit(X)
    assert one.log_joint_history_ == two.log_joint_history_
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert adjusted_rand_score(truth, one.labels_) > 0.9


def test_samples_look_like_the_rows() -> None:
    X, _ = topics()
    model = ExponentialFamilyMixture(8, random_state=0).fit(X)
    rows, clusters = model.sample(200, length=12, random_state=0)
    assert rows.shape == (200, 40)
    assert (np.asarray(rows.sum(axis=1)).ravel() == 12).all()
    assert (model.predict(rows) == clusters).mean() > 0.9


def test_start_labels_are_used_and_judged() -> None:
    X, truth = topics()
    model = ExponentialFamilyMixture(4, init=truth, n_sweeps=2, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    with pytest.raises(BadInput, match="init holds labels"):
        ExponentialFamilyMixture(4, init=truth + 3).fit(X)


@pytest.mark.parametrize(
    ("option", "value"),
    [("family", "beta"), ("sampler", "exact"), ("n_clusters", 0), ("concentration", -1.0), ("smoothing", "no")],
)
def test_wrong_options_are_named(option: str, value: object) -> None:
    with pytest.raises(BadInput, match=option):
        ExponentialFamilyMixture(**{option: value}).fit(np.ones((3, 2)))


def test_resume_wants_the_same_rows() -> None:
    X, _ = topics()
    model = ExponentialFamilyMixture(4, n_sweeps=2, random_state=0).fit(X)
    with pytest.raises(BadInput, match="same order"):
        model.resume(X[:10])


def blobs(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    return np.array([[0.0, 0], [6, 0], [0, 8]])[truth] + rng.normal(size=(n, 2)), truth


@pytest.mark.parametrize("sampler", ["gibbs", "fastex"])
@pytest.mark.parametrize("covariance", ["diagonal", "spherical"])
def test_finds_blobs_and_their_number(sampler: str, covariance: str) -> None:
    X, truth = blobs()
    options = {"family": "gaussian", "sampler": sampler, "covariance": covariance, "random_state": 0}
    model = ExponentialFamilyMixture(10, **options).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert 3 <= model.n_clusters_ <= 4
    np.testing.assert_array_equal(model.predict(X), model.fit(sp.csr_matrix(X)).predict(X))
    held_out, _ = blobs(seed=1)
    assert model.score(held_out) > ExponentialFamilyMixture(1, **options).fit(X).score(held_out) + 0.5
    rows, clusters = model.sample(300, random_state=0)
    assert (model.predict(rows) == clusters).mean() > 0.9
    assert model.top_features(0, 1).features.shape == (1,)


def test_hashes_find_topics_with_enough_bits_and_warn_without() -> None:
    X, truth = topics()
    model = ExponentialFamilyMixture(6, sampler="fastex", n_bits=256, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    with pytest.warns(StuckSampler, match="32-bit"):
        ExponentialFamilyMixture(
            50,
            sampler="fastex",
            hashes="published",
            n_bits=32,
            init="random",
            smoothing=0.001,
            n_sweeps=5,
            random_state=0,
        ).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concentration": 0}, "concentration is 0; give a positive number or 'learn'"),
        ({"concentration": "auto"}, "concentration is 'auto'"),
        ({"smoothing": -1.0}, "a number, 0 or more, or 'auto' or 'learn'"),
        ({"smoothing": 0, "background": 0.0}, "both 0"),
        ({"background": float("nan")}, "background is nan"),
        ({"family": "poisson", "smoothing": 0.1}, "family='poisson' has none. Leave it 'auto', and set background"),
        ({"family": "bernoulli", "smoothing": "learn"}, "family='bernoulli' has none"),
        ({"family": "bernoulli", "background": 0}, "background is 0; give a positive number"),
        ({"family": "gaussian", "background": "learn"}, "family='gaussian' has none"),
        ({"family": "gaussian", "smoothing": 0}, "smoothing is 0; give a positive number"),
    ],
)
def test_a_prior_that_is_none_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        ExponentialFamilyMixture(3, **options).fit(topics()[0])


@pytest.mark.parametrize("repeats", [1, 20])
def test_what_is_to_be_learned_is_learned_for_short_and_long_rows(repeats: int) -> None:
    X, _ = topics()
    X = X * repeats
    for smoothing in ("auto", "learn", 0.0, 0.3):
        for background in ("auto", "learn", 0.0, 7.0):
            if smoothing == background == 0.0:
                continue
            options = {"smoothing": smoothing, "background": background}
            hyperparameters = ExponentialFamilyMixture(6, n_sweeps=4, random_state=0, **options).fit(X).hyperparameters_
            for option, name, first in ((smoothing, "smoothing", 0.1), (background, "strength", 500.0)):
                if option == "learn":
                    assert hyperparameters[name] > 0
                    assert hyperparameters[name] != first
                elif option != "auto":
                    assert hyperparameters[name] == option


def test_tree_joins_what_is_alike_first() -> None:
    X, _ = topics()
    model = ExponentialFamilyMixture(8, random_state=0).fit(X)
    tree = model.hierarchy_
    k = model.n_clusters_
    assert tree.merges.shape == (k - 1, 2)
    assert tree.sizes[-1] == 300
    assert tree.linkage().shape == (k - 1, 4)
    for n_groups in range(1, k + 1):
        assert len(np.unique(model.cut(n_groups))) == n_groups
    total = model.family_.log_marginal(model.stats_).sum() - tree.losses.sum()
    whole = model.family_.log_marginal(model.family_.statistics(X, np.zeros(300, np.int64), 1))[0]
    assert total == pytest.approx(whole, rel=1e-9)


def test_partial_fit_folds_new_rows_in_and_opens_clusters() -> None:
    X, truth = topics(length=30)
    known, new = X[truth < 2], X[truth == 2]
    model = ExponentialFamilyMixture(6, random_state=0).partial_fit(known)
    assert model.n_clusters_ == 2
    model.partial_fit(new)
    assert model.n_clusters_ == 3
    assert (model.labels_ == 2).mean() > 0.95
    assert model.stats_.size.sum() == 300
    assert model.stats_.sums.sum() == X.sum()
    assert model.roster_.ids.tolist() == [0, 1, 2]
    assert adjusted_rand_score(truth, model.predict(X)) > 0.95


def test_saved_interrupted_and_resumed(tmp_path: Any) -> None:
    X, _ = topics()
    model = ExponentialFamilyMixture(10, n_sweeps=8, sampler="indexed", random_state=3).fit(X)
    shoal.save(tmp_path / "model.shoal", model)
    loaded = shoal.load(tmp_path / "model.shoal")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    model.resume(X, n_sweeps=5)
    loaded.resume(X, n_sweeps=5)
    assert model.log_joint_history_ == loaded.log_joint_history_
    np.testing.assert_array_equal(model.samples_, loaded.samples_)


def test_a_tree_with_more_clusters_than_it_shows_is_drawn() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(60), 6)
    words = truth[:, None] * 4 + rng.integers(0, 4, (len(truth), 9))
    X = sp.csr_matrix((np.ones(words.size), (np.repeat(np.arange(len(truth)), 9), words.ravel())))
    model = ExponentialFamilyMixture(60, init=truth, n_sweeps=2, random_state=0).fit(X)
    assert model.n_clusters_ > MOST_LEAVES
    assert is_valid_linkage(model.hierarchy_.linkage())
    axes = tree_plot(model).axes[0]
    assert len(axes.get_yticklabels()) == MOST_LEAVES
