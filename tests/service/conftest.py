"""A real browser, as the report's tests use it; axe-core from the npm registry."""

from __future__ import annotations

import shutil
import subprocess
import tarfile

import pytest

from report.conftest import browser  # noqa: F401

AXE = "axe-core@4.10.3"


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The source of axe-core, the accessibility checker."""
    folder = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: axe-core comes from its registry")
    packed = subprocess.run(["npm", "pack", AXE, "--silent"], cwd=folder, capture_output=True, text=True, check=False)
    if packed.returncode:
        pytest.skip(f"axe-core could not be fetched: {packed.stderr[-300:]}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()
