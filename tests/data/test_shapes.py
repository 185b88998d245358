"""List, delimited and long columns, filters and weightings, against plain counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction import DictVectorizer

import shoal
from oracles.data import as_dicts, count_rows, filtered
from shoal.data import Vocabulary
from shoal.errors import BadInput

feature = st.sampled_from(["ant", "bee", "cow", "dúck", "Ant", "é", "a b"])
lists = st.lists(st.none() | st.lists(st.none() | feature | st.just(""), max_size=8), min_size=1, max_size=10)


def list_table(rows):
    return pa.table({"id": [f"row {n}" for n in range(len(rows))], "tags": pa.array(rows, pa.list_(pa.string()))})


@settings(max_examples=60)
@given(lists, st.integers(1, 3), st.none() | st.integers(1, 4))
def test_lists_are_counted_and_filtered(rows, min_items, max_features):
    counted = count_rows([[name for name in row or [] if name] for row in rows])
    expected, stay = filtered(counted, min_items, max_features)
    options = {"features": "tags", "weighting": "count", "min_items": min_items, "max_features": max_features}
    if not any(expected):
        with pytest.raises(BadInput, match="items has a feature left"):
            shoal.read(list_table(rows), **options)
        return
    dataset = shoal.read(list_table(rows), **options)
    assert as_dicts(dataset.X, dataset.vocabulary) == expected
    assert dataset.ids.tolist() == [f"row {n}" for n in stay]
    assert dataset.summary["items_dropped"] == len(rows) - len(stay)
    assert dataset.summary["features_dropped"] == len(set().union(*counted)) - len(dataset.vocabulary)
    assert dataset.summary["empty_rows"] == sum(not row for row in expected)
    assert dataset.X.has_canonical_format


def test_items_too_long_are_dropped_before_features_are_counted():
    """The rare feature is in two items, but one of them is too long to stay."""
    rows = [["a", "b", "rare"], ["a", "b"], ["rare", "a"], ["b", "a"]]
    dataset = shoal.read(list_table(rows), features="tags", min_items=2, max_features=2)
    assert list(dataset.vocabulary) == ["a", "b"]
    assert (dataset.summary["items_dropped"], dataset.summary["features_dropped"]) == (1, 1)


def test_rows_without_ids_keep_their_numbers_when_others_go():
    table = pa.table({"tags": [["a"], ["a", "b"], ["b"]]})
    assert shoal.read(table, features="tags").ids is None
    assert shoal.read(table, features="tags", max_features=1).ids.tolist() == ["0", "2"]


@settings(max_examples=60)
@given(
    st.lists(st.lists(feature, max_size=5), min_size=1, max_size=8).filter(any), st.sampled_from([",", ";", "||", "→"])
)
def test_delimited_text_is_cut(rows, delimiter):
    table = pa.table({"tags": [f" {delimiter} ".join(row) + delimiter for row in rows]})
    dataset = shoal.read(table, features="tags", delimiter=delimiter, weighting="count")
    assert as_dicts(dataset.X, dataset.vocabulary) == count_rows(rows)


pairs = st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), feature, st.floats(0, 9)), min_size=1, max_size=30)


@settings(max_examples=40)
@given(pairs)
def test_long_tables_are_gathered(rows):
    table = pa.table({name: list(column) for name, column in zip("ifw", zip(*rows, strict=True), strict=True)})
    expected: dict[str, Counter[str]] = {}
    for item, name, weight in rows:
        expected.setdefault(item, Counter())[name] += weight
    vectors = DictVectorizer().fit(expected.values())
    if not any(weight for *_, weight in rows):
        with pytest.raises(BadInput, match="has a feature left"):
            shoal.read(table, item="i", feature="f", weight="w")
        return
    dataset = shoal.read(table, item="i", feature="f", weight="w")
    assert dataset.ids.tolist() == list(expected)
    order = vectors.transform(expected.values())
    order.eliminate_zeros()
    ours = as_dicts(dataset.X, dataset.vocabulary)
    assert ours == [pytest.approx(row) for row in as_dicts(order, vectors.get_feature_names_out())]
    count = shoal.read(table.drop_columns("w"), item="i", feature="f")
    assert count.X.sum() == len(rows)


def test_a_long_table_keeps_what_stands_beside_an_item():
    table = pa.table(
        {
            "user": [7, 3, 7],
            "tag": ["a", "b", "b"],
            "when": ["2020-01-02", "2020-01-01", "2021-01-01"],
            "who": ["ann", "bob", "zoe"],
        }
    )
    dataset = shoal.read(table, item="user", feature="tag", time="when", owner="who", label="who")
    assert dataset.ids.tolist() == ["7", "3"]
    assert dataset.owners.tolist() == dataset.labels.tolist() == ["ann", "bob"]
    assert dataset.times.tolist() == [1577923200.0, 1577836800.0]
    assert dataset.X.toarray().tolist() == [[1, 1], [0, 1]]


def test_lists_may_have_weights_beside_them():
    table = pa.table({"tags": [["a", "b", "a"], []], "n": [[1.0, 0.0, 2.5], []]})
    dataset = shoal.read(table, features="tags", weight="n")
    assert (dataset.X.toarray().tolist(), list(dataset.vocabulary)) == ([[3.5], [0.0]], ["a"])
    assert dataset.recipe.weighting == "count"
    with pytest.raises(BadInput, match=r"row 1 has 2 features in 'tags' but 1 weights in 'n'"):
        shoal.read(pa.table({"tags": [["a", "b"]], "n": [[1.0]]}), features="tags", weight="n")
    with pytest.raises(BadInput, match=r"row 2 of column 'n' holds -1"):
        shoal.read(pa.table({"tags": [["a"], ["b"]], "n": [[1.0], [-1.0]]}), features="tags", weight="n")


def test_numbers_are_features_too():
    dataset = shoal.read(pa.table({"item": [1, 1, 2], "tag": [10, 11, 10]}))
    assert list(dataset.vocabulary) == ["10", "11"]
    assert dataset.recipe.shape == "long"
    lists = shoal.read(pa.table({"item": [1], "tags": [[10, 11]]}))
    assert list(lists.vocabulary) == ["10", "11"]


def test_a_fixed_vocabulary_sets_the_columns():
    table = list_table([["b", "zebra", "a"], ["zebra"], None])
    dataset = shoal.read(table, features="tags", vocabulary=["a", "b", "c"])
    assert dataset.X.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert (dataset.summary["unknown_features"], dataset.summary["empty_rows"]) == (2, 2)
    long = pa.table({"i": ["x", "x", "y"], "f": ["a", "zebra", ""]})
    dataset = shoal.read(long, item="i", feature="f", vocabulary=Vocabulary(["b", "a"]))
    assert dataset.X.toarray().tolist() == [[0, 1], [0, 0]]
    assert dataset.summary["unknown_features"] == 1
    with pytest.raises(BadInput, match="min_items= would leave out columns"):
        shoal.read(table, features="tags", vocabulary=["a"], min_items=2)


def test_a_recipe_reads_another_table_alike():
    dataset = shoal.read(list_table([["a", "b"], ["b"]]), item="id", features="tags", label="id", weighting="tfidf")
    other = pa.table({"name": ["n"], "words": [["b", "q"]]})
    again = shoal.read(other, recipe=dataset, features="words", item="name")
    assert again.ids.tolist() == ["n"]
    assert again.labels is None  # its column is not in the new table, and nobody asked for it now
    assert again.X.toarray().tolist() == [[0.0, 1.0]]

    class Model:
        recipe_, vocabulary_ = dataset.recipe, dataset.vocabulary

    for known in ({"recipe": Model()}, {"recipe": dataset.recipe, "vocabulary": dataset.vocabulary}):
        assert abs(shoal.read(other, features="words", **known).X - again.X).max() == 0
    with pytest.raises(BadInput, match="a Recipe alone does not name the columns"):
        shoal.read(other, recipe=dataset.recipe)
    with pytest.raises(BadInput, match="carries no recipe"):
        shoal.read(other, recipe=object())


def test_parts_of_a_dataset():
    table = pa.table({"id": list("abc"), "tags": [["x"], ["y"], []], "t": [1.0, 2.0, 3.0], "who": ["p", None, "q"]})
    dataset = shoal.read(table, time="t", owner="who", label="who")
    part = dataset[np.array([False, True, True])]
    assert (len(part), part.ids.tolist(), part.times.tolist()) == (2, ["b", "c"], [2.0, 3.0])
    assert part.owners.tolist() == [None, "q"]
    assert part.summary["empty_rows"] == 1
    assert dataset.rows([2, 0]).ids.tolist() == ["c", "a"]
    assert dataset[1].ids.tolist() == ["b"]
    assert len(dataset.rows([])) == 0
    bare = shoal.read(sp.eye(3, format="csr"))
    assert bare.rows(slice(1, 3)).ids.tolist() == [1, 2]


def test_dtype_and_auto_weighting():
    table = list_table([["a", "a"], ["b"]])
    assert shoal.read(table, features="tags").X.toarray().tolist() == [[1, 0], [0, 1]]
    assert shoal.read(table, features="tags", dtype=np.float32).X.dtype == np.float32
    unit = shoal.read(table, features="tags", weighting="count", unit_length=True)
    assert unit.X.toarray().tolist() == [[1, 0], [0, 1]]
    with pytest.raises(BadInput, match="dtype is"):
        shoal.read(table, features="tags", dtype=int)
    with pytest.raises(BadInput, match="weighting is 'tf'"):
        shoal.read(table, features="tags", weighting="tf")


def test_guesses_are_told():
    frame = pd.DataFrame({"id": [1, 2], "title": ["two words", "three more words"]})
    dataset = shoal.read(frame)
    assert (dataset.recipe.text, dataset.recipe.item, dataset.recipe.weighting) == ("title", "id", "tfidf")
    assert len(dataset.summary["guessed"]) == 2
    plain = pa.table({"id": [1, 2, 3], "tags": ["a b", "b", "c b"]})
    assert shoal.read(plain).recipe.delimiter == " "
    repeated = pa.table({"id": [1, 1, 3, 3], "tags": ["a b", "b", "c b", "a"]})
    assert shoal.read(repeated).recipe.shape == "long"
    single = pa.table({"tags": ["a", "b", "a"]})
    dataset = shoal.read(single)
    assert (dataset.recipe.shape, dataset.recipe.delimiter, dataset.X.shape) == ("delimited", None, (3, 2))
    weighed = pa.table({"item": ["p"], "keyword": ["k"], "n": [2]})
    assert shoal.read(weighed, weight="n").X.toarray().tolist() == [[2.0]]


def test_only_one_description_of_a_row():
    table = pa.table({"a": ["x"], "b": ["y"]})
    with pytest.raises(BadInput, match="both features='a' and text='b'"):
        shoal.read(table, features="a", text="b")
    with pytest.raises(BadInput, match="both feature="):
        shoal.read(table, features="a", feature="b")
    with pytest.raises(BadInput, match="long table needs item="):
        shoal.read(table, feature="b")
    with pytest.raises(BadInput, match="weight='b' needs one number for each feature"):
        shoal.read(table, text="a", weight="b")
