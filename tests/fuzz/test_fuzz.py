"""Short fixed runs of ``make fuzz``, and the promises of SECURITY.md by name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import shoal

ROOT = Path(__file__).resolve().parents[2]


def fuzzed(target: str, models: str, trials: int) -> list[dict]:
    """Counts by model, in a process of its own, which forks one for each trial."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "fuzz.py"), target, "--trials", str(trials), "--models", models],
        env={**os.environ, "PYTHONPATH": str(Path(shoal.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sum(one["trials"] for one in counts) == trials
    return counts


def test_changed_model_files_are_refused_or_used():
    """With a right checksum; see tools/fuzz.py."""
    counts = fuzzed("model-files", "stream,bernoulli,mixture,gaussian", 60)
    assert sum(one.get("refused", 0) for one in counts) > 20


def test_odd_files_are_refused_or_read():
    """CSV, JSON lines, Parquet, svmlight and .npz; see tools/fuzz_files.py."""
    counts = fuzzed("files", "csv,jsonl,parquet,svmlight,npz", 60)
    assert sum(one.get("refused", 0) for one in counts) > 15
    assert sum(one.get("used", 0) for one in counts) > 5


def test_every_promise_names_a_test_that_exists():
    text = (ROOT / "SECURITY.md").read_text()
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    names = set(re.findall(r"\b(test_\w+)(?!\w*\.py)`", text))
    assert len(names) > 15
    assert not [name for name in names if f"def {name}(" not in tests]
    files = set(re.findall(r"`?((?:tests|benchmarks)/[\w/]+\.py)", text))
    assert files
    assert not [name for name in files if not (ROOT / name).is_file()]
