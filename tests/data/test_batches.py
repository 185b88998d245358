"""Batches, stacked, are what ``read`` gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import BadInput, BadSource

TEXTS = ["one two two", "two three", "", "four one", "three three three", "five five", "two"]
SHAPES = {
    "text": (pa.table({"id": list("abcdefg"), "words": TEXTS}), {"text": "words"}),
    "list": (pa.table({"id": list("abcdefg"), "words": [text.split() for text in TEXTS]}), {"features": "words"}),
    "delimited": (pa.table({"id": list("abcdefg"), "words": TEXTS}), {"features": "words", "delimiter": " "}),
}


def stacked(batches):
    batches = list(batches)
    return sp.vstack([batch.X for batch in batches], "csr"), batches


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch_rows", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("options", [{}, {"weighting": "tfidf", "min_items": 2, "max_features": 2}])
def test_two_passes_give_what_read_gives(shape, batch_rows, options):
    table, columns = SHAPES[shape]
    whole = shoal.read(table, item="id", **columns, **options)
    X, batches = stacked(shoal.read_batches(table, item="id", batch_rows=batch_rows, **columns, **options))
    assert abs(X - whole.X).max() < 1e-15
    assert all(batch.vocabulary == whole.vocabulary for batch in batches)
    assert [id_ for batch in batches for id_ in batch.ids] == whole.ids.tolist()
    assert sum(batch.summary["empty_rows"] for batch in batches) == whole.summary["empty_rows"]
    if not options:
        assert [len(batch) for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)


pairs = st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abcde"), st.integers(1, 5)), min_size=1, max_size=60)


@settings(max_examples=40)
@given(pairs, st.integers(1, 4), st.integers(1, 50))
def test_long_tables_come_sorted_by_item(rows, batch_rows, pairs_at_once):
    table = pa.table({name: list(column) for name, column in zip("ifw", zip(*rows, strict=True), strict=True)})
    columns = {"item": "i", "feature": "f", "weight": "w"}
    whole = shoal.read(table, **columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.data.long_tables.PAIRS", pairs_at_once)
        X, batches = stacked(shoal.read_batches(table, batch_rows=batch_rows, **columns))
    assert [id_ for batch in batches for id_ in batch.ids] == sorted(whole.ids)
    assert [len(batch) for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)
    assert all(batch.vocabulary == whole.vocabulary for batch in batches)
    assert abs(X - whole.X[np.argsort(whole.ids.astype(str))]).max() == 0


def test_a_vocabulary_that_grows():
    table, columns = SHAPES["list"]
    batches = list(shoal.read_batches(table, batch_rows=2, grow=True, **columns))
    assert [list(batch.vocabulary) for batch in batches] == [
        ["one", "two", "three"],
        ["one", "two", "three", "four"],
        ["one", "two", "three", "four", "five"],
        ["one", "two", "three", "four", "five"],
    ]
    assert [batch.X.shape[1] for batch in batches] == [3, 4, 5, 5]
    start = batches[0].vocabulary
    more = list(shoal.read_batches(table, batch_rows=99, grow=True, vocabulary=["zero", "two"], **columns))
    assert list(more[0].vocabulary)[:3] == ["zero", "two", "one"]
    assert len(start) == 3  # an early batch is not changed by later ones


def test_a_fixed_vocabulary_takes_one_pass():
    table, columns = SHAPES["list"]
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    X, batches = stacked(shoal.read_batches(reader, vocabulary=["two", "one"], batch_rows=4, **columns))
    assert X.toarray().tolist() == [[1, 1], [1, 0], [0, 0], [0, 1], [0, 0], [0, 0], [1, 0]]
    assert sum(batch.summary["unknown_features"] for batch in batches) == 4


def test_a_recipe_in_batches():
    table, columns = SHAPES["text"]
    whole = shoal.read(table, **columns)
    X, _ = stacked(shoal.read_batches(table, recipe=whole, batch_rows=3))
    assert abs(X - whole.X).max() < 1e-15


def test_idf_for_a_fixed_vocabulary_needs_a_first_pass():
    table, columns = SHAPES["text"]
    whole = shoal.read(table, vocabulary=["two", "one"], **columns)
    X, _ = stacked(shoal.read_batches(table, vocabulary=["two", "one"], batch_rows=3, **columns))
    assert abs(X - whole.X).max() < 1e-15


def test_the_unit_of_times_is_told_from_all_of_them():
    """The first batch alone, with small numbers, would be taken for seconds."""
    table = pa.table({"t": [0, 1000, 1_546_398_245_000], "tags": [["a"]] * 3})
    for options in ({}, {"grow": True}, {"vocabulary": ["a"]}):
        batches = list(shoal.read_batches(table, features="tags", time="t", batch_rows=1, **options))
        assert [batch.times[0] for batch in batches] == [0.0, 1.0, 1_546_398_245.0]


def test_rows_keep_their_numbers():
    batches = shoal.read_batches(pa.table({"tags": [["a"], ["b"], ["c"]]}), features="tags", batch_rows=2)
    assert [batch.ids.tolist() for batch in batches] == [[0, 1], [2]]


def test_matrices_are_cut():
    X = sp.random(10, 5, 0.5, "csr", random_state=0)
    again, batches = stacked(shoal.read_batches(X, batch_rows=4))
    assert abs(again - X).max() == 0
    assert [len(batch) for batch in batches] == [4, 4, 2]


def test_what_cannot_be_done_in_batches():
    table, columns = SHAPES["text"]
    with pytest.raises(BadInput, match="min_items= needs to have seen every item"):
        shoal.read_batches(table, grow=True, min_items=2)
    with pytest.raises(BadInput, match="tfidf needs to have seen every item"):
        shoal.read_batches(table, grow=True, weighting="tfidf")
    with pytest.raises(BadInput, match="which needs two passes"):
        list(shoal.read_batches(table, grow=True, **columns))
    with pytest.raises(BadInput, match="batch_rows is 0"):
        shoal.read_batches(table, batch_rows=0)


@pytest.mark.parametrize(
    ("options", "passes"),
    [({"time_unit": "s"}, 2), ({"grow": True}, 2), ({"vocabulary": ["a"]}, 2), ({"time_unit": "s", "grow": True}, 1)],
)
def test_the_source_is_passed_over_twice_at_most(monkeypatch, options, passes):
    """But for one more over the times alone, where they are numbers of no given unit."""
    from shoal.data.table import Table

    seen = []
    for name in ("batches", "time_unit"):
        real = getattr(Table, name)
        monkeypatch.setattr(Table, name, lambda *a, real=real, **k: seen.append(1) or real(*a, **k))
    table = pa.table({"t": [5, 6, 7], "tags": [["a"], ["b"], ["a"]]})
    list(shoal.read_batches(table, features="tags", time="t", batch_rows=2, **options))
    assert len(seen) == passes


def test_what_stands_beside_an_item_is_taken_from_its_first_row():
    table = pa.table({"i": ["b", "a", "b", "a"], "f": ["x", "y", "y", "x"], "o": ["second", "first", "no", "no"]})
    (batch,) = shoal.read_batches(table, item="i", feature="f", owner="o")
    assert (batch.ids.tolist(), batch.owners.tolist()) == (["a", "b"], ["first", "second"])
    assert list(batch.vocabulary) == ["x", "y"]


@pytest.mark.parametrize("items", [["a", ""], ["a", None], [None, None]])
def test_pairs_of_no_item_are_refused(items):
    table = pa.table({"i": pa.array(items, pa.string()), "f": ["x", "y"]})
    with pytest.raises(BadInput, match="no item in column 'i'"):
        list(shoal.read_batches(table, item="i", feature="f"))


def test_too_little_memory_is_said_with_what_to_do():
    table = pa.table({"i": [str(at) for at in range(200_000)], "f": ["x"] * 200_000})
    with pytest.raises(BadSource, match=r"more memory than DuckDB may hold.*memory_mb="):
        list(shoal.read_batches(table, item="i", feature="f", memory_mb=1))
