"""What is saved is what is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file

import shoal
from shoal.base import Estimator, Roster
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput, BadSource
from shoal.store import describe, load, save
from store.same import assert_same
from store.toy_model import ToyKernel, ToyModel, ToyPair, fitted

WHOLE = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4"]
DTYPES = [*WHOLE, "f2", "f4", "f8", ">f8", "c8", "c16", "S3", "U4", "M8[ns]", "m8[D]"]


def round_trip(value):
    model = ToyModel()
    model.value_ = value
    with tempfile.TemporaryDirectory() as folder:
        save(f"{folder}/m.shoal", model)
        return load(f"{folder}/m.shoal").value_


def test_a_model_with_one_of_everything(tmp_path):
    model = fitted(kernel=ToyKernel(2.0, np.ones(2)), inner=fitted(1), random_state=np.random.RandomState(7))
    save(tmp_path / "m.shoal", model)
    again = load(tmp_path / "m.shoal")
    assert_same(model, again)
    assert_same(again.inner, fitted(1))
    X = np.random.default_rng(0).normal(size=(9, 4))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.random_state.randint(1000) == model.random_state.randint(1000)


def test_saving_a_loaded_model_gives_it_again(tmp_path):
    save(tmp_path / "a.shoal", fitted())
    save(tmp_path / "b.shoal", load(tmp_path / "a.shoal"))
    assert_same(load(tmp_path / "b.shoal"), fitted())


def test_a_model_can_be_saved_over_the_file_it_is_mapped_from(tmp_path):
    save(tmp_path / "m.shoal", fitted())
    mapped = load(tmp_path / "m.shoal")
    save(tmp_path / "m.shoal", mapped)
    assert_same(mapped, fitted())
    assert_same(load(tmp_path / "m.shoal"), fitted())


def test_arrays_are_mapped_and_read_only(tmp_path):
    save(tmp_path / "m.shoal", fitted())
    again = load(tmp_path / "m.shoal")
    for array in (again.centers_, again.labels_, again.sparse_centers_.data):
        assert type(array) is np.ndarray
        assert not array.flags.writeable
        assert not array.flags.owndata
        assert array.ctypes.data % array.dtype.itemsize == 0
    with pytest.raises(ValueError, match="read-only"):
        again.centers_[0, 0] = 1


plain = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
    | st.complex_numbers(allow_nan=False)
)  # fmt: skip
arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
numbers = st.sampled_from(["f4", "f8", "i8", "M8[s]", "b1", "U3"]).flatmap(lambda dtype: hnp.arrays(dtype, ()))
leaves = plain | arrays | numbers.map(lambda array: array[()])
keys = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.tuples(st.integers(), st.text(max_size=2))
states = st.recursive(
    leaves,
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.lists(inside, max_size=3).map(tuple)
        | st.dictionaries(keys, inside, max_size=4)
        | st.builds(ToyPair, inside, inside)
    ),
    max_leaves=12,
)


@given(states)
def test_any_nested_state(value):
    assert_same(round_trip([value]), [value])  # in a list, since a state of None alone is that of an unfitted model


@given(st.sets(st.integers() | st.text(max_size=3)))
def test_sets(value):
    assert round_trip(value) == value
    assert round_trip(frozenset(value)) == frozenset(value)


@given(st.lists(st.text(st.characters(), max_size=6), max_size=6), st.sampled_from(["U6", "O"]))
def test_text_arrays(texts, dtype):
    array = np.array(texts, dtype=dtype)
    assert_same(round_trip(array), array)


@pytest.mark.parametrize("cls", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_matrices_keep_their_index_type(cls, index):
    matrix = cls(sp.random(6, 5, density=0.4, random_state=0))
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    again = round_trip(matrix)
    assert_same(again, matrix)
    assert again.indices.dtype == index
    np.testing.assert_array_equal((again @ np.ones(5)), matrix @ np.ones(5))
    np.testing.assert_array_equal(again[:2].toarray(), matrix[:2].toarray())


def test_unsorted_and_empty_sparse_matrices():
    unsorted = sp.csr_matrix((np.array([1.0, 2]), np.array([3, 0]), np.array([0, 2])), shape=(1, 4))
    assert round_trip(unsorted).toarray().tolist() == [[2, 0, 0, 1]]
    assert round_trip(sp.csr_matrix((0, 4))).shape == (0, 4)


def test_fortran_order_and_strided_arrays_survive():
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert round_trip(fortran).flags.f_contiguous
    assert_same(round_trip(fortran), fortran)
    strided = np.arange(20)[::3]
    assert_same(round_trip(strided), strided)


@pytest.mark.parametrize(
    "random",
    [np.random.RandomState(3), np.random.default_rng(3), np.random.Generator(np.random.Philox(3)),
     np.random.Generator(np.random.MT19937(3)), np.random.Generator(np.random.SFC64(3))],
)  # fmt: skip
def test_random_states_go_on_where_they_were(random):
    random.normal(size=5)
    again = round_trip(random)
    np.testing.assert_array_equal(again.normal(size=7), random.normal(size=7))


def test_parts_of_the_hall():
    roster = Roster.of(3)
    roster.remove([1])
    assert_same(round_trip(roster), roster)
    vocabulary = Vocabulary(["ä", "b", "日本"])
    again = round_trip(vocabulary)
    assert list(again) == ["ä", "b", "日本"]
    assert again.find(["b"])[0] == 1


def test_a_dataset_leaves_its_vocabulary_recipe_and_summary(tmp_path):
    dataset = types.SimpleNamespace(
        X=sp.csr_matrix((5, 2)),
        vocabulary=Vocabulary(["a", "b"]),
        recipe={"weighting": "tf-idf"},
        summary={"bytes_read": 9},
    )
    save(tmp_path / "m.shoal", fitted(), dataset)
    again = load(tmp_path / "m.shoal")
    assert list(again.vocabulary_) == ["a", "b"]
    assert again.recipe_ == {"weighting": "tf-idf"}
    assert again.provenance_["data"] == {"rows": 5, "features": 2, "bytes_read": 9}
    assert again.provenance_["shoal"] == shoal.__version__
    save(tmp_path / "again.shoal", again)  # without the dataset: what is known of it is kept
    assert load(tmp_path / "again.shoal").provenance_["data"]["bytes_read"] == 9


def test_a_fresh_process_finds_every_part(tmp_path):
    """The recipe's class lives in a module that nothing else has imported there."""
    table = pa.table({"id": ["a", "b", "c", "d"], "tags": [["x"], ["x", "y"], ["z"], ["z"]]})
    dataset = shoal.read(table, item="id", features="tags")
    model = shoal.SphericalKMeans(2, random_state=0).fit(dataset)
    save(tmp_path / "m.shoal", model, dataset)
    script = "import sys, shoal; m = shoal.load(sys.argv[1]); print(m.recipe_.features, list(m.vocabulary_), m.labels_)"
    source = str(Path(shoal.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "m.shoal")],
        env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.strip() == f"tags {list(dataset.vocabulary)} {model.labels_}", done.stderr


def test_more_text_than_a_header_can_hold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.store.container.LONGEST_HEADER_BYTES", 1000)
    with pytest.raises(BadInput, match="Keep long lists as arrays"):
        save(tmp_path / "m.shoal", fitted())
    assert list(tmp_path.iterdir()) == []


def test_the_safetensors_library_reads_the_file(tmp_path):
    model = fitted()
    save(tmp_path / "m.shoal", model)
    tensors = load_file(tmp_path / "m.shoal")
    np.testing.assert_array_equal(tensors["state.centers_"], model.centers_)
    np.testing.assert_array_equal(tensors["state.sparse_centers_.indices"], model.sparse_centers_.indices)


def test_describe_says_what_is_inside(tmp_path):
    save(tmp_path / "m.shoal", fitted(kernel=ToyKernel(2.0, np.ones(2)), random_state=5))
    said = describe(tmp_path / "m.shoal")
    assert said["model"] == "ToyModel"
    assert said["params"]["random_state"] == 5
    assert said["params"]["kernel"] == {"class": "ToyKernel", "rate": 2.0, "table": "<array>", "cache": None}
    assert said["arrays"]["state.centers_"] == "F32 (3, 4)"
    assert said["bytes"] == os.path.getsize(tmp_path / "m.shoal")
    assert said["provenance"]["saved"].endswith("+00:00")
    json.dumps(said)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(lambda: 1, "function"), (open, "builtin_function_or_method"), (object(), "object"), (Path("."), "Path"),
     (np.ma.masked_array([1]), "MaskedArray"), (np.zeros(1, "g"), "float128|longdouble"),
     (np.zeros(1, [("a", "i4")]), "array of"), (sp.coo_matrix((2, 2)), "coo")],
)  # fmt: skip
def test_what_cannot_be_stored_is_named(tmp_path, value, kind):
    model = fitted()
    model.odd_ = {"deep": [value]}
    with pytest.raises(BadInput, match=rf"state\.odd_\.deep\.0.*({kind})"):
        save(tmp_path / "m.shoal", model)
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_contains_itself_is_refused(tmp_path):
    model = fitted()
    model.loop_ = []
    model.loop_.append(model.loop_)
    with pytest.raises(BadInput, match=r"state\.loop_.*contains itself"):
        save(tmp_path / "m.shoal", model)


def test_only_models_that_load_would_find_can_be_saved(tmp_path):
    class Stranger(Estimator):
        """Not decorated."""

    stranger = Stranger()
    stranger.labels_ = np.zeros(3)
    with pytest.raises(BadInput, match=r"Stranger.*storable"):
        save(tmp_path / "m.shoal", stranger)
    with pytest.raises(BadInput, match="only shoal's models"):
        save(tmp_path / "m.shoal", {"labels_": 1})
    with pytest.raises(BadInput, match="not fitted yet"):
        save(tmp_path / "m.shoal", ToyModel())


def test_where_a_file_cannot_be(tmp_path):
    with pytest.raises(BadSource, match="is a folder"):
        save(tmp_path, fitted())
    with pytest.raises(BadSource, match="there is no folder"):
        save(tmp_path / "none" / "m.shoal", fitted())


def test_links_and_modes_are_kept(tmp_path):
    save(tmp_path / "real.shoal", fitted())
    os.chmod(tmp_path / "real.shoal", 0o640)
    os.symlink(tmp_path / "real.shoal", tmp_path / "link.shoal")
    save(tmp_path / "link.shoal", fitted(1))
    assert (tmp_path / "link.shoal").is_symlink()
    assert_same(load(tmp_path / "real.shoal"), fitted(1))
    assert (tmp_path / "real.shoal").stat().st_mode & 0o777 == 0o640
