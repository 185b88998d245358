"""Things that are given as rows: tables that lack columns or hold text, and what is no rows at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from shoal import (
    BernoulliMixture,
    Dataset,
    DensityKMeans,
    ExponentialFamilyMixture,
    SphericalKMeans,
    Suggester,
    TimeSensitiveMixture,
    read,
    save,
)
from shoal.errors import BadInput, NotNumbers

MEASURED = pd.DataFrame(
    np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[1], [9], [21]], 20, axis=0), columns=["a", "b", "c"]
)


def gaussian():
    return ExponentialFamilyMixture(3, family="gaussian", random_state=0)


def stream():
    return TimeSensitiveMixture(likelihood="gaussian", random_state=0)


def densities():
    return DensityKMeans(2, random_state=0)


MODELS = {
    "gaussian": (gaussian, MEASURED),
    "stream": (stream, MEASURED),
    "densities": (densities, MEASURED[["a", "b"]].abs() + 0.1),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_measurement_that_is_absent_is_not_zero(name):
    make, table = MODELS[name]
    model = make().fit(table)
    asked = model.predict(table)
    for ask in (model.predict, model.partial_fit):
        for less in (table.iloc[:, :-1], pa.Table.from_pandas(table.iloc[:, 1:])):
            with pytest.raises(BadInput, match=r"X lacks 1 of the \d columns"):
                ask(less)
    np.testing.assert_array_equal(model.predict(table.iloc[:, ::-1]), asked)


def test_a_dataset_of_measurements_that_lacks_a_column():
    model = gaussian().fit(read(MEASURED, numeric=True))
    for less in (MEASURED[["a", "c"]], read(MEASURED[["a", "c"]], numeric=True)):
        with pytest.raises(BadInput, match="'b'"):
            model.predict(less)


def test_counts_that_are_absent_are_zero():
    counts = pd.DataFrame({"a": [3, 2, 0, 0], "b": [1, 2, 0, 1], "c": [0, 0, 4, 2]})
    model = SphericalKMeans(2, random_state=0).fit(counts)
    np.testing.assert_array_equal(model.predict(counts[["a", "b"]].iloc[:2]), model.labels_[:2])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("text", [["x y"] * 60, pd.Categorical(["x", "y"] * 30)])
def test_text_among_measurements_is_refused_and_not_clustered_alone(name, text):
    make, table = MODELS[name]
    with pytest.raises(BadInput, match=r"column.* 'color' .*measurements"):
        make().fit(table.assign(color=text))


@pytest.mark.parametrize("make", [gaussian, lambda: SphericalKMeans(3, random_state=0)])
def test_a_text_column_that_the_model_does_not_know_is_left_out(make):
    model = make().fit(MEASURED)
    for wrap in (pd.DataFrame, pa.Table.from_pandas):
        np.testing.assert_array_equal(model.predict(wrap(MEASURED.assign(note="some words"))), model.labels_)


def test_sparse_columns_of_pandas_are_numbers():
    X = sp.random(40, 6, density=0.4, random_state=0, format="csr")
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=list("abcdef"))
    of_frame, of_matrix = (SphericalKMeans(3, random_state=0).fit(one) for one in (frame, X))
    np.testing.assert_array_equal(of_frame.labels_, of_matrix.labels_)
    assert of_frame.feature_names_in_.tolist() == list("abcdef")


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ("hello", "shoal.read"),
        (b"hello", "shoal.read"),
        ({"a b", "c d"}, "a set"),
        ([{"a": 1}, {"b": 2}], "a list of dicts"),
        (np.asmatrix([[1.0, 2.0]]), "numpy.asarray"),
        (np.ma.masked_greater(np.ones((3, 2)) * [1, 9], 5), "3 of its values are masked"),
        (pd.Series([1.0, 2.0]), "2-dimensional|2D"),
        (None, "2D"),
        (pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]).astype("Sparse[float]"), "2 columns called 'a'"),
        (pa.table([[1.0], [2.0]], names=["a", "a"]), "two columns|2 columns|a"),
    ],
)
def test_what_is_no_rows_is_refused_in_words(X, said):
    with pytest.raises(BadInput, match=said):
        SphericalKMeans(2).fit(X)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": [1.0, 2.0], "t": pd.date_range("2024", periods=2)}),
        pd.DataFrame({"a": [1.0, 2.0], 3: [1.0, 2.0]}),
        {"a": [1, 2]},
        np.array([[{"a": 1}, 2]], dtype=object),
    ],
)
def test_values_that_are_no_numbers_are_both_kinds_of_error(X):
    with pytest.raises(NotNumbers) as raised:
        SphericalKMeans(2).fit(X)
    assert {ValueError, TypeError} <= set(type(raised.value).__mro__)


@pytest.mark.parametrize(("value", "said"), [(np.nan, r"NaN \(missing\)"), (np.inf, "infinity")])
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_matrix, sp.csc_matrix, pd.DataFrame])
def test_the_cell_that_is_missing_is_named(value, said, wrap):
    X = np.arange(12.0).reshape(4, 3) + 1
    X[2, 1] = value
    with pytest.raises(BadInput, match=f"{said} in row 2, column 1"):
        SphericalKMeans(2).fit(wrap(X))
    with pytest.raises(BadInput, match=r"column 1 \('b'\)"):
        SphericalKMeans(2).fit(pd.DataFrame(X, columns=list("abc")))


def test_a_dataset_holds_a_matrix():
    numbers = np.arange(6.0).reshape(2, 3)
    dataset = Dataset(numbers, ["a", "b", "c"])
    np.testing.assert_array_equal(dataset.X.toarray(), numbers)
    for wrong in ("x", [[1, 2, 3]], np.array([["a"]]), numbers[0], None):
        with pytest.raises(BadInput, match="a Dataset holds a matrix"):
            Dataset(wrong, ["a", "b", "c"])


@pytest.mark.parametrize("make", [lambda: BernoulliMixture(2, random_state=0), lambda: Suggester(random_state=0)])
@pytest.mark.parametrize("wrong", ["ab", None, 3, [0.5], [True], [77], [-1]])
def test_features_that_cannot_be_asked_for(make, wrong):
    rows = sp.random(30, 4, density=0.5, random_state=0, format="csr")
    model = make().fit(Dataset(rows, ["ab", "a", "b", "c"]))
    for asked in ({"observed": wrong}, {"observed": ["a"], "rejected": wrong}):
        with pytest.raises(BadInput, match=next(reversed(asked))):
            model.suggest(**asked)


@pytest.mark.parametrize("times", [["soon", "later"], ["2024-01-01", 5]])
def test_times_that_are_none_are_refused_in_few_words(times):
    with pytest.raises(BadInput, match="Give seconds, or ISO dates") as raised:
        stream().fit(np.ones((2, 2)), times=times)
    assert "format=" not in str(raised.value)


@pytest.mark.parametrize(
    "model", [SphericalKMeans(2), BernoulliMixture(2), gaussian(), stream(), densities(), Suggester()], ids=repr
)
def test_a_model_that_is_not_fitted_is_not_saved(model, tmp_path):
    with pytest.raises(BadInput, match="not fitted yet"):
        save(tmp_path / "m.shoal", model)
    assert not list(tmp_path.iterdir())
