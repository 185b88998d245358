"""A real browser, as the report's tests use it; axe-core from the npm registry."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The source of axe-core, the accessibility checker, in the version of package-lock.json."""
    folder = tmp_path_factory.mktemp("axe")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    assert shutil.which("npm"), "npm is not installed, and axe-core comes from its registry: 'make browser' installs it"
    done = subprocess.run(["npm", "ci", "--ignore-scripts"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"npm could not fetch axe-core: {done.stderr[-1000:]}"
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()
