"""Imports point one way: shared modules, then data and metrics, the engine, models, what uses models, and commands."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import shoal

ROOT = Path(shoal.__file__).parent
TOP = {"__init__", "__main__", "warm_up"}  # use everything, and nothing imports them
SHARED = {path.stem for path in ROOT.glob("*.py")} - TOP | {"machine_code"}
MODELS = {"bernoulli", "densities", "families", "kmeans", "streams", "suggestion"}
# What a package may import beside itself and the shared modules.
ALLOWED: dict[str, set[str]] = {
    "data": set(),
    "metrics": {"data"},
    "datasets": {"data"},
    "engine": {"data"},
    **{model: {"data", "engine", "metrics"} for model in MODELS},
    "auction": {"data", "densities", "engine", "metrics", "datasets", "report"},
    "selection": MODELS | {"data", "engine", "metrics"},
    "report": {"data", "metrics", "selection"},
    "store": {"data"},
}


def imports_of(path: Path) -> set[str]:
    """Packages and modules of shoal that a file names when it is imported (not inside functions)."""
    found = set()
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("shoal."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "shoal":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("shoal.")}
    return found


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_packages_import_only_what_is_below_them(package):
    allowed = ALLOWED[package] | SHARED | {package, "__version__"}
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / package).rglob("*.py")
        for name in imports_of(path) - allowed
    }
    assert not wrong


@pytest.mark.parametrize("module", sorted(SHARED))
def test_shared_modules_import_no_package(module):
    paths = [ROOT / f"{module}.py"] if (ROOT / f"{module}.py").exists() else list((ROOT / module).rglob("*.py"))
    assert paths
    assert not {name for path in paths for name in imports_of(path)} - SHARED - {"__version__"}


def test_importing_shoal_needs_no_extra():
    import subprocess
    import sys

    code = (
        "import sys, shoal, shoal.cli.main; shoal.SphericalKMeans, shoal.save; "
        "print([name for name in ('dask', 'distributed', 'matplotlib', 'plotly', 'fastapi', 'polars') "
        "if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
