"""Output that would destroy input, names that steer a terminal, errors of Python and the system."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal as library


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,tags\n" + "".join(f"{n},{'a|b' if n % 2 else 'c|d'}\n" for n in range(20)))
    return path


@pytest.fixture
def model(shops, tmp_path):
    return shutil.copy(shops / "shops.shoal", tmp_path / "m.shoal")


FIT = ["-k", 2, "--item", "id", "--features", "tags", "--delimiter", "|"]


def test_output_never_goes_over_input(shoal, table, model, tmp_path, shops):
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    (tmp_path / "folder").mkdir()
    inside = shutil.copy(table, tmp_path / "folder" / "part.csv")
    day = shutil.copy(shops / "day1.parquet", tmp_path / "day.parquet")
    files = (table, model, inside, day)
    before = {path: Path(path).read_bytes() for path in files}
    for arguments in (
        ["fit", table, *FIT, "--out", table],
        ["fit", table, *FIT, "--out", link],
        ["fit", table, *FIT, "--report", table],
        ["fit", tmp_path / "folder", *FIT, "--out", inside, "--overwrite"],
        ["fit", f"SELECT * FROM '{table}'", *FIT, "--out", table, "--overwrite"],
        ["fit", str(tmp_path / "*.csv"), *FIT, "--out", table, "--overwrite"],
        ["fit", table, *FIT, "--out", tmp_path / "f.shoal", "--report", tmp_path / "f.shoal"],
        ["assign", model, day, "--out", day],
        ["assign", model, day, "--out", model],
        ["report", model, "--out", model],
        ["learn", model, day, "--out", day],
        ["merge", model, shops / "shops.shoal", "--out", shops / "shops.shoal"],
        ["suggest", model, "--file", day, "--out", day, "--overwrite"],
    ):
        done = shoal(*arguments)
        assert done.code == 2, (arguments, done)
        assert "--" in done.err
        assert {path: Path(path).read_bytes() for path in files} == before, arguments


def test_files_that_shoal_did_not_write_are_not_replaced_unasked(shoal, table, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("years of work")
    for option in ("--out", "--report"):
        done = shoal("fit", table, *FIT, option, notes)
        assert (done.code, "--overwrite" in done.err) == (2, True)
        assert notes.read_text() == "years of work"
    assert shoal("fit", table, *FIT, "--out", notes, "--overwrite").code == 0
    assert shoal("fit", table, *FIT, "--out", notes).code == 0  # by now it is a model


def test_outputs_are_checked_before_the_work(shoal, table, tmp_path, monkeypatch):
    monkeypatch.setattr(library.data.reading, "opened", None)  # reading would end in a TypeError
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "no" / "m.shoal", "there is no folder"),
        ("/dev/null", "a device"),
        (tmp_path / "pipe", "a pipe"),
        (tmp_path, "a folder"),
    ):
        for option in ("--out", "--report"):
            done = shoal("fit", table, *FIT, option, path)
            assert (done.code, said in done.err, option in done.err) == (2, True, True), done.err


def test_a_model_that_cannot_be_saved_is_not_lost(shoal, table, tmp_path, monkeypatch):
    real, calls = library.store.save, []

    def fails_once(path, *arguments, **options):
        calls.append(path)
        if len(calls) == 1:
            raise library.errors.BadSource(f"cannot write {path}: No space left on device.")
        return real(path, *arguments, **options)

    monkeypatch.setattr(library.store, "save", fails_once)
    done = shoal("fit", table, *FIT, "--out", tmp_path / "m.shoal")
    assert done.code == 2
    assert "is saved at" in done.err
    assert library.load(calls[1]).n_features_in_ == 4
    os.unlink(calls[1])


HOSTILE = ["[/x]", "[bold]", "[red]a", "\x1b[2Jclear", "two\nlines", "naïve ☕", "=1+1", "$5_$6"]


def test_names_are_printed_as_they_are(shoal, tmp_path):
    rows = [{"id": name, "tags": [name, HOSTILE[at - 1]]} for at, name in enumerate(HOSTILE)] * 3
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "h.parquet")
    fit = ["fit", tmp_path / "h.parquet", "-k", 2, "--item", "id", "--features", "tags", "--out", tmp_path / "h.shoal"]
    done = shoal(*fit)
    assert done.code == 0, done.err
    shown = shoal("show", tmp_path / "h.shoal")
    full = [shoal("show", tmp_path / "h.shoal", "--cluster", cluster).out for cluster in (0, 1)]
    for out in (done.out, shown.out, *full):
        assert "\x1b" not in out
    assert "[bold]" in "".join(full)
    assert "[/x]" in "".join(full)
    assert "\\x1b[2Jclear" in "".join(full)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_standard_output_of_another_encoding(shops, tmp_path, encoding):
    rows = [{"id": f"☕{n}", "tags": ["naïve ☕", "a" if n % 2 else "b"]} for n in range(10)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "h.parquet")
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    command = [
        sys.executable,
        "-m",
        "shoal",
        "fit",
        str(tmp_path / "h.parquet"),
        "-k",
        "2",
        "--item",
        "id",
        "--features",
        "tags",
    ]
    done = subprocess.run([*command, "--out", str(tmp_path / "h.shoal")], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", "shoal", "show", str(tmp_path / "h.shoal"), "--json"]
    done = subprocess.run(command, capture_output=True, env=environment)
    assert "☕0" in {name for card in json.loads(done.stdout) for name, _ in card["items"]}


def test_formulas_do_not_reach_a_spreadsheet(shoal, tmp_path):
    ids = ["=HYPERLINK(1)", "@SUM(1)", "+cmd|x", "-5", "@somebody", "+49 123", "plain"]
    pq.write_table(pa.table({"id": ids, "tags": [["a"]] * 3 + [["b"]] * 4}), tmp_path / "t.parquet")
    fit = ["fit", tmp_path / "t.parquet", "-k", 2, "--item", "id", "--features", "tags", "--out", tmp_path / "t.shoal"]
    assert shoal(*fit).code == 0
    done = shoal("assign", tmp_path / "t.shoal", tmp_path / "t.parquet", "--out", tmp_path / "a.csv")
    assert "3 names begin like formulas" in done.err
    rows = [row["item"] for row in csv.DictReader((tmp_path / "a.csv").read_text().splitlines())]
    assert rows == ["'=HYPERLINK(1)", "'@SUM(1)", "'+cmd|x", "-5", "@somebody", "+49 123", "plain"]
    lines = shoal("assign", tmp_path / "t.shoal", tmp_path / "t.parquet", "--json").out.splitlines()
    assert [json.loads(line)["item"] for line in lines] == ids


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seed", -1], "--seed"),
        (["--set", "tol=abc"], "tol"),
        (["--set", "n_threads=x"], "n_threads"),
        (["--set", "random_state=x"], "--seed"),
        (["--set", "n_clusters=2.5"], "--clusters"),
        (["--set", "max_iter=[[["], "max_iter"),
        (["--encoding", "klingon"], "klingon"),
        (["--time-format", "whenever"], "time_format"),
        (["--format", "excel"], "excel"),
        (["--label", "nothing"], "nothing"),
        (["--columns", "a,b"], "numeric"),
    ],
)
def test_options_that_cannot_be(shoal, table, arguments, said):
    done = shoal("fit", table, *FIT, *arguments)
    assert (done.code, said in done.err, "Traceback" in done.err) == (2, True, False), done.err


def test_errors_of_the_system_are_sentences(tmp_path):
    from shoal.cli.failure import exit_code_of

    for error, code in (
        (OSError(28, "No space left on device"), 2),
        (MemoryError("Unable to allocate 47.7 GiB"), 2),
        (UnicodeEncodeError("utf-8", "\udce9", 0, 1, "surrogates"), 2),
        (csv.Error("field larger than field limit"), 2),
        (pa.ArrowInvalid("not a Parquet file"), 2),
        (ValueError("x"), 2),
        (KeyboardInterrupt(), 130),
        (AssertionError("oops"), 1),
        (BrokenPipeError(), 1),
    ):
        stream, sys.stderr = sys.stderr, io.StringIO()
        try:
            assert exit_code_of(error) == code, error
            assert "Traceback" not in sys.stderr.getvalue()
        finally:
            sys.stderr = stream


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_and_a_closed_output(shops):
    command = [sys.executable, "-m", "shoal", "show", str(shops / "shops.shoal")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "No space left" in done.stderr
    closed = subprocess.run(f"{' '.join(command)} >&-", shell=True, capture_output=True, text=True)
    assert "Traceback" not in closed.stderr


def test_demo_onto_a_file(shoal, tmp_path):
    (tmp_path / "file").write_text("x")
    done = shoal("demo", "--out", tmp_path / "file")
    assert (done.code, "cannot be made" in done.err) == (2, True)


def test_a_link_at_the_name_of_a_temporary_is_not_followed(shoal, shops, tmp_path):
    """In a folder that others write to."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in (f".a.csv.{os.getpid()}.part", ".a.csv.tmp"):
        (tmp_path / name).symlink_to(victim)
    assert shoal("assign", shops / "shops.shoal", shops / "day1.parquet", "--out", tmp_path / "a.csv").code == 0
    assert victim.read_text() == "mine"
    assert len(list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))) == 80


def test_rows_without_a_known_feature_are_unassigned(shoal, shops, tmp_path):
    (tmp_path / "n.jsonl").write_text('{"id": "x", "tags": ["wheel"]}\n{"id": "y", "tags": ["moon"]}\n')
    done = shoal("assign", shops / "shops.shoal", tmp_path / "n.jsonl", "--json")
    first, second = (json.loads(line) for line in done.out.splitlines())
    assert first["cluster"] >= 0
    assert (second["cluster"], second["score"]) == (-1, None)
    assert "1 items have no feature that is known" in done.err
    (tmp_path / "n.jsonl").write_text('{"id": "y", "tags": ["moon"]}\n')
    done = shoal("assign", shops / "shops.shoal", tmp_path / "n.jsonl")
    assert (done.code, "no row has a known feature" in done.err) == (2, True)


def test_the_likeliest_clusters_of_each_row(shoal, shops):
    done = shoal("assign", shops / "shops.shoal", shops / "day1.parquet", "--top", 2, "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    by_item = {}
    for row in rows:
        by_item.setdefault(row["item"], []).append(row["score"])
    assert len(by_item) == 80
    assert all(scores == sorted(scores, reverse=True) and sum(scores) <= 1 + 1e-9 for scores in by_item.values())


def test_evaluate_does_not_count_the_unassigned_as_a_cluster(shoal, tmp_path):
    pq.write_table(pa.table({"tags": [["a"], ["b"], []], "kind": ["x", "y", "y"]}), tmp_path / "t.parquet")
    assert shoal("fit", tmp_path / "t.parquet", "-k", 2, "--features", "tags", "--out", tmp_path / "t.shoal").code == 0
    facts = json.loads(shoal("evaluate", tmp_path / "t.shoal", tmp_path / "t.parquet", "--label", "kind", "--json").out)
    assert (facts["clusters"], facts["unassigned"]) == (2, 1)


def test_json_has_no_bare_nan(capsys):
    from shoal.cli.output import print_json

    print_json({"a": float("nan"), "b": np.array([1.0, np.inf]), "c": np.float64(2)})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1.0, None], "c": 2.0}


def test_messages_speak_of_flags(shoal, tmp_path):
    (tmp_path / "t.csv").write_text("id,title,when\n1,red fox,31/12/2020\n2,red wine,01/01/2021\n")
    done = shoal("fit", tmp_path / "t.csv", "-k", 2, "--time", "when")
    assert (done.code, "--time-format 'dd/mm/yyyy'" in done.err) == (2, True), done.err
    done = shoal("fit", tmp_path / "t.csv", "-k", 2, "--time", "when", "--time-format", "dd/mm/yyyy", "--text", "title")
    assert done.code == 0, done.err
    assert "(pass --item to choose another)" in done.err
    done = shoal("fit", tmp_path / "t.csv", "-k", 2, "--text", "titel")
    assert "asked for by --text" in done.err
