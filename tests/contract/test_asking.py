"""Law 1: asking changes nothing, and answers the same from eight threads at once as from one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest

from contract.cases import Case, asked, cases, fingerprint, is_excused, learn, same_answers
from shoal import cluster_cards
from shoal.errors import BadInput


@cases("asking changes nothing")
def test_asking_changes_nothing(case: Case, tmp_path: Any) -> None:
    from shoal import save

    model, X = case.fitted(), case.rows(1)
    before = fingerprint(model)
    first = asked(model, X)
    if hasattr(model, "cluster_ids_"):
        cluster_cards(model)
    save(tmp_path / "model.shoal", model)
    if hasattr(model, "sample"):
        model.sample(5, random_state=0)
    if hasattr(model, "suggest"):
        model.suggest([0, 1])
    assert fingerprint(model) == before
    same_answers(asked(model, X), first)


@cases("asking from threads")
def test_eight_threads_answer_as_one(case: Case) -> None:
    model = case.fitted()
    questions = [case.rows(seed)[: 40 + seed] for seed in range(8)]
    expected = [asked(model, X) for X in questions]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            for answer, wanted in zip(pool.map(lambda X: asked(model, X), questions), expected, strict=True):
                same_answers(answer, wanted)


@cases("a loaded model learns")
def test_asking_beside_learning(case: Case) -> None:
    """Questions on other threads are answered, from what was learned so far; compiled code never sees half a model."""
    model, X, failed = case.fitted(), case.rows(1), []
    if not (case.streams or case.name in ("kmeans-exact", "bernoulli-adf", "families-gaussian")):
        return  # the other paths replace their arrays in the same way
    done = Event()

    def ask() -> None:
        while not done.is_set():
            try:
                asked(model, X)
            except Exception as error:
                failed.append(error)

    with ThreadPoolExecutor(2) as pool:
        pool.submit(ask)
        pool.submit(ask)
        try:
            for day in range(1, 5):
                learn(model, case.rows(day), 1000.0 * day if case.streams else None, more=True)
        finally:
            done.set()
    assert not failed


@cases("one vocabulary of asking")
def test_every_model_answers_the_same_questions(case: Case) -> None:
    """CONTRACT 3: one name and one meaning for each question that the mathematics allows."""
    model, X = case.fitted(), case.rows(1)
    n, ids = X.shape[0], model.cluster_ids_
    assert model.predict(X).shape == model.assign(X).labels.shape == (n,)
    assert model.score_samples(X).shape == (n,)
    assert np.isscalar(model.score(X))
    assert len(model.top_features(int(ids[0]), n=3).features) <= 3
    assert model.n_clusters_ == len(ids)
    if is_excused("iterations", case) is None:
        assert isinstance(model.converged_, bool | np.bool_)
        assert np.ndim(model.objective_history_) == 1
        assert int(model.n_iter_) >= 0
    if is_excused("probabilities", case) is not None:
        with pytest.raises(BadInput, match="no probabilities"):
            model.same_cluster_probability(X, X)
        return
    same = model.same_cluster_probability(X, X[::-1])
    own = model.predict_proba(X)[:, : len(ids)]
    np.testing.assert_allclose(same, (own * own[::-1]).sum(axis=1), atol=1e-9)
    assert ((same >= 0) & (same <= 1 + 1e-9)).all()
    if is_excused("sampling", case) is None:
        drawn, labels = model.sample(6, random_state=1)
        again, _ = model.sample(6, random_state=1)
        assert len(labels) == 6
        assert set(labels.tolist()) <= {-1, *ids.tolist()}
        np.testing.assert_array_equal(np.asarray(model.predict(drawn)), np.asarray(model.predict(again)))
