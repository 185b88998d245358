"""Law 2: a loaded model is the model, learning included, bit for bit."""

from __future__ import annotations

from typing import Any

from contract.cases import Case, asked, cases, fingerprint, learn, named, same_answers, saved_and_loaded
from shoal import cluster_cards


@cases("a loaded model answers")
def test_a_loaded_model_answers_as_the_model(case: Case, tmp_path: Any) -> None:
    model = case.fitted()
    again = saved_and_loaded(model, tmp_path)
    same_answers(asked(again, case.rows(1)), asked(model, case.rows(1)))
    if hasattr(model, "cluster_ids_"):
        assert cluster_cards(again) == cluster_cards(model)


@cases("a loaded model learns")
def test_a_loaded_model_learns_on(case: Case, tmp_path: Any) -> None:
    model = case.make()
    if not hasattr(model, "partial_fit"):
        assert not hasattr(type(model), "partial_fit")
        return
    begin = 0.0 if case.streams else None
    learn(model, named(case.rows(0)), begin)
    again = saved_and_loaded(model, tmp_path)
    later = 1000.0 if case.streams else None
    learn(model, named(case.rows(1)), later, more=True)
    learn(again, named(case.rows(1)), later, more=True)
    assert fingerprint(again) == fingerprint(model)
    same_answers(asked(again, case.rows(2)), asked(model, case.rows(2)))


@cases("a loaded model is edited")
def test_a_loaded_model_can_be_edited(case: Case, tmp_path: Any) -> None:
    model = case.fitted()
    again = saved_and_loaded(model, tmp_path)
    for each in (model, again):
        ids = each.cluster_ids_.tolist()
        each.name_cluster(ids[0], "the first")
        each.pin_cluster(ids[1])
        each.merge_clusters([ids[1]], into=ids[0])
    assert fingerprint(again) == fingerprint(model)
    same_answers(asked(again, case.rows(2)), asked(model, case.rows(2)))
