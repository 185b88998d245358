"""Sources that are broken, unlucky or meant to harm: refused with a sentence, or read right."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import shoal
from shoal.errors import BadInput, BadSource


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'a' AS text) ; COPY (SELECT 1) TO '{out}'; SELECT * FROM (SELECT 'a' AS text",
        "SELECT 'a' AS text; COPY (SELECT 1) TO '{out}'",
        "WITH x AS (COPY (SELECT 1) TO '{out}') SELECT 'a b' AS text FROM x",
        "SELECT (WITH x AS (COPY (SELECT 1) TO '{out}') SELECT 'a b') AS text",
        "WITH x AS (FROM query('COPY (SELECT 1) TO ''{out}''')) SELECT 'a b' AS text FROM x",
        "FROM (SELECT 1); ATTACH '{out}' AS other",
        "SELECT 1; EXPORT DATABASE '{out}'",
    ],
)
def test_a_query_reads_and_nothing_else(tmp_path, query):
    out = tmp_path / "written"
    with pytest.raises((BadInput, BadSource)):
        shoal.read(query.format(out=out), text="text")
    assert not out.exists()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'red fox' AS text -- the end",
        "-- all\n/* of them */ (SELECT 'red fox' AS text)",
        "SELECT 'red fox; or' AS text ; -- done",
        "WITH t AS (SELECT 'red fox' AS text) FROM t",
        "VALUES ('red fox')",
    ],
)
def test_a_query_may_have_comments_and_brackets(query):
    assert shoal.read(query, weighting="count").X.sum() >= 2


def test_a_query_sees_no_variables_of_the_program():
    with pytest.raises(BadSource, match="secret"):
        secret = pa.table({"text": ["a b"]})
        shoal.read("SELECT * FROM secret")
        del secret


def test_a_file_that_is_called_like_a_query(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("select me.csv", "with spaces.csv", "from 2019 to 2020.csv"):
        with pytest.raises(BadSource, match=f"no file '{name}'"):
            shoal.read(name)
        Path(name).write_text("text\nred fox\n")
        assert shoal.read(name).X.shape == (1, 2)


def test_a_last_row_longer_than_the_buffer(tmp_path):
    """DuckDB drops it without a word when it is the last one."""
    row = b"3," + b"x " * 17_000_000 + b"\n"
    (tmp_path / "l.csv").write_bytes(b"id,text\n1,red\n2,fox\n" + row)
    with pytest.raises(BadSource, match=r"last line of .* is longer than 2,097,152 bytes"):
        shoal.read(tmp_path / "l.csv", text="text")
    (tmp_path / "l.csv.gz").write_bytes(gzip.compress(b"id,text\n1,red\n2,fox\n" + row, 1))
    with pytest.raises(BadSource, match="Line: 4"):
        shoal.read(tmp_path / "l.csv.gz", text="text")


def test_json_keys_are_taken_as_they_are_written(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"Tags": ["upper"], "tags": ["lower"]}\n')
    assert list(shoal.read(path, features="tags").vocabulary) == ["lower"]
    assert list(shoal.read(path, features="Tags").vocabulary) == ["upper"]


@pytest.mark.parametrize("n_before", [1, 30_000])
def test_json_with_lists_in_some_rows_and_text_in_others(tmp_path, n_before):
    path = tmp_path / "t.jsonl"
    for first, second in (('"blue"', '["red", "x"]'), ('["red"]', '"blue"'), ('"blue"', '{"a": 1}')):
        path.write_text(f'{{"tags": {first}}}\n' * n_before + f'{{"tags": {second}}}\n')
        with pytest.raises((BadInput, BadSource), match=r"tags|blue"):
            shoal.read(path, features="tags", delimiter=",")


def test_lines_that_end_in_carriage_returns_alone(tmp_path):
    (tmp_path / "mac.csv").write_bytes(b'id,text\r1,red fox\r2,"one\ntwo"\r')
    dataset = shoal.read(tmp_path / "mac.csv", text="text", item="id", weighting="count")
    assert dataset.ids.tolist() == ["1", "2"]
    assert dataset.X.sum() == 4


def test_a_column_name_with_a_line_end_in_it(tmp_path):
    (tmp_path / "n.csv").write_bytes(b'id,"two\nlines"\n1,red fox\n')
    assert shoal.read(tmp_path / "n.csv", text="two\nlines").X.shape == (1, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="names are text elsewhere")
def test_names_that_are_not_utf_8(tmp_path):
    for name, data in ((b"caf\xe9.csv", b"text\nred fox\n"), (b"caf\xe9.csv.gz", gzip.compress(b"text\nred fox\n"))):
        path = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
        with pytest.raises(BadSource, match=r"no file at .*caf\\xe9"):
            shoal.read(path)
        Path(path).write_bytes(data)
        assert shoal.read(path).X.shape == (1, 2)
        assert shoal.read(os.fsencode(path)).X.shape == (1, 2)


@pytest.mark.parametrize("quote", ["''", "é", 3])
def test_a_quote_is_one_letter(tmp_path, quote):
    (tmp_path / "q.csv").write_text("text\nred fox\n")
    with pytest.raises(BadInput, match="quote is"):
        shoal.read(tmp_path / "q.csv", quote=quote)


def test_an_unclosed_quote_in_the_first_line(tmp_path):
    (tmp_path / "q.csv").write_text('id,"text\n1,red fox\n' * 20_000)
    with pytest.raises((BadSource, BadInput), match=r"q\.csv"):
        shoal.read(tmp_path / "q.csv", text="text")


@pytest.mark.parametrize(("encoding", "said"), [("latin-1", "latin-1"), ("utf-16", "utf-16")])
def test_other_encodings_are_named_with_the_cure(tmp_path, encoding, said):
    text = "id,text\n" + "".join(f"{n},plain words\n" for n in range(30_000)) + "x,café noir\n"
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    with pytest.raises(BadSource, match=f"encoding='{said}'"):
        shoal.read(tmp_path / "t.csv", text="text")
    dataset = shoal.read(tmp_path / "t.csv", text="text", encoding=encoding, weighting="count")
    assert "café" in dataset.vocabulary
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode(encoding)))
    assert "café" in shoal.read(tmp_path / "t.csv.gz", text="text", encoding=encoding).vocabulary
    with pytest.raises(BadInput, match="encoding is 'klingon'"):
        shoal.read(tmp_path / "t.csv", encoding="klingon")


def test_a_small_packed_file_does_not_fill_the_memory(tmp_path, monkeypatch):
    import shoal.data.files as files

    monkeypatch.setattr(files, "ALWAYS_UNPACKED_BYTES", 1 << 20)
    data = b"text\n" + b"a b\n" * 1_000_000
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.csv.xz").write_bytes(lzma.compress(data))
    for name in ("b.csv.gz", "b.csv.xz"):
        with pytest.raises(BadSource, match="unpacks to more than"):
            shoal.read(tmp_path / name, text="text")


def test_pipes_are_read(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("text\nred fox\n"))
    writer.start()
    assert shoal.read(pipe, text="text").X.shape == (1, 2)
    writer.join()
    code = "import shoal; print(shoal.read('/dev/stdin', text='text').X.shape)"
    done = subprocess.run([sys.executable, "-c", code], input="text\nred fox\n", capture_output=True, text=True)
    assert done.stdout == "(1, 2)\n", done.stderr
    with pytest.raises(BadSource, match="is empty"):
        shoal.read("/dev/null")


def broken(change):
    X = sp.csr_matrix(np.eye(8))
    change(X)
    return X


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.indices.__setitem__(3, 99_999),
        lambda X: X.indices.__setitem__(3, -5),
        lambda X: X.indptr.__setitem__(5, 10**7),
        lambda X: X.indptr.__setitem__(5, 0),
        lambda X: X.indptr.__setitem__(0, 1),
    ],
)
def test_a_matrix_with_places_outside_is_refused(tmp_path, change):
    X = broken(change)
    with pytest.raises((BadInput, BadSource), match=r"broken|not a sparse matrix"):
        shoal.read(X)
    np.savez(tmp_path / "X.npz", data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, format=b"csr")
    with pytest.raises((BadInput, BadSource), match=r"broken|not a sparse matrix"):
        shoal.read(tmp_path / "X.npz")


@pytest.mark.parametrize(
    "line", ["1 99999999999999999999:1\n", "1 3:nan\n", "1 3:inf 4:1\n", "1 -2:1\n", "1 5:1 3:2\n"]
)
def test_svmlight_that_cannot_be_used(tmp_path, line):
    (tmp_path / "x.svm").write_text("1 1:1 2:1\n" + line)
    with pytest.raises((BadInput, BadSource)):
        shoal.read(tmp_path / "x.svm")


@pytest.mark.parametrize(
    ("weights", "options", "said"),
    [
        ([1e308, 1e308], {}, "inf"),
        ([1e39], {"dtype": "float32"}, "float32"),
        ([1e300, 1e300], {"unit_length": True}, None),
        ([1e-300], {"unit_length": True}, None),
        ([0.1], {"sublinear": True}, "sublinear"),
    ],
)
def test_weights_out_of_range(weights, options, said):
    table = pa.table({"i": ["a"] * len(weights), "f": ["x"] * len(weights), "w": weights})
    if said is None:
        dataset = shoal.read(table, item="i", feature="f", weight="w", **options)
        assert dataset.X.toarray().tolist() == [[1.0]]
        return
    with pytest.raises(BadInput, match=f"(?s)row 1.*{said}|{said}.*row 1"):
        shoal.read(table, item="i", feature="f", weight="w", **options)


def test_dates_that_look_like_numbers():
    for times in (["20190101", "2019-01-02"], ["20190101", "20190102"]):
        table = pa.table({"tags": [["a"], ["b"]], "t": times})
        with pytest.raises(BadInput, match=r"bare numbers|look like dates"):
            shoal.read(table, features="tags", time="t")
        with pytest.raises(BadInput, match=r"bare numbers|look like dates"):
            list(shoal.read_batches(table, features="tags", time="t", batch_rows=1))
    table = pa.table({"tags": [["a"], ["b"]], "t": [20190101, 20190102]})
    assert shoal.read(table, features="tags", time="t", time_format="yyyymmdd").times.tolist() == [
        1546300800,
        1546387200,
    ]
    assert shoal.read(table, features="tags", time="t", time_unit="s").times[0] == 20190101


def test_surrogates_in_text_and_names():
    with pytest.raises(BadInput):
        shoal.read(["a \ud800 b"])
    with pytest.raises(BadInput):
        shoal.read(pa.table({"tags": [["a"]]}), features="tags", vocabulary=["\ud800"])
    with pytest.raises(BadInput):
        shoal.read(pa.table({"text": ["a b"]}), text="text", stop_words=["\ud800"])
    with pytest.raises(BadSource, match="zero byte"):
        shoal.read("a\0b.csv")


def test_a_wide_csv_is_read_in_seconds(tmp_path):
    import time

    n = 5_000
    (tmp_path / "w.csv").write_text(",".join(f"c{i}" for i in range(n)) + "\n" + ",".join("1" for _ in range(n)) + "\n")
    began = time.process_time()
    dataset = shoal.read(tmp_path / "w.csv", numeric=True)
    assert dataset.X.shape == (1, n)
    assert time.process_time() - began < 30


def test_the_parts_of_a_table_do_not_share_a_vocabulary(tmp_path):
    """A Dataset's names stay as they are when a model that learned from it goes on learning."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"tags": [["a"], ["b"]]}), path)
    dataset = shoal.read(path, features="tags")
    assert dataset.rows([0]).vocabulary == dataset.vocabulary
    grown = list(shoal.read_batches({"tags": [["c"]]}, recipe=dataset, grow=True))
    assert (len(dataset.vocabulary), len(grown[0].vocabulary)) == (2, 3)


def test_json_that_is_one_column_when_it_is_read_to_its_end(tmp_path):
    """DuckDB takes an array with Infinity or mixed values as one column: the columns of the sample were forgotten."""
    rows = '{"id": "a0", "tags": ["red"], "when": Infinity}, {"id": "a1", "tags": ["fox"], "when": [1.5, "x"]}'
    (tmp_path / "a.json").write_text(f"[{rows}]")
    with pytest.raises(BadInput):
        shoal.read(tmp_path / "a.json", item="id", time="when")
    with pytest.raises(BadInput, match="no column 'w'"):
        shoal.read(tmp_path / "a.json", item="w", owner="owner")


def test_json_that_fails_only_when_it_is_read(tmp_path):
    """The kind of a key is found in a pass over all rows, whose errors were DuckDB's own."""
    rows = [{"id": "a"}] * 30 + [{"id": ["a", None]}]
    text = "\n".join(json.dumps(row) for row in rows) + "\n" + "[1, 2]\n"
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises((BadInput, BadSource)):
        shoal.read(tmp_path / "a.jsonl", item="id", text="id")


def test_a_matrix_of_billions_of_columns_is_not_named_by_numbers(tmp_path):
    np.savez(tmp_path / "m.npz", data=[1.0], indices=[5], indptr=[0, 1], shape=[1, 2**31 - 1], format=b"csr")
    with pytest.raises(BadInput, match="2,147,483,647 columns"):
        shoal.read(tmp_path / "m.npz")
