"""A short fixed run of ``make fuzz``, and the promises of SECURITY.md by name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import shoal

ROOT = Path(__file__).resolve().parents[2]
TRIALS = 60


def test_changed_model_files_are_refused_or_used():
    """With a right checksum; see tools/fuzz.py. In a process of its own, which forks one for each trial."""
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "tools" / "fuzz.py"),
            "model-files",
            "--trials",
            str(TRIALS),
            "--models",
            "stream,bernoulli,mixture,gaussian",
        ],
        env={**os.environ, "PYTHONPATH": str(Path(shoal.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sum(one["trials"] for one in counts) == TRIALS
    assert sum(one.get("refused", 0) for one in counts) > TRIALS / 3


def test_every_promise_names_a_test_that_exists():
    text = (ROOT / "SECURITY.md").read_text()
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    names = set(re.findall(r"\b(test_\w+)(?!\w*\.py)`", text))
    assert len(names) > 15
    assert not [name for name in names if f"def {name}(" not in tests]
    files = set(re.findall(r"`?((?:tests|benchmarks)/[\w/]+\.py)", text))
    assert files
    assert not [name for name in files if not (ROOT / name).is_file()]
