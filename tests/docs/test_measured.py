"""README's figures are those that were recorded, and each line of the results knows its commit."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import measured  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
IN_README = README.partition(measured.BEGIN)[2].partition(measured.END)[0].removeprefix(measured.HEAD).splitlines()


@pytest.mark.parametrize("row", measured.ROWS, ids=lambda row: row.what)
def test_a_row_of_readme_was_recorded(row):
    assert any(row.pattern().fullmatch(line) for line in IN_README), f"README has no such row as {row.latest()}"


def test_readme_has_no_other_rows():
    assert len(IN_README) == len(measured.ROWS)


def test_a_figure_that_was_never_recorded_is_found_out():
    row = measured.ROWS[0]
    assert not row.pattern().fullmatch(row.template().format(ours="0.01", theirs="99.99"))


def test_commands_of_readme_exist():
    for row in measured.ROWS:
        words = row.command.strip("`").split()
        assert words[:1] == ["same"] or (ROOT / words[1]).exists()


@pytest.mark.parametrize("path", sorted(measured.RESULTS.glob("*.jsonl")), ids=lambda path: path.name)
def test_every_line_knows_its_commit(path):
    with open(path, encoding="utf-8") as lines:
        assert all(json.loads(line).get("commit") for line in lines)
