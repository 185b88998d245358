"""Law 8: ids are for ever; names, pins and what happened to a cluster reach cards and JSON."""

from __future__ import annotations

import numpy as np
import pytest

from contract.cases import Case, cases, fingerprint, learn, named
from shoal import cluster_cards
from shoal.errors import BadInput


@cases("names reach cards")
def test_names_reach_cards(case: Case) -> None:
    model = case.fitted()
    id_ = int(model.cluster_ids_[0])
    model.name_cluster(id_, "tea & biscuits")
    assert {card.id: card.name for card in cluster_cards(model)}[id_] == "tea & biscuits"
    with pytest.raises(BadInput, match=r"no (live )?cluster has id 99999"):
        model.name_cluster(99999, "nobody")


@cases("merging clusters")
def test_merged_clusters_keep_every_item(case: Case) -> None:
    model = case.fitted()
    ids = model.cluster_ids_.tolist()
    assert len(ids) >= 3, ids
    sizes = dict(zip(ids, np.asarray(model.cluster_sizes_).tolist(), strict=True))
    n_items = sum(card.size for card in cluster_cards(model))
    model.name_cluster(ids[1], "the second")
    model.merge_clusters([ids[1], ids[2]], into=ids[0])
    assert model.cluster_ids_.tolist() == [id_ for id_ in ids if id_ not in ids[1:3]]
    assert not np.isin(model.labels_, ids[1:3]).any()
    cards = {card.id: card for card in cluster_cards(model)}
    assert sum(card.size for card in cards.values()) == n_items
    merged = dict(zip(model.cluster_ids_.tolist(), np.asarray(model.cluster_sizes_).tolist(), strict=True))
    assert merged[ids[0]] == pytest.approx(sum(sizes[id_] for id_ in ids[:3]), rel=0.02, abs=0.5)
    assert cards[ids[0]].name == "the second"
    assert not np.isin(model.predict(case.rows(1)), ids[1:3]).any()
    events = [(event["kind"], event["id"], event["into"]) for event in model.roster_.events]
    assert ("merge", ids[1], ids[0]) in events
    assert ("merge", ids[2], ids[0]) in events


@cases("merging clusters")
def test_a_merge_that_cannot_be_changes_nothing(case: Case) -> None:
    model = case.fitted()
    ids = model.cluster_ids_.tolist()
    sizes = np.asarray(model.cluster_sizes_).tolist()
    wrong = ([ids[0]], ids[0]), ([99999], ids[0]), ([ids[0]], 99999), ([], ids[0])
    for clusters, into in (*wrong, ([ids[1], 99999], ids[0]), ([ids[1] + 0.5], ids[0]), (["x"], ids[0])):
        with pytest.raises(BadInput):
            model.merge_clusters(clusters, into=into)
    assert model.cluster_ids_.tolist() == ids
    assert np.asarray(model.cluster_sizes_).tolist() == sizes


@cases("merging clusters")
def test_a_cluster_named_twice_is_merged_once(case: Case) -> None:
    once, twice = case.fitted(), case.fitted()
    first, second, *others = once.cluster_ids_.tolist()
    once.merge_clusters([second], into=first)
    twice.merge_clusters([second, first, second], into=first)
    assert twice.cluster_ids_.tolist() == once.cluster_ids_.tolist() == [first, *others]
    np.testing.assert_allclose(twice.cluster_sizes_, once.cluster_sizes_)
    np.testing.assert_array_equal(twice.labels_, once.labels_)
    np.testing.assert_array_equal(twice.predict(case.rows(1)), once.predict(case.rows(1)))


@cases("merging clusters")
def test_odd_questions_about_clusters_are_refused(case: Case) -> None:
    model = case.fitted()
    cluster = int(model.cluster_ids_[0])
    for wrong in (-3, 1.5, "ten"):
        with pytest.raises(BadInput):
            model.top_features(cluster, n=wrong)
    for wrong in (99999, "0", None):
        with pytest.raises(BadInput):
            model.name_cluster(wrong, "x")
    assert len(model.top_features(cluster, n=0).features) == 0


@cases("learning keeps ids")
def test_learning_keeps_ids_names_and_cards(case: Case) -> None:
    model = case.make()
    if not hasattr(model, "partial_fit"):
        return
    learn(model, named(case.rows(0)), 0.0 if case.streams else None)
    id_ = int(model.cluster_ids_[np.argmax(model.cluster_sizes_)])
    model.name_cluster(id_, "kept")
    size = {card.id: card.size for card in cluster_cards(model)}[id_]
    learn(model, named(case.rows(1)), 200.0 if case.streams else None, more=True)
    cards = {card.id: card for card in cluster_cards(model)}
    assert cards[id_].name == "kept"
    assert cards[id_].size >= size


@cases("identity across fits")
def test_a_new_fit_takes_over_ids_names_and_pins(case: Case) -> None:
    old = learn(case.make(), named(case.rows(0)), None)
    ids = old.cluster_ids_.tolist()
    order = np.argsort(-np.asarray(old.cluster_sizes_), kind="stable")
    first, second = (int(old.cluster_ids_[at]) for at in order[:2])
    old.name_cluster(first, "the largest")
    old.pin_cluster(second)
    before = fingerprint(old)
    rows = named(case.rows(0)[::-1])  # other first rows, so other numbers
    new = case.make().set_params(random_state=7).fit(rows, identity_from=old)
    assert fingerprint(old) == before
    assert new.roster_.names.get(first) == "the largest"
    assert second in new.roster_.pinned
    shared = np.isin(ids, new.cluster_ids_)
    assert shared.sum() >= 3
    assert np.mean(new.predict(rows) == old.predict(rows)) > 0.9
    assert np.mean(new.labels_ == new.predict(rows)) > 0.9
    assert {card.id: card.name for card in cluster_cards(new)}[first] == "the largest"
