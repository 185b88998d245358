"""Law 7: the same seed gives the same bits, on any number of threads and in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from contract.cases import CASES, Case, cases, fingerprint

ALL_IN_ONE = """
from contract.cases import CASES, fingerprint
for case in CASES:
    print(case.name, fingerprint(case.fitted()))
"""


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, str]:
    """The fingerprint of every model, fitted in another process, with another hash seed and one thread."""
    environment = os.environ | {"PYTHONHASHSEED": "12345", "SHOAL_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    ran = subprocess.run([sys.executable, "-c", ALL_IN_ONE], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return dict(line.split() for line in ran.stdout.splitlines())


@cases("same seed, same bits")
def test_same_seed_same_bits_in_another_process(case: Case, elsewhere: dict[str, str], monkeypatch: Any) -> None:
    monkeypatch.setenv("SHOAL_NUM_THREADS", "3")
    assert fingerprint(case.fitted()) == elsewhere[case.name]
    assert len(elsewhere) == len(CASES)
