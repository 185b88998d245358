"""A file that is not whole, not ours or not for us is refused with an error that says which."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pytest
from safetensors.numpy import save_file

from shoal.errors import BadModelFile, BadSource
from shoal.store import container, describe, load, save
from store.same import assert_same
from store.toy_model import ToyKernel, fitted


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.shoal"
    save(path, fitted(kernel=ToyKernel(1.0, np.ones(4))))
    return path


def rewrite(path, change):
    """The file again, whole and with a right checksum, but with its JSON changed: what a hostile hand could make."""
    header = container.read_header(path)
    arrays = {name: array.copy() for name, array in container.read(path, header).items()}
    facts = json.loads(header.text)
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


def test_a_newer_format_asks_for_an_upgrade(saved):
    rewrite(saved, lambda facts, arrays: facts.update(format=99, shoal="9.9"))
    with pytest.raises(BadModelFile, match=r"written by shoal 9\.9 in file format 99.*Upgrade shoal"):
        load(saved)


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
        lambda facts, arrays: facts.pop("model"),
    ],
)  # fmt: skip
def test_a_whole_file_that_names_what_it_may_not(saved, change):
    rewrite(saved, change)
    with pytest.raises(BadModelFile, match="is whole, but holds"):
        load(saved)


def test_facts_that_are_none(saved):
    header = container.read_header(saved)
    arrays = container.read(saved, header)
    for text in ("", "[]", "{}", '{"format": "1", "shoal": 1}', '{"a":' + "[" * 90_000):
        container.write(saved, text, arrays)
        for open_it in (load, describe):
            with pytest.raises(BadModelFile, match="damaged header"):
                open_it(saved)


def test_each_array_is_written_once(saved):
    tensors = container.read_header(saved).tensors
    assert not [name for name in tensors if "~" in name]
