"""A file that is not whole, not ours or not for us is refused with an error that says which."""

from __future__ import annotations

import json
import os
import pickle
import re
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save_file

from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput, BadModelFile, BadSource
from shoal.store import container, describe, load, save
from shoal.store.models import FORMAT
from store.same import assert_same
from store.toy_model import ToyKernel, ToyModel, fitted


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.shoal"
    save(path, fitted(kernel=ToyKernel(1.0, np.ones(4))))
    return path


def reverse(arrays):
    return arrays["state.sparse_centers_.indices"][::-1].copy()


def rewrite_facts(path, change):
    """The file again, with its JSON changed and its arrays as they are."""
    rewrite(path, lambda facts, arrays: change(facts))


def rewrite(path, change):
    """The file again, whole and with a right checksum, but with its JSON changed: what a hostile hand could make."""
    with container.ModelFile(path) as file:
        arrays = {name: array.copy() for name, array in file.arrays().items()}
        facts = json.loads(file.header.text)
    change(facts, arrays)
    container.write(path, json.dumps(facts), arrays)


@pytest.mark.parametrize("seed", range(4))
def test_200_flipped_bytes(saved, seed):
    """50 for each seed. Each is noticed: the checksum covers every byte, the header's too."""
    rng = np.random.default_rng(seed)
    whole = saved.read_bytes()
    model = load(saved)
    for _ in range(50):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= rng.integers(1, 256)
        saved.write_bytes(damaged)
        with pytest.raises(BadModelFile, match=re.escape(str(saved))):
            load(saved)
    saved.write_bytes(whole)
    assert_same(load(saved), model)


def test_bytes_all_over_the_header_are_watched(saved):
    whole = saved.read_bytes()
    for at in [*range(200), *range(200, 8 + int.from_bytes(whole[:8], "little"), 7)]:
        saved.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(BadModelFile):
            load(saved)


def test_every_length_of_a_cut_file(saved):
    whole = saved.read_bytes()
    for length in [*range(30), *range(30, len(whole), 97), len(whole) - 1]:
        saved.write_bytes(whole[:length])
        with pytest.raises(BadModelFile, match=r"cut short|not a shoal model|empty"):
            load(saved)
        with pytest.raises(BadModelFile):
            describe(saved)
    saved.write_bytes(whole + b"\0")
    with pytest.raises(BadModelFile, match="1 bytes too many"):
        load(saved)


def test_foreign_files(tmp_path):
    path = tmp_path / "m.shoal"
    png = b"\x89PNG\r\n\x1a\n" + bytes(100)
    for content, message in [
        (b"", "is empty"),
        (png, "begins like a PNG image"),
        (pickle.dumps({"a": 1}), "begins like a pickle"),
        (b"id,tags\n1,a b c\n" * 10, "is not a shoal model"),
        (b"x", "is not a shoal model"),
        (bytes(1000), "is not a shoal model"),
        ((20).to_bytes(8, "little") + b"{" + b"[" * 19, "damaged header"),
        ((20).to_bytes(8, "little") + b"{}" + b" " * 18, "not one that shoal wrote"),
        ((90_000).to_bytes(8, "little") + b'{"a":' + b"[" * 89_995, "damaged header"),
    ]:
        path.write_bytes(content)
        with pytest.raises(BadModelFile, match=message):
            load(path)
    save_file({"a": np.ones(3)}, path)
    with pytest.raises(BadModelFile, match="safetensors file, but not one that shoal wrote"):
        load(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(BadSource, match="there is no file"):
        load(tmp_path / "none.shoal")
    with pytest.raises(BadModelFile, match="is a folder"):
        load(tmp_path)


def test_another_format_says_what_to_do(saved):
    rewrite(saved, lambda facts, arrays: facts.update(format=FORMAT + 1, shoal="9.9"))
    with pytest.raises(BadModelFile, match=rf"written by shoal 9\.9 in file format {FORMAT + 1}.*Upgrade shoal"):
        load(saved)
    rewrite_facts(saved, lambda facts: facts.update(format=1, shoal="0.1"))
    for open_it in (load, describe):
        with pytest.raises(BadModelFile, match=r"written by shoal 0\.1 in file format 1.*Fit and save again"):
            open_it(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda facts, arrays: facts["model"].update({"class": "Popen"}),
        lambda facts, arrays: facts["model"].update({"class": "os.system"}),
        lambda facts, arrays: facts["model"].update({"class": ["store.toy_model.ToyModel"]}),
        lambda facts, arrays: facts["model"].update({"params": {"shell": True}}),
        lambda facts, arrays: facts["model"]["state"].update({"__class__": 1}),
        lambda facts, arrays: facts["model"]["state"].update({"predict": 1}),
        lambda facts, arrays: facts["model"]["state"].update({"odd_": {"$": "pickle", "name": "x"}}),
        lambda facts, arrays: facts["model"]["state"].update({"odd_": {"$": ["pickle"]}}),
        lambda facts, arrays: facts["model"]["state"].update({"odd_": {"no": "kind"}}),
        lambda facts, arrays: facts["model"]["state"].update({"odd_": {"$": "array", "name": "nowhere"}}),
        lambda facts, arrays: facts["model"]["state"].update({"odd_": {"$": "part", "class": "kmeans.Roster"}}),
        lambda facts, arrays: facts["model"]["state"].update({"odd_": {"$": "dict", "items": [[[], 1]]}}),
        lambda facts, arrays: facts["model"]["params"]["kernel"].update({"fields": {"rate": 1.0}}),
        lambda facts, arrays: facts["model"]["state"]["sparse_centers_"].update(shape=[20, 3]),
        lambda facts, arrays: facts["model"]["state"]["when_"].update(view="O"),
        lambda facts, arrays: facts["model"]["state"]["names_"].update(dtype="V4"),
        lambda facts, arrays: arrays["state.sparse_centers_.indices"].__setitem__(0, 10**6),
        lambda facts, arrays: arrays["state.sparse_centers_.indptr"].__setitem__(1, -5),
        lambda facts, arrays: arrays["state.sparse_centers_.indptr"].__setitem__(1, 2**31 - 1),
        lambda facts, arrays: arrays["state.sparse_centers_.indptr"].__setitem__(2, -(2**31)),
        lambda facts, arrays: arrays.update({"state.sparse_centers_.indptr": np.zeros((1, 21), np.int32)}),
        lambda facts, arrays: arrays.update({"state.sparse_centers_.indices": arrays["state.labels_"]}),
        lambda facts, arrays: arrays["state.sparse_centers_.indices"].sort(),
        lambda facts, arrays: arrays.update({"state.sparse_centers_.indices": reverse(arrays)}),
        lambda facts, arrays: arrays["state.names_.offsets"].__setitem__(2, 10**9),
        lambda facts, arrays: arrays["state.names_.offsets"].__setitem__(2, 0),
        lambda facts, arrays: arrays["state.names_.text"].__setitem__(0, 255),
        lambda facts, arrays: facts["model"]["state"]["names_"].update(shape=[4] * 40),
        lambda facts, arrays: facts["model"]["state"]["names_"].update(shape=[4.0]),
        lambda facts, arrays: facts["model"]["state"].update(more_=[facts["model"]["state"]["labels_"]]),
        lambda facts, arrays: facts["model"]["state"].update(labels_="none"),
        lambda facts, arrays: facts["model"]["state"].update(n_features_in_=-1),
        lambda facts, arrays: facts["model"]["state"]["_hidden"]["fields"]["left"]["fields"].update(rate="fast"),
        lambda facts, arrays: facts["model"]["state"]["_hidden"]["fields"]["left"]["fields"].update(table=[1]),
        lambda facts, arrays: facts["model"]["state"]["_hidden"]["fields"]["left"]["fields"].update(more=1),
        lambda facts, arrays: facts.pop("model"),
    ],
)  # fmt: skip
def test_a_whole_file_that_names_what_it_may_not(saved, change):
    rewrite(saved, change)
    with pytest.raises(BadModelFile, match="is whole, but holds"):
        load(saved)


@pytest.mark.parametrize(
    ("name", "value"), [("pos", 10**9), ("pos", -1), ("pos", 1.0), ("has_gauss", 7), ("gauss", "x")]
)
def test_a_random_state_at_a_place_it_does_not_have(tmp_path, name, value):
    """numpy's C code would read there."""
    path = tmp_path / "m.shoal"
    save(path, fitted(random_state=np.random.RandomState(0)))

    def change(facts, arrays):
        for item in items_of(facts["model"]["params"]["random_state"]["state"]):
            if item[0] == name:
                item[1] = value

    rewrite(path, change)
    with pytest.raises(BadModelFile, match="random numbers"):
        load(path)


def items_of(encoded):
    """The items of an encoded dictionary and of those inside it."""
    for item in encoded["items"]:
        yield item
        if isinstance(item[1], dict) and item[1].get("$") == "dict":
            yield from items_of(item[1])


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        ([0, 3, 6], b"abcde"),
        ([0, 4, 2, 5], b"abcde"),
        ([1, 5], b"abcde"),
        ([0, 1, 2], b"\xc3\xa4"),
        ([0, 2], b"\xff\xfe"),
    ],
)
def test_names_that_overlap_or_are_not_text(tmp_path, offsets, text):
    path = tmp_path / "m.shoal"
    model = fitted()
    model.vocabulary_ = Vocabulary(["ab", "cde"])
    save(path, model)

    def change(facts, arrays):
        arrays["state.vocabulary_.text"] = np.frombuffer(text, np.uint8)
        arrays["state.vocabulary_.offsets"] = np.array(offsets, np.int64)

    rewrite(path, change)
    with pytest.raises(BadModelFile, match="names are not text or overlap"):
        load(path)


def test_a_small_file_cannot_ask_for_much_memory(tmp_path):
    """A thousand names of one letter, said to be 100,000,000 letters wide each."""
    path = tmp_path / "m.shoal"
    model = ToyModel()
    model.names_ = np.array(["a"] * 1000)
    save(path, model)
    rewrite_facts(path, lambda facts: facts["model"]["state"]["names_"].update(dtype="<U100000000"))
    tracemalloc.start()
    names = load(path).names_
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert names.tolist() == ["a"] * 1000
    assert peak < 50e6
    model.names_ = np.zeros(3, "S4")
    save(path, model)
    rewrite_facts(path, lambda facts: facts["model"]["state"]["names_"].update(dtype="|S0", shape=[10**11]))
    with pytest.raises(BadModelFile, match="an array of bytes"):
        load(path)


@pytest.mark.parametrize("change", [{"shape": [1] * 100}, {"data_offsets": [0.0, 8.0]}, {"shape": [True]}])
def test_describe_refuses_the_headers_that_load_refuses(saved, change):
    whole = saved.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    next(entry for name, entry in header.items() if name != "__metadata__").update(change)
    raw = json.dumps(header).encode()
    saved.write_bytes(len(raw).to_bytes(8, "little") + raw + whole[8 + length :])
    for open_it in (load, describe):
        with pytest.raises(BadModelFile, match="damaged header"):
            open_it(saved)


def test_a_pipe_or_a_device_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", os.devnull):
        with pytest.raises(BadModelFile, match="a pipe or a device"):
            load(path)


@pytest.mark.parametrize("path", [b"m.shoal", 3, "a\0b"])
def test_what_is_not_a_path_is_refused(path):
    for call in (load, describe, lambda path: save(path, fitted())):
        with pytest.raises(BadInput, match="is not a path"):
            call(path)


def test_the_header_and_the_arrays_are_of_one_file(saved, tmp_path):
    """Another process may put a new file under the name between the two."""
    other = tmp_path / "other.shoal"
    save(other, fitted(1))
    with container.ModelFile(saved) as file:
        os.replace(other, saved)
        assert file.arrays()["state.centers_"].tolist() == fitted(0).centers_.tolist()


def test_a_copy_in_memory_does_not_follow_the_file(saved):
    model, whole = load(saved, in_memory=True), saved.read_bytes()
    assert_same(model, load(saved))
    with open(saved, "r+b") as file:
        file.write(bytes(len(whole)))
    assert_same(model, fitted(kernel=ToyKernel(1.0, np.ones(4))))


def test_facts_that_are_none(saved):
    with container.ModelFile(saved) as file:
        arrays = file.arrays(in_memory=True)
    for text in ("", "[]", "{}", '{"format": "1", "shoal": 1}', '{"a":' + "[" * 90_000):
        container.write(saved, text, arrays)
        for open_it in (load, describe):
            with pytest.raises(BadModelFile, match="damaged header"):
                open_it(saved)


def test_each_array_is_written_once(saved):
    with container.ModelFile(saved) as file:
        tensors = file.header.tensors
    assert not [name for name in tensors if "~" in name]
