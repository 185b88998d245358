"""``shoal stream``: lines in, assignments and events out, resumed where it was."""

from __future__ import annotations

import json
import subprocess
import sys

from service.samples import items


def stream(folder, lines, *options):
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "stream", "--dir", str(folder), "--reserve-mb", "0.1", *options],
        input="".join(line + "\n" for line in lines), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_lines_become_assignments_and_events_and_a_second_run_goes_on(tmp_path):
    new = ["--new", "--model", "kmeans", "-k", "4", "--resume"]
    plain = [" ".join(item["features"][:4]) for item in items(120)]
    code, out, err = stream(tmp_path, plain[:90], *new)
    assert code == 0, err
    rows = [row for row in out if "id" in row]
    assert [row["id"] for row in rows] == [f"line {n}" for n in range(1, 91)]
    assert len({row["cluster"] for row in rows}) == 4
    assert [row["kind"] for row in out if "event" in row] == ["birth"] * 4
    code, out, err = stream(tmp_path, plain, "--resume")
    assert code == 0, err
    assert [row["kind"] for row in out if "event" in row] == []
    assert len([row for row in out if "id" in row]) == 120
    code, out, err = stream(tmp_path, ['{"features": 3}'])
    assert code == 2
    assert "features" in err
