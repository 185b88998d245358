"""Models fitted on text and lists as they are, without reading them first."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.data import as_dataset
from shoal.errors import BadInput, MissingColumn
from shoal.report import cluster_cards

TEXTS = ["red wine and red meat", "red meat and wine", "fast cars and loud cars", "loud cars, fast wheels"] * 5


@pytest.mark.parametrize(
    "model",
    [
        shoal.SphericalKMeans(2, random_state=0),
        shoal.BernoulliMixture(2, random_state=0),
        shoal.ExponentialFamilyMixture(2, n_sweeps=20, random_state=0),
    ],
)
def test_a_column_of_texts_is_fitted_and_asked(model, tmp_path):
    frame = pd.DataFrame({"text": TEXTS})
    model.fit(frame["text"])
    labels = model.predict(TEXTS)
    assert len(set(labels[::4])) == 1
    assert labels[0] != labels[2]
    assert "wine" in list(model.vocabulary_)
    assert model.predict(["wheels of fast cars and loud cars", "red wine and red meat"]).tolist() == [
        labels[2],
        labels[0],
    ]
    assert model.predict(frame).tolist() == labels.tolist()
    shoal.save(tmp_path / "m.shoal", model)
    again = shoal.load(tmp_path / "m.shoal")
    assert again.predict(TEXTS).tolist() == labels.tolist()


def test_lists_and_frames_with_lists():
    rows = [["red", "wine"], ["red", "meat"], ["fast", "car"], ["loud", "car"]] * 5
    frame = pd.DataFrame({"id": [f"r{n}" for n in range(20)], "tags": rows, "n": 1})
    model = shoal.BernoulliMixture(2, random_state=0).fit(frame)
    assert model.item_ids_[0] == "r0"
    assert model.predict(rows).tolist() == model.predict(frame).tolist()


def test_more_text_is_read_into_the_same_columns():
    model = shoal.BernoulliMixture(2, random_state=0).fit(TEXTS)
    before = len(model.vocabulary_)
    fixed = as_dataset(["red grapes and wine"], like=model)
    assert (fixed.X.shape, fixed.summary["unknown_features"]) == ((1, before), 1)
    grown = as_dataset(["red grapes and wine"], like=model, grow=True)
    assert grown.X.shape == (1, before + 1)
    assert grown.vocabulary[before] == "grapes"
    assert len(model.vocabulary_) == before


def test_numbers_stay_numbers():
    frame = pd.DataFrame({"a": [1.0, 0.0] * 5, "b": [0.0, 2.0] * 5})
    model = shoal.SphericalKMeans(2, random_state=0).fit(frame)
    assert not hasattr(model, "recipe_")
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.predict(frame[["b", "a"]]), model.predict(frame))
    with pytest.raises(MissingColumn, match="does not show which column"):
        model.fit(frame.assign(x="p", y="q"))


def test_what_stands_for_rows_is_taken_by_place():
    """A Series that was filtered or shuffled keeps its labels; ids by label would be other rows' ids."""
    import scipy.sparse as sp

    ids = pd.Series(["a", "b", "c"], index=[2, 0, 1])
    dataset = shoal.Dataset(sp.eye(3, format="csr"), ["x", "y", "z"], ids=ids)
    assert dataset.ids.tolist() == ["a", "b", "c"]
    assert dataset[[0]].ids.tolist() == ["a"]
    assert dataset.vocabulary[1] == "y"
    with pytest.raises(BadInput, match="ids has shape"):
        shoal.Dataset(sp.eye(3, format="csr"), ["x", "y", "z"], ids=["a"])
    with pytest.raises(BadInput, match="2 names for 3 columns"):
        shoal.Dataset(sp.eye(3, format="csr"), ["x", "y"])


def test_objects_fit_a_screen():
    long = shoal.read([["<b>" + "x" * 5000, "y" * 5000]])
    assert len(repr(long.vocabulary)) < 200
    assert len(repr(shoal.ReadOptions(stop_words=["w"] * 1000))) < 200
    assert "<b>" not in long._repr_html_()
    assert len(long._repr_html_()) < 1000


def test_learning_leaves_the_dataset_s_vocabulary_alone():
    dataset = shoal.read(TEXTS, weighting="count")
    model = shoal.TimeSensitiveMixture(random_state=0).fit(dataset)
    before = list(dataset.vocabulary)
    model.learn_one(["entirely", "new"])
    assert list(dataset.vocabulary) == before


def test_an_index_of_pandas_names_the_items():
    """Of strings, or with a name; a column of ids comes first, and row numbers are no names."""
    texts = pd.Series([f"cat dog {n}" for n in range(6)] + [f"star moon {n}" for n in range(6)], name="text")
    named = texts.set_axis([f"doc-{n}" for n in range(12)])
    model = shoal.SphericalKMeans(2, random_state=0).fit(named)
    assert model.item_ids_.tolist() == named.index.tolist()
    assert {card.items[0][0][:4] for card in cluster_cards(model)} == {"doc-"}
    dataset = shoal.read(named.to_frame(), max_features=3)
    assert dataset.ids.tolist() == named.index.tolist()
    assert dataset.titles is None
    assert shoal.read(named.to_frame(), recipe=dataset).ids.tolist() == named.index.tolist()
    keyed = texts.set_axis(pd.RangeIndex(100, 112, name="key")).to_frame()
    assert shoal.read(keyed).ids[:2].tolist() == ["100", "101"]
    assert [ids for batch in shoal.read_batches(keyed, batch_rows=5) for ids in batch.ids][-1] == "111"
    assert shoal.read(named.to_frame().assign(id=range(12))).ids[0] == "0"
    assert shoal.read(texts[3:]).ids is None
    stream = shoal.TimeSensitiveMixture(random_state=0).partial_fit(named[:9]).partial_fit(named[9:])
    assert stream.item_ids_.tolist() == ["doc-9", "doc-10", "doc-11"]


def test_an_index_names_the_rows_of_a_table_of_numbers():
    frame = pd.DataFrame({"a": [1.0, 1.1, 9.0, 9.1], "b": [0.1, 0.2, 5.0, 5.1]}, index=list("wxyz"))
    gaussian = shoal.ExponentialFamilyMixture(2, family="gaussian", random_state=0).fit(frame)
    mixed = shoal.ExponentialFamilyMixture(2, family="mixed", random_state=0).fit(frame)
    assert gaussian.item_ids_.tolist() == mixed.item_ids_.tolist() == list("wxyz")
