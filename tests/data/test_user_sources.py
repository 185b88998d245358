"""Tables as people have them: texts, lists that were written as text, nested fields, folders, numbers, odd dates."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data import as_dataset
from shoal.errors import BadInput, MissingColumn


@pytest.mark.parametrize("ids", [["a", "a", "c", "d"], ["a", None, None, "d"], ["a", "b", "c", "d"]])
def test_repeated_or_missing_ids_do_not_make_a_long_table(ids):
    table = pa.table({"id": ids, "targets": ["age:18-34,country:us", "age:35,country:us", "country:fr", "age:35"]})
    dataset = shoal.read(table, item="id", features="targets")
    assert dataset.recipe.shape == "delimited"
    assert set(dataset.vocabulary) == {"age:18-34", "country:us", "age:35", "country:fr"}
    assert dataset.ids.tolist() == ids


def test_few_repeated_ids_are_not_guessed_about():
    table = pa.table({"id": ["a", "a", "c"], "tags": ["x", "y", "z"]})
    with pytest.raises(BadInput, match="pass feature='tags'"):
        shoal.read(table, item="id", features="tags")
    assert len(shoal.read(table, item="id", feature="tags")) == 2


@pytest.mark.parametrize(
    "rows",
    [
        ["['red', 'it\\'s']", "['blue']", "[]"],
        ['["red","it\'s"]', '["blue"]', "[]"],
        ["['red' \"it's\"]", "['blue']", ""],
        ['{red,"it\'s"}', "{blue}", "{}"],
        ['c("red", "it\'s")', 'c("blue")', "c()"],
        ["[red, it\\'s]", "[blue]", None],
    ],
)
def test_lists_written_as_text(tmp_path, rows):
    dataset = shoal.read(pa.table({"tags": rows}), features="tags")
    assert dataset.recipe.shape == "list"
    assert list(dataset.vocabulary) == ["red", "it's", "blue"]
    pd.DataFrame({"tags": rows, "n": 1}).to_csv(tmp_path / "t.csv", index=False)
    assert list(shoal.read(tmp_path / "t.csv", features="tags").vocabulary) == ["red", "it's", "blue"]
    real = shoal.read(pa.table({"tags": [["red", "it's"], ["blue"], []]}), features="tags")
    again = shoal.read(tmp_path / "t.csv", recipe=real)  # learned from lists, asked with text
    assert (again.X != real.X).nnz == 0
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"tags": row}) + "\n" for row in rows))
    assert list(shoal.read(tmp_path / "t.jsonl", features="tags").vocabulary) == ["red", "it's", "blue"]


def test_a_value_that_is_no_list_among_lists_is_refused():
    table = pa.table({"tags": ["['a']"] * 2000 + ["oops"]})
    with pytest.raises(BadInput, match="oops"):
        shoal.read(table, features="tags")


def test_another_delimiter_when_asking_is_refused():
    dataset = shoal.read(pa.table({"tags": ["red|big", "blue|small"]}), features="tags")
    with pytest.raises(BadInput, match=r"no row has a known feature.*cut at '\|'"):
        shoal.read(pa.table({"tags": ["red;big", "blue;small"]}), recipe=dataset)
    again = shoal.read(pa.table({"tags": ["red;big", "blue;small"]}), recipe=dataset, delimiter=";")
    assert again.X.nnz == 4
    some = shoal.read(pa.table({"tags": ["red|big", "moon"]}), recipe=dataset)
    assert (some.summary["unknown_features"], some.summary["empty_rows"]) == (1, 1)


def test_numbers_are_not_words(tmp_path):
    (tmp_path / "n.csv").write_text("id,value\n1,3.5\n2,7.25\n")
    with pytest.raises(MissingColumn, match="numeric=True"):
        shoal.read(tmp_path / "n.csv")


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_columns_of_numbers(tmp_path, kind):
    frame = pd.DataFrame({"id": ["a", "b"], "len": [1.5, -2.0], "n": [0, 3], "species": ["x", "y"]})
    frame.to_csv(tmp_path / "f.csv", index=False)
    frame.to_parquet(tmp_path / "f.parquet")
    source = {"frame": frame, "csv": tmp_path / "f.csv", "parquet": tmp_path / "f.parquet"}[kind]
    dataset = shoal.read(source, numeric=True, label="species")
    assert list(dataset.vocabulary) == ["len", "n"]
    assert dataset.X.toarray().tolist() == [[1.5, 0.0], [-2.0, 3.0]]
    assert (dataset.ids.tolist(), dataset.labels.tolist()) == (["a", "b"], ["x", "y"])
    assert list(shoal.read(source, numeric=["n"]).vocabulary) == ["n"]
    again = shoal.read(frame[["n", "len"]], recipe=dataset)  # another order of columns
    assert (again.X != dataset.X).nnz == 0
    with pytest.raises(MissingColumn, match="no column 'len'"):
        shoal.read(frame[["n"]], recipe=dataset)
    batches = list(shoal.read_batches(source, numeric=True, batch_rows=1))
    assert [batch.X.toarray().tolist() for batch in batches] == [[[1.5, 0.0]], [[-2.0, 3.0]]]


def test_missing_numbers_are_refused_by_row():
    with pytest.raises(BadInput, match="row 2 of column 'x' holds no number"):
        shoal.read(pd.DataFrame({"x": [1.0, np.nan], "y": [1.0, 2.0]}), numeric=True)
    with pytest.raises(BadInput, match="row 1 of column 'y' holds 'n/a', which is not a number"):
        shoal.read(pa.table({"x": [1.0], "y": ["n/a"]}), numeric=["x", "y"])
    with pytest.raises(MissingColumn, match="no column of numbers"):
        shoal.read(pa.table({"x": ["a"]}), numeric=True)
    with pytest.raises(BadInput, match="numeric="):
        shoal.read(pa.table({"x": [1.0]}), numeric=True, text="x")


@pytest.mark.parametrize(
    "wrap", [list, tuple, np.array, pd.Series, pl.Series, pa.array, lambda texts: pd.DataFrame({"text": texts})]
)
def test_texts_as_they_are(wrap):
    dataset = shoal.read(wrap(["red fox", "red wine"]), weighting="count")
    assert dataset.X.toarray().tolist() == [[1, 1, 0], [1, 0, 1]]
    assert as_dataset(wrap(["red fox", "red wine"])).X.shape == (2, 3)


@pytest.mark.parametrize("wrap", [list, pd.Series, lambda rows: pd.DataFrame({"tags": rows})])
def test_lists_as_they_are(wrap):
    dataset = shoal.read(wrap([["red", "big"], None, ["red"]]))
    assert dataset.X.toarray().tolist() == [[1, 1], [0, 0], [1, 0]]
    assert as_dataset(wrap([["red", "big"], ["red"]])).X.shape == (2, 2)


def test_numbers_need_no_reading():
    for X in ([[1.0, 2.0]], np.eye(2), pd.DataFrame({"a": [1.0]}), pl.DataFrame({"a": [1]}), [[1, 2], [3, 4]], []):
        assert as_dataset(X) is None
    with pytest.raises(BadInput, match="some of the values are lists"):
        shoal.read([["a"], "b"])


def test_fields_of_nested_columns(tmp_path):
    rows = [
        {"ad": {"id": "x", "tags": ["a"], "by": {"name": "ann"}}},
        {"ad": {"id": "y", "tags": ["b", "a"], "by": None}},
    ]
    (tmp_path / "n.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "n.parquet")
    for source in (tmp_path / "n.jsonl", tmp_path / "n.parquet", pa.Table.from_pylist(rows)):
        dataset = shoal.read(source, item="ad.id", features="ad.tags", owner="ad.by.name")
        assert dataset.ids.tolist() == ["x", "y"]
        assert dataset.owners.tolist() == ["ann", None]
        assert dataset.X.toarray().tolist() == [[1, 0], [1, 1]]
        with pytest.raises(BadInput, match=r"as in 'ad\.id'"):
            shoal.read(source, features="ad")
        with pytest.raises(MissingColumn, match=r"no column 'ad\.nothing'"):
            shoal.read(source, features="ad.nothing")


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_folders_of_folders(tmp_path, kind):
    for year, tag in ((2023, "a"), (2024, "b")):
        folder = tmp_path / "logs" / f"year={year}"
        folder.mkdir(parents=True)
        table = pa.table({"tags": [f"{tag}|x"], "when": [f"{year}-01-01"]})
        if kind == "parquet":
            pq.write_table(table, folder / "part.parquet")
        elif kind == "csv":
            (folder / "part.csv").write_text(f"tags,when\n{tag}|x,{year}-01-01\n")
        else:
            (folder / "part.jsonl").write_text(json.dumps(table.to_pylist()[0]) + "\n")
    for source in (tmp_path / "logs", str(tmp_path / "logs" / "*" / f"*.{kind}")):
        dataset = shoal.read(source, features="tags", delimiter="|", owner="year", time="when")
        assert dataset.owners.tolist() == ["2023", "2024"]
        assert dataset.X.toarray().tolist() == [[1, 1, 0], [0, 1, 1]]


def test_dates_as_people_write_them():
    table = pa.table({"tags": [["a"], ["b"]], "when": ["31/12/2018", "01/01/2019"]})
    with pytest.raises(BadInput, match=r"time_format='dd/mm/yyyy'"):
        shoal.read(table, features="tags", time="when")
    dataset = shoal.read(table, features="tags", time="when", time_format="dd/mm/yyyy")
    assert dataset.times.tolist() == [1546214400, 1546300800]
    again = shoal.read(table, recipe=dataset)
    assert again.times.tolist() == dataset.times.tolist()
    late = pa.table({"tags": [["a"], ["b"]], "when": ["31/12/2018", "soon"]})
    with pytest.raises(BadInput, match=r"row 2 .* of the form"):
        shoal.read(late, features="tags", time="when", time_format="dd/mm/yyyy")


def test_bare_lines(tmp_path):
    (tmp_path / "notes.log").write_text('red "fox", one\n\nred wine\n')
    dataset = shoal.read(tmp_path / "notes.log", text="-", weighting="count")
    assert dataset.X.toarray().tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1]]
    (tmp_path / "notes.txt").write_text("red wine\n")
    assert shoal.read(tmp_path / "notes.txt").X.shape == (1, 2)
    assert shoal.read(tmp_path / "notes.txt", recipe=dataset, text="-").X.nnz == 2


def test_options_as_one_object():
    options = shoal.ReadOptions(text="title", weighting="count")
    table = pa.table({"title": ["red fox"], "n": [1]})
    assert shoal.read(table, options=options).X.sum() == 2
    assert shoal.read(table, options=options, weighting="tfidf").recipe.weighting == "tfidf"
    assert next(iter(shoal.read_batches(table, options=options))).X.sum() == 2
    with pytest.raises(BadInput, match="Did you mean 'weighting'"):
        shoal.read(table, text="title", weigthing="count")
    with pytest.raises(BadInput, match="options is a dict"):
        shoal.read(table, options={})
    import inspect

    assert len(inspect.signature(shoal.read).parameters) <= 12
    assert len(inspect.signature(shoal.read_batches).parameters) <= 12
