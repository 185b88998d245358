"""Law 1: asking changes nothing, and answers the same from eight threads at once as from one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from contract.cases import Case, asked, cases, fingerprint, learn, same_answers
from shoal import cluster_cards


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
