"""Files and options as unlucky users give them: refused in words that name the cure, or read right."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import pytest

ROWS = [("car|bus", "bus|train"), ("dog|cat", "cat|cow"), ("pear|plum", "plum|apple")]
TABLE = "id,tags\n" + "".join(f"i{n},{ROWS[n % 3][n % 2]}\n" for n in range(12))
SHOAL = [sys.executable, "-m", "shoal"]


def tried(command: str, folder, **more) -> subprocess.CompletedProcess[bytes]:
    text = f"{' '.join(SHOAL)} {command}"
    return subprocess.run(text, shell=True, cwd=folder, capture_output=True, timeout=120, **more)


def test_what_comes_through_standard_input_is_unpacked_and_named(tmp_path):
    done = tried("fit - -k 3 --json -q", tmp_path, input=gzip.compress(TABLE.encode()))
    assert (done.returncode, b'"items": 12' in done.stdout) == (0, True), done.stderr
    done = tried("fit - -k 3 -q", tmp_path, input=b"PK\x03\x04 the rest of a spreadsheet")
    assert done.returncode == 2
    assert b"standard input is a spreadsheet" in done.stderr
    assert b"/shoal-" not in done.stderr


def test_closed_standard_streams(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    done = tried("fit - -k 3 <&-", tmp_path)
    assert (done.returncode, b"is empty" in done.stderr) == (2, True), done.stderr
    done = tried("fit t.csv -k 3 -o t.shoal >&- 2>&- <&-", tmp_path)
    assert (done.returncode, (tmp_path / "t.shoal").exists()) == (0, True)
    done = tried("show t.shoal", tmp_path)
    assert (done.returncode, done.stdout.count(b"\n") > 3) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--k", 3], "--clusters"),
        (["--n_clusters", 3], "--clusters"),
        (["--id", "x"], "--item"),
        (["--output", "m.shoal"], "--out"),
        (["--sep", ","], "--delimiter"),
        (["--max_iter", 3], "--set max_iter="),
        (["--clusterz", 3], "--clusters"),
        (["--clusters", 0], "--clusters"),
        (["--clusters", 1000], "--clusters=1000 is more than the 6 distinct rows"),
        (["--report", "x.pdf"], "HTML"),
    ],
)
def test_a_wrong_option_names_the_right_one(shoal, tmp_path, options, said):
    (tmp_path / "t.csv").write_text(TABLE)
    done = shoal("fit", tmp_path / "t.csv", *options)
    assert (done.code, said in done.err, done.out) == (2, True, ""), done.err
    assert not (tmp_path / "x.pdf").exists()


def test_every_example_of_a_help_page_begins_a_line(shoal):
    done = shoal("fit", "--help")
    assert done.out.count("\n  Example: shoal fit") == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("p.csv", b"PAR1" + bytes(40), "a Parquet file: pass --format 'parquet'"),
        ("g.csv", gzip.compress(TABLE.encode()), "is packed: let its name end in .gz"),
        ("x.csv", b"PK\x03\x04" + bytes(40), "a spreadsheet"),
        ("h.csv", b"\n<!DOCTYPE html><title>404</title>\nnot found\n", "a web page"),
        ("d.csv.gz", gzip.compress(os.urandom(9999))[:5000], "is cut off or damaged"),
        ("n.csv.gz", TABLE.encode(), "let its name end without .gz"),
    ],
)
def test_a_file_of_another_kind_is_called_by_its_kind(shoal, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    done = shoal("fit", tmp_path / name, "-k", 3)
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_long_row_and_a_ragged_one_are_refused_in_few_words(shoal, tmp_path):
    (tmp_path / "long.csv").write_text("id,tags\na,b\nx," + "|".join(f"f{n}" for n in range(500_000)) + "\ny,z\n")
    (tmp_path / "ragged.csv").write_text("id,tags\na,b\nc,d,e\n")
    for name, said in (("long.csv", "Maximum line size"), ("ragged.csv", "Expected Number of Columns: 2")):
        done = shoal("fit", tmp_path / name, "-k", 3, "-q")
        assert (done.code, said in done.err, "strict_mode" in done.err) == (2, True, False), done.err
        assert len(done.err) < 500


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["1.5", "NA", "2"], "'NA' in row 2"),
        (["1", "inf", "2"], "'inf' in row 2"),
        (['"1,5"', '"2,5"', "3"], "decimal commas, as in '1,5': write '1.5'"),
        (["True", "False", "True"], "write 1 and 0"),
    ],
)
def test_columns_that_are_nearly_numbers_are_explained(shoal, tmp_path, values, said):
    (tmp_path / "t.csv").write_text("y\n" + "\n".join(values) + "\n")
    done = shoal("fit", tmp_path / "t.csv", "--numeric", "-k", 2)
    assert (done.code, said in done.err) == (2, True), done.err


def test_columns_of_truth_values_are_numbers(shoal, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"new": [True, True, False, True], "red": [False, False, True, True]}), tmp_path / "t.pq")
    done = shoal("fit", tmp_path / "t.pq", "--numeric", "-k", 2, "--json")
    assert (done.code, '"features": 2' in done.out) == (0, True), done.err


def test_what_was_guessed_wrong_is_said(shoal, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE.replace("i3,", ",").replace("i5,", ","))
    done = shoal("fit", tmp_path / "t.csv", "--delimiter", ", ", "-k", 3)
    assert (done.code, "2 items have no id" in done.err) == (0, True), done.err
    assert "', ' cuts no value of column 'tags'" in done.err


def test_a_row_of_zeros_is_a_measurement(shoal, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n0,0\n1,2\n2,1\n5,9\n")
    done = shoal("fit", tmp_path / "t.csv", "--model", "mixture", "--set", "family=gaussian", "-k", 2)
    assert (done.code, "have no features" in done.err) == (0, False), done.err


def test_progress_in_a_log_file_says_each_number_once(shoal, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    done = shoal("fit", tmp_path / "t.csv", "-k", 3)
    assert "reading: 12\n" in done.err


def test_ctrl_c_is_answered(shoal, tmp_path, monkeypatch):
    import shoal.data.reading as reading

    def stops(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "t.csv").write_text(TABLE)
    monkeypatch.setattr(reading, "opened", stops)
    done = shoal("fit", tmp_path / "t.csv", "-k", 3, "--out", tmp_path / "m.shoal")
    assert (done.code, done.err.count("stopped. Nothing was written."), done.out) == (130, 1, "")
    assert not (tmp_path / "m.shoal").exists()
