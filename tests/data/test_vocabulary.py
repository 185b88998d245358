"""Names in one buffer: found, grown, stored, offered."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data import Vocabulary
from shoal.data.vocabulary_kernels import hash_bytes
from shoal.errors import BadInput, UnknownFeature

names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=60)


@given(names, names)
def test_a_vocabulary_is_a_dict_of_first_appearances(first, second):
    vocabulary, plain = Vocabulary(), {}
    for strings in (first, second):
        expected = [plain.setdefault(name, len(plain)) for name in strings]
        assert vocabulary.extend(strings).tolist() == expected
    assert list(vocabulary) == list(plain)
    asked = [*first, "not there either", *second]
    assert vocabulary.find(asked).tolist() == [plain.get(name, -1) for name in asked]


@given(names)
def test_arrays_give_the_same_vocabulary_back(strings):
    vocabulary = Vocabulary(sorted(set(strings)))
    again = Vocabulary.from_arrays(*vocabulary.to_arrays())
    assert again == vocabulary
    assert list(again) == sorted(set(strings))
    assert again.strings.to_pylist() == sorted(set(strings))


def test_memory_mapped_arrays_are_read_and_never_written(tmp_path):
    data, offsets = Vocabulary(["ant", "bee"]).to_arrays()
    np.save(tmp_path / "data.npy", data)
    np.save(tmp_path / "offsets.npy", offsets)
    mapped = [np.load(tmp_path / name, mmap_mode="r") for name in ("data.npy", "offsets.npy")]
    vocabulary = Vocabulary.from_arrays(*mapped)
    assert "bee" in vocabulary
    assert vocabulary.extend(["cow", "ant"]).tolist() == [2, 0]
    assert list(vocabulary) == ["ant", "bee", "cow"]
    assert np.array_equal(np.load(tmp_path / "data.npy"), data)


def test_a_grown_copy_leaves_the_first_alone():
    first = Vocabulary(["a"])
    second = first.copy()
    second.extend(["b"])
    assert (len(first), len(second)) == (1, 2)
    early = Vocabulary.from_arrays(*second.to_arrays())
    second.extend([f"name {n}" for n in range(100)])
    assert list(early) == ["a", "b"]


def test_names_whose_hashes_fall_together_are_told_apart():
    """With 16 slots nearly every name meets another; equal slots and tags must not be taken for equal names."""
    letters = [f"{n:x}" for n in range(3000)]
    vocabulary = Vocabulary(letters)
    assert vocabulary.find(letters).tolist() == list(range(3000))
    slots = {int(hash_bytes(np.frombuffer(name.encode(), np.uint8), 0, len(name))) & 8191 for name in letters}
    assert len(slots) < 3000  # there were collisions


def test_nulls_dictionaries_and_chunks_are_understood():
    chunked = pa.chunked_array([["x", None], ["y"]])
    assert Vocabulary().extend(chunked).tolist() == [0, 1, 2]
    coded = pa.array(["p", "q", "p"]).dictionary_encode()
    assert Vocabulary(["q", "p"]).find(coded).tolist() == [1, 0, 1]
    assert Vocabulary(["q", "p"]).find(pa.array(["z", "q", "p"])[1:]).tolist() == [0, 1]


def test_a_repeated_name_is_refused():
    with pytest.raises(BadInput, match="duplicate name 'b' at 1 and 2"):
        Vocabulary(["a", "b", "b"])


def test_names_must_be_text():
    with pytest.raises(BadInput, match="must be text"):
        Vocabulary([1.5])


def test_places_and_membership():
    vocabulary = Vocabulary(["a", "b"])
    assert (vocabulary[-1], "a" in vocabulary, "c" in vocabulary, 3 in vocabulary) == ("b", True, False, False)
    with pytest.raises(IndexError, match="feature 2 of a vocabulary of 2"):
        vocabulary[2]
    assert repr(vocabulary) == "Vocabulary(2 features: 'a', 'b')"
    assert vocabulary != Vocabulary(["b", "a"])
    assert vocabulary.keep(np.array([1])).strings.to_pylist() == ["b"]


def test_an_unknown_name_is_an_error_that_offers_near_ones():
    with pytest.raises(UnknownFeature, match=r"no feature is named 'pianno'\. Near names: 'piano'"):
        Vocabulary(["guitar", "piano"]).columns(["guitar", "pianno"])


def test_near_names_are_quick_among_many():
    many = [f"{n:07d} thing" for n in range(300_000)] + ["clustering", "cluster analysis"]
    vocabulary = Vocabulary(many)
    began = time.perf_counter()
    assert vocabulary.near("clusterring", n=1) == ["clustering"]
    assert "cluster analysis" in vocabulary.near("Cluster")
    assert time.perf_counter() - began < 5
    assert vocabulary.near("") == []
    assert Vocabulary().near("x") == []


def test_a_million_names_take_no_object_each():
    vocabulary = Vocabulary(pa.array([f"feature {n}" for n in range(100_000)]))
    vocabulary.find(["feature 1"])
    assert vocabulary.nbytes < 70 * 100_000
