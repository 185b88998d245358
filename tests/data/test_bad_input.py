"""Every way a source can be wrong ends in an error that says what, where, what was found, and what to do."""

from __future__ import annotations

import gzip
import lzma
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import shoal
from shoal.errors import BadInput, BadSource, MissingColumn


def test_no_such_file(tmp_path):
    (tmp_path / "titles.csv").write_text("text\nx\n")
    with pytest.raises(BadSource, match=r"no file at .*title\.csv\. In the same folder: titles\.csv") as caught:
        shoal.read(tmp_path / "title.csv")
    assert isinstance(caught.value, OSError)
    with pytest.raises(BadSource, match=r"no file at nowhere/at/all\.csv\. Seen from"):
        shoal.read("nowhere/at/all.csv")
    with pytest.raises(BadSource, match="no file matches"):
        shoal.read(str(tmp_path / "*.parquet"))


def test_a_folder(tmp_path):
    with pytest.raises(BadSource, match="none that shoal reads"):
        shoal.read(tmp_path)
    (tmp_path / "a.csv").write_text("text\nx y\n")
    (tmp_path / "b.jsonl").write_text("{}")
    with pytest.raises(BadSource, match=r"must be of one format, and there are 1 of csv, 1 of jsonl.*\*\.parquet"):
        shoal.read(tmp_path)


def test_an_empty_file(tmp_path):
    for name in ("e.csv", "e.tsv", "e.jsonl", "e.parquet", "e.npz", "e.svm", "e"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(BadSource, match="is empty"):
            shoal.read(tmp_path / name)
    (tmp_path / "blank.csv").write_text("\n \n")
    with pytest.raises(BadSource, match="nothing but blanks"):
        shoal.read(tmp_path / "blank.csv")
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(BadSource, match="nothing but blanks"):
        shoal.read(tmp_path / "packed.csv.gz")


def test_a_header_without_rows(tmp_path):
    (tmp_path / "h.csv").write_text("id,text\n")
    with pytest.raises(BadInput, match=r"has columns \(id, text\) but no rows"):
        shoal.read(tmp_path / "h.csv", text="text")
    with pytest.raises(BadInput, match="no rows"):
        list(shoal.read_batches(tmp_path / "h.csv", text="text"))
    with pytest.raises(BadInput, match="no rows"):
        list(shoal.read_batches(tmp_path / "h.csv", text="text", vocabulary=["x"], weighting="count"))
    with pytest.raises(BadInput, match="no rows"):
        shoal.read(np.empty((0, 3)))


def test_a_binary_file(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    for name in ("b.csv", "b.jsonl", "b.tsv", "b.svm", "b"):
        (tmp_path / name).write_bytes(b"\x7fELF\0" + noise)
        with pytest.raises(BadSource, match="is a binary file"):
            shoal.read(tmp_path / name)
    for name, said in (
        ("b.parquet", "cannot be read"),
        ("b.npz", "not a sparse matrix"),
        ("b.csv.gz", "cannot be unpacked"),
    ):
        (tmp_path / name).write_bytes(noise)
        with pytest.raises(BadSource, match=said):
            shoal.read(tmp_path / name)
    (tmp_path / "b.csv.xz").write_bytes(lzma.compress(b"text\nx\n" * 1000)[:-20])
    with pytest.raises(BadSource, match=r"not a whole \.xz file"):
        shoal.read(tmp_path / "b.csv.xz")


def test_text_in_another_encoding(tmp_path):
    (tmp_path / "w.csv").write_bytes("id,text\n1,caf\u00e9 noir\n".encode("utf-16"))
    with pytest.raises(BadSource, match=r"UTF-16.*iconv"):
        shoal.read(tmp_path / "w.csv")
    (tmp_path / "l.csv").write_bytes("id,text\n1,caf\u00e9 noir\n".encode("latin-1"))
    with pytest.raises(BadSource, match="utf-8"):
        shoal.read(tmp_path / "l.csv", text="text")
    (tmp_path / "h.csv").write_bytes("id,caf\u00e9\n1,noir\n".encode("latin-1"))
    with pytest.raises(BadSource, match=r"first line of .* is not UTF-8"):
        shoal.read(tmp_path / "h.csv", text="text")


def test_ragged_rows_are_named(tmp_path):
    (tmp_path / "r.csv").write_text("id,text\n1,one two\n2,three,four,five\n")
    with pytest.raises(BadSource, match="Line: 3"):
        shoal.read(tmp_path / "r.csv", text="text")


def test_broken_json_is_named(tmp_path):
    (tmp_path / "j.jsonl").write_text('{"text": "one two"}\n{"text": "three\n')
    with pytest.raises(BadSource, match=r"j\.jsonl cannot be read"):
        shoal.read(tmp_path / "j.jsonl", text="text")


def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text("text\nx\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(BadSource, match="cannot be read"):
        shoal.read(path)


def test_a_query_with_a_mistake():
    with pytest.raises(BadSource, match="the query cannot be read"):
        shoal.read("SELECT nothing FROM nowhere")


def test_a_missing_column_lists_those_that_exist(tmp_path):
    (tmp_path / "m.csv").write_text("id,title,keywords\n1,red fox,a\n")
    with pytest.raises(
        MissingColumn, match=r"no column 'keyword' \(asked for by features=\)\. Did you mean 'keywords'\?"
    ) as e:
        shoal.read(tmp_path / "m.csv", features="keyword")
    assert str(e.value).endswith("It has: keywords, id, title.")
    with pytest.raises(MissingColumn, match="asked for by time="):
        shoal.read(tmp_path / "m.csv", text="title", time="when")
    assert shoal.read(tmp_path / "m.csv", text="TITLE", weighting="count").recipe.text == "title"
    dataset = shoal.read(tmp_path / "m.csv", text="title", weighting="count")
    with pytest.raises(MissingColumn, match="no column 'title'"):
        shoal.read(pa.table({"other": ["x"]}), recipe=dataset)


def test_no_column_that_could_describe_an_item():
    with pytest.raises(MissingColumn, match=r"Pass features= .* It has: a, b"):
        shoal.read(pa.table({"a": ["x"], "b": ["y"]}))


def test_columns_of_the_wrong_type():
    table = pa.table({"id": [["x"]], "tags": [["a"]], "s": [{"a": 1}], "text": ["hello you"]})
    with pytest.raises(BadInput, match=r"column 'id' of the table holds VARCHAR\[\]; item= needs text"):
        shoal.read(table, item="id", features="tags")
    with pytest.raises(BadInput, match=r"column 's' of the table holds STRUCT.*; features= needs"):
        shoal.read(table, features="s")
    with pytest.raises(BadInput, match="text= needs text"):
        shoal.read(table, text="tags")
    with pytest.raises(BadInput, match="weight= needs a number"):
        shoal.read(pa.table({"i": ["a"], "f": ["b"], "w": [[1.0]]}), item="i", feature="f", weight="w")
    with pytest.raises(BadInput, match="item is 3; it must be the name of a column"):
        shoal.read(table, item=3)


def test_a_json_list_that_is_not_always_one(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"tags": ["a"]}\n{"tags": ["b"]}\n' * 20_000 + '{"tags": "oops"}\n')
    with pytest.raises(BadInput, match=r"Expected ARRAY.*oops"):
        shoal.read(path, features="tags")


def test_rows_that_are_all_empty():
    with pytest.raises(BadInput, match="not one of the 2 items has a feature left"):
        shoal.read(pa.table({"tags": pa.array([[], None], pa.list_(pa.string()))}), features="tags")
    with pytest.raises(BadInput, match="not one of the 1 items"):
        shoal.read(pa.table({"text": ["a b c"]}), text="text")
    with pytest.raises(BadInput, match=r"2 features and 0 items were left out"):
        shoal.read(pa.table({"text": ["one", "two"]}), text="text", min_items=2)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (["1", "nan", "2"], "row 2 of column 'w' holds no number"),
        (["1", "2", "-3"], "row 3 of column 'w' holds -3"),
        (["inf", "2", "-3"], "row 1 of column 'w' holds inf, and 2 weights are"),
        (["1", "", "2"], "row 2 of column 'w' holds no number"),
        (["1", "2", "many"], "row 3 holds 'many' in column 'w', which is not a number"),
    ],
)
def test_weights_that_cannot_be(tmp_path, weights, said):
    path = tmp_path / "w.csv"
    path.write_text("i,f,w\n" + "".join(f"a,b,{weight}\n" for weight in weights))
    with pytest.raises(BadInput, match=said):
        shoal.read(path, item="i", feature="f", weight="w")
    with pytest.raises(BadInput, match="item 'a'"):
        list(shoal.read_batches(path, item="i", feature="f", weight="w"))


def test_cells_that_cannot_be():
    for wrong in (np.nan, -1.0, np.inf):
        X = sp.csr_matrix(np.array([[1.0, 0.0], [0.0, wrong]]))
        with pytest.raises(BadInput, match="row 1, column 1 of the matrix holds"):
            shoal.read(X)
    with pytest.raises(BadInput, match="rows by columns of numbers"):
        shoal.read(np.array([1.0, 2.0]))
    with pytest.raises(BadInput, match="is a matrix without column names, but item='id' is given"):
        shoal.read(np.eye(2), item="id")
    with pytest.raises(BadInput, match="has 2 columns, but the vocabulary names 1"):
        shoal.read(np.eye(2), vocabulary=["a"])


def test_a_long_table_without_an_item():
    table = pa.table({"i": ["a", None], "f": ["x", "y"]})
    with pytest.raises(BadInput, match="row 2 has no item in column 'i'"):
        shoal.read(table, item="i", feature="f")
    with pytest.raises(BadInput, match="1 rows have no item in column 'i'"):
        list(shoal.read_batches(table, item="i", feature="f"))


def test_a_frame_that_is_no_table():
    with pytest.raises(BadInput, match="the pandas table cannot be read"):
        shoal.read(pd.DataFrame({"x": [1, "a", ["b"]]}))
    with pytest.raises(BadInput, match="the dict table cannot be read"):
        shoal.read({"x": 1})
    with pytest.raises(BadSource, match="a set cannot be read"):
        shoal.read({"x", "y"})


def test_files_that_do_not_belong_together(tmp_path):
    (tmp_path / "1.csv").write_text("id,text\n1,x\n")
    (tmp_path / "2.csv").write_text("text,id\nx,1\n")
    with pytest.raises(BadSource, match="another first line"):
        shoal.read(str(tmp_path / "*.csv"))


def test_options_out_of_range(tmp_path):
    table = pa.table({"tags": [["a"]]})
    for name in ("min_items", "max_features"):
        with pytest.raises(BadInput, match=f"{name} is 0"):
            shoal.read(table, **{name: 0})
    with pytest.raises(BadInput, match="time_unit is 'h'"):
        shoal.read(table, time_unit="h")
    pq.write_table(table, tmp_path / "x.bin")
    assert len(shoal.read(tmp_path / "x.bin", format="parquet")) == 1
    with pytest.raises(BadSource, match="format is 'excel'"):
        shoal.read(tmp_path / "x.bin", format="excel")
