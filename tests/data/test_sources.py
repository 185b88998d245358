"""The same three rows from every kind of source."""

from __future__ import annotations

import gzip
import io
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import shoal

ROWS = {"id": ["0704.0001", "b", "c"], "tags": [["x", "y"], ["y"], []], "text": ['say "x, y"', "y\u00e9s; so", "z z"]}
FLAT = {"id": ROWS["id"], "tags": ["x|y", "y", None], "text": ROWS["text"]}
CSV = 'id,tags,text\n0704.0001,x|y,"say ""x, y"""\nb,y,y\u00e9s; so\nc,,z z\n'
TSV = 'id\ttags\ttext\n0704.0001\tx|y\tsay "x, y"\nb\ty\ty\u00e9s; so\nc\t\tz z\n'
JSONL = (
    '{"id":"0704.0001","tags":["x","y"],"text":"say \\"x, y\\""}\n'
    '{"id":"b","tags":["y"],"text":"y\\u00e9s; so"}\n{"id":"c","tags":[],"text":"z z"}\n'
)


def check(source, delimiter=None, **options):
    dataset = shoal.read(source, item="id", features="tags", delimiter=delimiter, **options)
    assert dataset.ids.tolist() == ROWS["id"]
    assert list(dataset.vocabulary) == ["x", "y"]
    assert dataset.X.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]
    assert dataset.summary["empty_rows"] == 1
    text = shoal.read(source, text="text", item="id", weighting="count", **options)
    assert list(text.vocabulary) == ["say", "yés", "so"]


def packed_zst(path: Path, data: bytes) -> None:
    with pa.output_stream(str(path), compression="zstd") as out:
        out.write(data)


@pytest.mark.parametrize("pack", ["", ".gz", ".zst", ".xz"])
@pytest.mark.parametrize(("kind", "text"), [("csv", CSV), ("tsv", TSV), ("jsonl", JSONL), ("ndjson", JSONL)])
def test_text_files_plain_and_packed(tmp_path, kind, text, pack):
    path, data = tmp_path / f"rows.{kind}{pack}", text.encode()
    if pack == ".zst":
        packed_zst(path, data)
    else:
        path.write_bytes({"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[pack](data))
    check(path, delimiter="|" if kind in ("csv", "tsv") else None)


def test_other_delimiters_marks_and_line_ends(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + CSV.replace("id,tags,text", "id;tags;text").replace("\n", "\r\n").encode())
    lines = ["id;tags;text", '0704.0001;x|y;"say ""x, y"""', 'b;y;"y\u00e9s; so"', "c;;z z"]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    check(path, delimiter="|")


def test_one_column_of_text_with_commas(tmp_path):
    """A sniffer would cut these lines at the comma, or skip them."""
    path = tmp_path / "lines.csv"
    path.write_text('text\nhello world\n"foo bar, baz"\n')
    assert shoal.read(path, weighting="count").X.sum() == 5


def test_stray_quotes_in_tsv_are_letters(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text('id\ttext\n1\t"open quote\n2\tclosed" quote\n3\tplain\n')
    assert len(shoal.read(path, text="text")) == 3
    path = path.rename(tmp_path / "t.csv")
    assert len(shoal.read(path, text="text", quote="")) == 3


def test_a_json_array(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text("[" + ",\n".join(JSONL.splitlines()) + "]")
    check(path)


def test_json_values_unlike_the_sampled_ones(tmp_path):
    """An id that looks like a number for 30,000 rows and then does not; a key that comes late."""
    path = tmp_path / "rows.jsonl"
    with open(path, "w") as out:
        out.writelines(f'{{"id": {n}, "tags": ["a"]}}\n' for n in range(30_000))
        out.write('{"id": "last", "tags": ["b", null, 3], "late": "yes"}\n')
    dataset = shoal.read(path, item="id", features="tags", label="late")
    assert (dataset.ids[-1], dataset.labels[-1], dataset.labels[0]) == ("last", "yes", None)
    assert list(dataset.vocabulary) == ["a", "b", "3"]


def test_parquet_and_patterns(tmp_path):
    table = pa.table(ROWS)
    pq.write_table(table, tmp_path / "rows.parquet")
    check(tmp_path / "rows.parquet")
    (tmp_path / "parts").mkdir()
    for part in range(3):
        pq.write_table(table.slice(part, 1), tmp_path / "parts" / f"part[{part}].parquet")
    check(str(tmp_path / "parts" / "*.parquet"))
    assert len(shoal.read(str(tmp_path / "parts" / "part[1].parquet"), features="tags")) == 1


def test_patterns_over_csv(tmp_path):
    header, *lines = CSV.splitlines(keepends=True)
    for number, line in enumerate(lines):
        (tmp_path / f"{number}.csv.gz").write_bytes(gzip.compress((header + line).encode()))
    check(str(tmp_path / "*.csv.gz"), delimiter="|")


def test_queries(tmp_path):
    pq.write_table(pa.table(ROWS), tmp_path / "rows.parquet")
    check(f"SELECT * FROM '{tmp_path}/rows.parquet';")
    check(f"  from '{tmp_path}/rows.parquet'")
    check(f"WITH t AS (SELECT * FROM '{tmp_path}/rows.parquet') SELECT * FROM t")


@pytest.mark.parametrize("wrap", [pa.table, pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_tables_in_memory(wrap):
    check(wrap(ROWS))
    check(wrap(FLAT), delimiter="|")


def test_arrow_batches_and_readers():
    table = pa.table(ROWS)
    check(table.to_batches()[0])
    assert len(shoal.read(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), features="tags")) == 3


@pytest.mark.parametrize(
    "data",
    [CSV.encode(), TSV.encode(), JSONL.encode(), gzip.compress(CSV.encode()), "parquet"],
    ids=["csv", "tsv", "jsonl", "gzip", "parquet"],
)
def test_standard_input(data, monkeypatch):
    if data == "parquet":
        sink = io.BytesIO()
        pq.write_table(pa.table(ROWS), sink)
        data = sink.getvalue()

    class Stdin:
        buffer = io.BytesIO(data)

    monkeypatch.setattr(sys, "stdin", Stdin)
    dataset = shoal.read("-", item="id", features="tags", delimiter=None if data[:1] in b"{P" else "|")
    assert dataset.X.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]


def test_standard_input_of_a_real_process():
    code = "import shoal; print(shoal.read('-', item='id', features='tags', delimiter='|').X.nnz)"
    run = subprocess.run([sys.executable, "-c", code], input=CSV, capture_output=True, text=True, check=True)
    assert run.stdout == "3\n"
    assert run.stderr == ""


def test_matrices(tmp_path):
    X = sp.csr_matrix(np.array([[0, 2.0, 0], [1, 0, 0], [0, 0, 0]]))
    sp.save_npz(tmp_path / "X.npz", X.tocsc())
    dump_svmlight_file(X, [1, -1, 1], str(tmp_path / "X.svm"), zero_based=False)
    for source in (X, X.toarray(), X.tocoo(), tmp_path / "X.npz"):
        dataset = shoal.read(source)
        assert abs(dataset.X - X).nnz == 0
        assert list(dataset.vocabulary) == ["0", "1", "2"]
        assert dataset.recipe.weighting == "count"
    light = shoal.read(tmp_path / "X.svm")
    assert light.labels.tolist() == ["1", "-1", "1"]
    assert light.X.toarray().tolist() == [[0, 2], [1, 0], [0, 0]]
    again = shoal.read(X[:, :2], recipe=shoal.read(X, weighting="tfidf"))
    assert again.X.shape == (3, 3)
    assert shoal.read(X, vocabulary=["a", "b", "c"]).vocabulary[1] == "b"
    assert shoal.read(X, min_items=1).X.shape[1] == 3


def test_the_caller_s_matrix_is_left_alone():
    X = sp.csr_matrix(np.array([[0.0, 1.0], [2.0, 0.0]]))
    X.data.flags.writeable = False
    shoal.read(X, weighting="tfidf", unit_length=True)
    assert X.data.tolist() == [1.0, 2.0]


def test_temporary_files_are_gone(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spool"))
    (tmp_path / "spool").mkdir()
    (tmp_path / "rows.csv.xz").write_bytes(lzma.compress(CSV.encode()))
    check(tmp_path / "rows.csv.xz", delimiter="|")
    check(pa.table(ROWS))
    next(iter(shoal.read_batches(tmp_path / "rows.csv.xz", features="tags", delimiter="|", batch_rows=1)))
    assert list((tmp_path / "spool").iterdir()) == []
